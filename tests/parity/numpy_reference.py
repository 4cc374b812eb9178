"""Pieces that every NumPy transcription needs, in plain float64. Shares no code with src.

Gradients are taken by the complex step: for an analytic f, Im f(x + ih)/h is f'(x) without cancellation, exact to
rounding at h = 1e-30. So a transcription writes losses alone, with the functions below where a loss has corners:
they decide by the real part and leave the imaginary part to follow.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms.algorithm import Shapes
from score_rl.nets.perceptron import Perceptron

STEP = 1e-30
Parameters = list[np.ndarray]  # weight, bias, weight, bias, ...


def relu(x: np.ndarray) -> np.ndarray:
    return np.where(x.real > 0, x, 0)


def absolute(x: np.ndarray) -> Any:
    return np.where(x.real < 0, -x, x)


def clip(x: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.where(x.real < low, low, np.where(x.real > high, high, x))


def smallest(x: np.ndarray, axis: int) -> np.ndarray:
    return np.take_along_axis(x, np.expand_dims(x.real.argmin(axis), axis), axis).squeeze(axis)


def largest(x: np.ndarray, axis: int) -> Any:
    return np.take_along_axis(x, np.expand_dims(x.real.argmax(axis), axis), axis).squeeze(axis)


def perceptron(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Affine layers with ReLU between them; `parameters` is [weight, bias, weight, bias, ...]."""
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = relu(x)
    return x


def beside(*columns: np.ndarray) -> np.ndarray:
    return np.concatenate(columns, axis=-1)


def gradient(loss: Callable[..., Any], parameters: Parameters) -> list[np.ndarray]:
    """dloss/dp of every entry of every array, one complex step each."""
    gradients = []
    for number, parameter in enumerate(parameters):
        slope = np.zeros(parameter.shape)
        shifted = list(parameters)
        shifted[number] = parameter.astype(complex)
        for place in np.ndindex(parameter.shape):
            shifted[number][place] += 1j * STEP
            slope[place] = np.imag(loss(shifted)) / STEP
            shifted[number][place] = parameter[place]
        gradients.append(slope)
    return gradients


class Adam:
    """Moves its arrays in place."""

    def __init__(self, parameters: Parameters, rate: float) -> None:
        self.rate, self.t = rate, 0
        self.m = [np.zeros_like(p) for p in parameters]
        self.v = [np.zeros_like(p) for p in parameters]

    def step(self, parameters: Parameters, gradients: list[np.ndarray], rate: float | None = None) -> None:
        self.t += 1
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            self.m[k] = 0.9 * self.m[k] + 0.1 * g
            self.v[k] = 0.999 * self.v[k] + 0.001 * g**2
            m_hat, v_hat = self.m[k] / (1 - 0.9**self.t), self.v[k] / (1 - 0.999**self.t)
            p -= (self.rate if rate is None else rate) * m_hat / (np.sqrt(v_hat) + 1e-8)


def follow(targets: list[np.ndarray], online: list[np.ndarray], tau: float) -> None:
    """target ← (1 - τ)·target + τ·online, in place."""
    for t, o in zip(targets, online, strict=True):
        t += tau * (o - t)


def arrays(net: Perceptron, member: int | None = None) -> list[np.ndarray]:
    """[weight, bias, ...] of a perceptron, or of one member of an ensemble: writable float64 copies."""
    pairs = [p for pair in zip(net.weights, net.biases, strict=True) for p in pair]
    return [np.array(p if member is None else p[member], dtype=np.float64) for p in pairs]


def start(method: Any, config: Any, shapes: Shapes, seed: int = 0) -> Any:
    """A method's first state, every floating-point array in float64; one compilation."""

    def init(key: jax.Array) -> Any:
        state = method.init(config, shapes, key)
        return jax.tree.map(lambda x: x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x, state)

    return jax.jit(init)(jax.random.key(seed))


def parameter_count(method: Any, config: Any, shapes: Shapes, *names: str) -> int:
    """How many numbers these fields of a method's state hold."""
    state = jax.eval_shape(lambda: method.init(config, shapes, jax.random.key(0)))
    return sum(leaf.size for name in names for leaf in jax.tree.leaves(getattr(state, name)))


def difference(found: list[Any], expected: list[Any]) -> float:
    """The largest relative difference, in the Euclidean norm, over pairs of arrays."""
    worst = 0.0
    for f, e in zip(found, expected, strict=True):
        assert np.shape(f) == np.shape(e)
        worst = max(worst, float(np.linalg.norm(np.asarray(f) - e) / (np.linalg.norm(e) + 1e-300)))
    return worst


def batches(count: int, size: int, observation: int, action: int, seed: int = 0) -> Iterator[Any]:
    """Random transitions, a fifth of them terminal: s, a, r, s', terminal."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield (
            rng.normal(size=(size, observation)),
            rng.uniform(-1, 1, (size, action)),
            rng.normal(size=size),
            rng.normal(size=(size, observation)),
            (rng.uniform(size=size) < 0.2).astype(float),
        )
