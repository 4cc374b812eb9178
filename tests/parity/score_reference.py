"""SCORE's update in plain NumPy, from the paper's equations, with gradients by hand. Shares no code with src."""

from typing import Any

import jax
import numpy as np

from tests.parity.numpy_reference import Parameters


class Net:
    """Affine layers with ReLU between them."""

    def __init__(
        self,
        weights: list[Any] | tuple[jax.Array, jax.Array, jax.Array],
        biases: list[Any] | tuple[jax.Array, jax.Array, jax.Array],
    ) -> None:
        self.parameters = [np.array(p, dtype=np.float64) for pair in zip(weights, biases, strict=True) for p in pair]
        self.margin = np.inf  # how close any activation came to ReLU's kink

    def copy(self) -> "Net":
        return Net(self.parameters[0::2], self.parameters[1::2])

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        inputs, last = [], len(self.parameters) // 2 - 1
        for layer in range(last + 1):
            inputs.append(x)
            x = x @ self.parameters[2 * layer] + self.parameters[2 * layer + 1]
            if layer < last:
                self.margin = min(self.margin, np.abs(x).min())
                x = np.maximum(x, 0)
        return x, inputs

    def backward(self, inputs: list[np.ndarray], upstream: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Gradients of the parameters and of the input, for dLoss/dOutput."""
        gradients = [np.empty(0)] * len(self.parameters)
        for layer in reversed(range(len(inputs))):
            gradients[2 * layer] = inputs[layer].T @ upstream
            gradients[2 * layer + 1] = upstream.sum(0)
            upstream = upstream @ self.parameters[2 * layer].T
            if layer:
                upstream = upstream * (inputs[layer] > 0)
        return gradients, upstream


class Adam:
    def __init__(self, parameters: Parameters, rate: float) -> None:
        self.rate, self.t = rate, 0
        self.m = [np.zeros_like(p) for p in parameters]
        self.v = [np.zeros_like(p) for p in parameters]

    def step(self, parameters: Parameters, gradients: list[np.ndarray]) -> None:
        self.t += 1
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            self.m[k] = 0.9 * self.m[k] + 0.1 * g
            self.v[k] = 0.999 * self.v[k] + 0.001 * g**2
            m_hat, v_hat = self.m[k] / (1 - 0.9**self.t), self.v[k] / (1 - 0.999**self.t)
            p -= self.rate * m_hat / (np.sqrt(v_hat) + 1e-8)


class ScoreReference:
    """One loop over critics, as the paper's Algorithm 1 is written."""

    def __init__(
        self,
        actor: Net,
        critics: list[Net],
        *,
        beta: float,
        bc_decay: float,
        bc_decay_every: int,
        alpha: float = 2.5,
        delay: int = 2,
        first: str = "zero",
        bc_norm: str = "mean",
        divisor: str = "mean",
        masks: Any = None,
    ) -> None:
        self.actor, self.critics = actor, critics
        self.target_actor, self.target_critics = actor.copy(), [c.copy() for c in critics]
        self.actor_adam = Adam(actor.parameters, 3e-4)
        self.critic_adams = [Adam(c.parameters, 3e-4) for c in critics]
        self.beta, self.bc_decay, self.bc_decay_every = beta, bc_decay, bc_decay_every
        self.alpha, self.delay, self.first = alpha, delay, first
        self.bc_norm, self.divisor, self.masks = bc_norm, divisor, masks
        self.bc_weight, self.updates = 1.0, 0

    @property
    def margin(self) -> Any:
        return min(net.margin for net in (self.actor, *self.critics))

    def update(
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        noise: Any,
        rows: np.ndarray | None = None,
    ) -> None:
        n = len(r)
        policy = np.tanh(self.target_actor.forward(s2)[0])
        a2 = np.clip(policy + np.clip(0.2 * noise, -0.5, 0.5), -1, 1)
        x, x2 = np.concatenate([s, a], 1), np.concatenate([s2, a2], 1)
        passes = [critic.forward(x) for critic in self.critics]
        q = np.array([out[:, 0] for out, _ in passes])
        u = np.sqrt(((q - q.mean(0)) ** 2).mean(0))
        for i, critic in enumerate(self.critics):
            y = r + 0.99 * (1 - terminal) * self.target_critics[i].forward(x2)[0][:, 0] - self.beta * u
            mask = np.ones(n) if self.masks is None else self.masks[i][rows]
            divisor = mask.sum() + 1 if self.divisor == "mask+1" else max(mask.sum(), 1)
            upstream = (2 * mask * (q[i] - y) / divisor)[:, None]
            gradients, _ = critic.backward(passes[i][1], upstream)
            self.critic_adams[i].step(critic.parameters, gradients)
        t = self.updates + 1
        moves = t % self.delay == 1 % self.delay if self.first == "zero" else t % self.delay == 0
        if moves:
            self._improve(s, a)
        self.updates = t
        if t % self.bc_decay_every == 0:
            self.bc_weight *= self.bc_decay

    def _improve(self, s: np.ndarray, a: np.ndarray) -> None:
        n, dims = a.shape
        out, inputs = self.actor.forward(s)
        pi = np.tanh(out)
        passes = [critic.forward(np.concatenate([s, pi], 1)) for critic in self.critics]
        q = np.array([out[:, 0] for out, _ in passes])
        smallest = q.argmin(0)
        scale = self.alpha / np.abs(q.min(0)).mean()
        toward = np.zeros_like(pi)
        for i, critic in enumerate(self.critics):
            upstream = (-scale / n * (smallest == i))[:, None]
            toward += critic.backward(passes[i][1], upstream)[1][:, s.shape[1] :]
        share = n if self.bc_norm == "sum" else n * dims
        toward += self.bc_weight * 2 * (pi - a) / share
        gradients, _ = self.actor.backward(inputs, toward * (1 - pi**2))
        self.actor_adam.step(self.actor.parameters, gradients)
        for target, online in zip([self.target_actor, *self.target_critics], [self.actor, *self.critics], strict=True):
            for p, o in zip(target.parameters, online.parameters, strict=True):
                p += 0.005 * (o - p)
