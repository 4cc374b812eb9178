"""SCORE as most people would write it: PyTorch, a Python loop over updates and over critics.

A baseline of `speed.py`. The same update as `score_rl.algorithms.score`, with its defaults; nothing here is meant to be
slow. Every critic is a module with its own optimiser, as in the published code. `tuned` is what a careful author adds
without giving up that shape: Adam in its fused form (one kernel for a whole optimiser step instead of one for each
operation), targets moved with one call for all parameters, no gradients of critics in the actor's turn. Neither version
ever waits for the device: nothing is read back.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

CRITICS, WIDTH, BATCH = 5, 256, 256
Made = tuple[Callable[[], None], list[torch.Tensor]]


def perceptron(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs)
    )


def make_update(rows: np.ndarray, observation: int, action: int, device: str, *, tuned: bool) -> Made:
    """A function that does one update, and all it moves. `rows` holds s, a, r, s', terminal, and one column more."""
    data = torch.as_tensor(rows, device=device)
    actor = perceptron(observation, action).to(device)
    critics = [perceptron(observation + action, 1).to(device) for _ in range(CRITICS)]
    target_actor = perceptron(observation, action).to(device)
    target_actor.load_state_dict(actor.state_dict())
    target_critics = [perceptron(observation + action, 1).to(device) for _ in range(CRITICS)]
    for target, critic in zip(target_critics, critics, strict=True):
        target.load_state_dict(critic.state_dict())
    options = {"lr": 3e-4, **({"fused": True} if tuned else {})}
    actor_adam = torch.optim.Adam(actor.parameters(), **options)
    critic_adams = [torch.optim.Adam(critic.parameters(), **options) for critic in critics]
    online = [p for net in (actor, *critics) for p in net.parameters()]
    targets = [p for net in (target_actor, *target_critics) for p in net.parameters()]
    moved = list(actor.parameters())
    step = 0

    def move_targets() -> None:
        if tuned:
            torch._foreach_lerp_(targets, online, 0.005)
        else:
            for p, o in zip(targets, online, strict=True):
                p.mul_(0.995).add_(0.005 * o)

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
            next_values = [target(x2) for target in target_critics]
        values = [critic(x) for critic in critics]
        with torch.no_grad():
            base = r - 0.2 * torch.stack(values).std(0, unbiased=False)
            discount = 0.99 * (1 - terminal)
        for value, next_value, adam in zip(values, next_values, critic_adams, strict=True):
            loss = ((value - (base + discount * next_value)) ** 2).mean()
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
        if step % 2 == 0:
            pi = torch.tanh(actor(s))
            here = torch.cat([s, pi], 1)
            q = torch.stack([critic(here) for critic in critics]).min(0).values
            loss = -2.5 / q.abs().mean().detach() * q.mean() + ((pi - a) ** 2).mean()
            if tuned:
                for parameter, gradient in zip(moved, torch.autograd.grad(loss, moved), strict=True):
                    parameter.grad = gradient
            else:
                actor_adam.zero_grad(set_to_none=True)
                loss.backward()
            actor_adam.step()
            with torch.no_grad():
                move_targets()
        step += 1

    return update, online + targets
