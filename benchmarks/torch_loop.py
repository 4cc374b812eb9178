"""SCORE as most people would write it: PyTorch, a Python loop over updates and over critics.

The baseline of `speed.py`. The same update as `score_rl.algorithms.score`, with its defaults; nothing here is
meant to be slow.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

CRITICS, WIDTH, BATCH = 5, 256, 256


def perceptron(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs)
    )


def make_update(rows: np.ndarray, observation: int, action: int, device: str) -> Callable[[], None]:
    """A function that does one update. `rows` holds s, a, r, s', terminal, and one column more."""
    data = torch.as_tensor(rows, device=device)
    actor = perceptron(observation, action).to(device)
    critics = [perceptron(observation + action, 1).to(device) for _ in range(CRITICS)]
    target_actor = perceptron(observation, action).to(device)
    target_actor.load_state_dict(actor.state_dict())
    target_critics = [perceptron(observation + action, 1).to(device) for _ in range(CRITICS)]
    for target, critic in zip(target_critics, critics, strict=True):
        target.load_state_dict(critic.state_dict())
    actor_adam = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_adams = [torch.optim.Adam(critic.parameters(), lr=3e-4) for critic in critics]
    step = 0

    def update() -> None:
        nonlocal step
        drawn = data[torch.randint(len(data), (BATCH,), device=device)]
        s, a = drawn[:, :observation], drawn[:, observation : observation + action]
        r, s2 = drawn[:, observation + action, None], drawn[:, observation + action + 1 : -2]
        terminal = drawn[:, -2:-1]
        x = torch.cat([s, a], 1)
        with torch.no_grad():
            noise = (torch.randn_like(a) * 0.2).clamp(-0.5, 0.5)
            a2 = (torch.tanh(target_actor(s2)) + noise).clamp(-1, 1)
            x2 = torch.cat([s2, a2], 1)
        values = [critic(x) for critic in critics]
        with torch.no_grad():
            penalty = 0.2 * torch.stack(values).std(0, unbiased=False)
        for value, target, adam in zip(values, target_critics, critic_adams, strict=True):
            with torch.no_grad():
                y = r + 0.99 * (1 - terminal) * target(x2) - penalty
            loss = ((value - y) ** 2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        if step % 2 == 0:
            pi = torch.tanh(actor(s))
            q = torch.stack([critic(torch.cat([s, pi], 1)) for critic in critics]).min(0).values
            loss = -2.5 / q.abs().mean().detach() * q.mean() + ((pi - a) ** 2).mean()
            actor_adam.zero_grad()
            loss.backward()
            actor_adam.step()
            with torch.no_grad():
                for target, online in zip([target_actor, *target_critics], [actor, *critics], strict=True):
                    for p, o in zip(target.parameters(), online.parameters(), strict=True):
                        p.mul_(0.995).add_(0.005 * o)
        step += 1

    return update
