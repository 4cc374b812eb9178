"""SCORE in PyTorch with all critics in one batched product: what the loop becomes in skilled hands.

A baseline of `speed.py`. Layers of all critics are one `baddbmm`, their losses one backward pass, their parameters one
fused Adam; online and target critics stay apart since they see different inputs. Nothing is read back from the device.
The actor's loss needs gradients with respect to the actor alone (`torch.autograd.grad`), so no time goes into gradients
of the critics that nobody uses.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

CRITICS, WIDTH, BATCH = 5, 256, 256
Made = tuple[Callable[[], None], list[torch.Tensor]]
Layers = list[tuple[torch.Tensor, torch.Tensor]]


def stacked(sizes: tuple[int, ...], members: int, device: str) -> Layers:
    """Weights [members, in, out] and biases [members, 1, out], uniform in ±1/√in like PyTorch's linear layers."""
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        limit = fan_in**-0.5
        layers.append(
            (
                torch.empty(members, fan_in, fan_out, device=device).uniform_(-limit, limit).requires_grad_(),
                torch.empty(members, 1, fan_out, device=device).uniform_(-limit, limit).requires_grad_(),
            )
        )
    return layers


def forward(layers: Layers, x: torch.Tensor) -> torch.Tensor:
    """[batch, in] or [members, batch, in] to [members, batch, out]."""
    if x.dim() == 2:
        x = x.expand(layers[0][0].shape[0], -1, -1)
    for number, (weight, bias) in enumerate(layers):
        x = torch.baddbmm(bias, x, weight)
        if number < len(layers) - 1:
            x = torch.relu(x)
    return x


def parameters(layers: Layers) -> list[torch.Tensor]:
    return [part for layer in layers for part in layer]


def copied(layers: Layers) -> Layers:
    return [(weight.detach().clone(), bias.detach().clone()) for weight, bias in layers]


def make_update(rows: np.ndarray, observation: int, action: int, device: str) -> Made:
    """A function that does one update, and all it moves. `rows` holds s, a, r, s', terminal, and one column more."""
    data = torch.as_tensor(rows, device=device)
    actor = stacked((observation, WIDTH, WIDTH, action), 1, device)
    critics = stacked((observation + action, WIDTH, WIDTH, 1), CRITICS, device)
    target_actor, target_critics = copied(actor), copied(critics)
    actor_parameters, critic_parameters = parameters(actor), parameters(critics)
    online, targets = actor_parameters + critic_parameters, parameters(target_actor) + parameters(target_critics)
    actor_adam = torch.optim.Adam(actor_parameters, lr=3e-4, fused=True)
    critic_adam = torch.optim.Adam(critic_parameters, lr=3e-4, fused=True)
    step = 0

    def critic_loss(drawn: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        s_a, r = drawn[:, : observation + action], drawn[:, observation + action, None]
        s2, terminal = drawn[:, observation + action + 1 : -2], drawn[:, -2:-1]
        with torch.no_grad():
            a2 = (torch.tanh(forward(target_actor, s2)[0]) + (noise * 0.2).clamp(-0.5, 0.5)).clamp(-1, 1)
            next_values = forward(target_critics, torch.cat([s2, a2], 1))
        values = forward(critics, s_a)
        with torch.no_grad():
            y = r + 0.99 * (1 - terminal) * next_values - 0.2 * values.std(0, unbiased=False)
        return ((values - y) ** 2).sum() / BATCH

    def actor_loss(drawn: torch.Tensor) -> torch.Tensor:
        s, a = drawn[:, :observation], drawn[:, observation : observation + action]
        pi = torch.tanh(forward(actor, s)[0])
        q = forward(critics, torch.cat([s, pi], 1)).min(0).values
        return -2.5 / q.abs().mean().detach() * q.mean() + ((pi - a) ** 2).mean()

    def descend(loss: torch.Tensor, chosen: list[torch.Tensor], adam: torch.optim.Adam) -> None:
        for parameter, gradient in zip(chosen, torch.autograd.grad(loss, chosen), strict=True):
            parameter.grad = gradient
        adam.step()

    def update() -> None:
        nonlocal step
        drawn = data[torch.randint(len(data), (BATCH,), device=device)]
        noise = torch.randn(BATCH, action, device=device)
        descend(critic_loss(drawn, noise), critic_parameters, critic_adam)
        if step % 2 == 0:
            descend(actor_loss(drawn), actor_parameters, actor_adam)
            with torch.no_grad():
                torch._foreach_lerp_(targets, online, 0.005)
        step += 1

    return update, online + targets
