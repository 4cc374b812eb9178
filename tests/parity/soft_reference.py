"""SAC's actor and temperature in plain NumPy, for the transcriptions of the methods built on it."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.soft_actor import SoftActor
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Adam, arrays, beside, difference, gradient, perceptron, smallest

SIZE = 6
SHAPES = Shapes(observation=3, action=2)


def distribution(network: list[np.ndarray], s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and log-std, clipped to [-5, 2]."""
    output = perceptron(network, s)
    half = output.shape[-1] // 2
    return output[..., :half], ref.clip(output[..., half:], -5.0, 2.0)


def sample(network: list[np.ndarray], s: np.ndarray, noise: Any) -> tuple[np.ndarray, np.ndarray]:
    """a = tanh(μ + σε) and log π(a), by the change of variables as it is written in textbooks."""
    mean, log_std = distribution(network, s)
    x = mean + np.exp(log_std) * noise
    normal = -0.5 * ((x - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return np.tanh(x), (normal - np.log(1 - np.tanh(x) ** 2)).sum(-1)


def q_of(critic: list[np.ndarray], s: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Q(s, a); `s` may lack the axes of samples that `a` has."""
    return perceptron(critic, beside(np.broadcast_to(s, (*a.shape[:-1], s.shape[-1])), a))[..., 0]


def all_q(critics: list[list[np.ndarray]], s: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.array([q_of(critic, s, a) for critic in critics])


class SoftReference:
    """Actor and temperature with their optimisers."""

    def __init__(self, soft: SoftActor, rate: float) -> None:
        self.network, self.log_alpha = arrays(soft.network), [np.array(float(soft.log_temperature))]
        self.network_adam, self.alpha_adam = Adam(self.network, rate), Adam(self.log_alpha, rate)

    @property
    def alpha(self) -> float:
        return float(np.exp(self.log_alpha[0]))

    def tune(self, s: np.ndarray, noise: Any) -> None:
        entropy_error = sample(self.network, s, noise)[1].mean() - noise.shape[-1]
        self.alpha_adam.step(self.log_alpha, gradient(lambda p: -p[0] * entropy_error, self.log_alpha))

    def actor_gradient(
        self, alpha: float, critics: list[list[np.ndarray]], s: np.ndarray, noise: Any, value: Any = None
    ) -> list[np.ndarray]:
        """Of E[α·log π - Q]; Q is the least of the critics unless told otherwise."""
        value = value or (lambda a: smallest(all_q(critics, s, a), 0))

        def loss(network: list[np.ndarray]) -> Any:
            a, log_prob = sample(network, s, noise)
            return (alpha * log_prob - value(a)).mean()

        return gradient(loss, self.network)


def batch_of(s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray) -> Batch:
    """With the columns that none of these methods reads filled in."""
    actions, rewards = jnp.asarray(a), jnp.asarray(r)
    return Batch(
        jnp.asarray(s), actions, rewards, jnp.asarray(s2), jnp.asarray(terminal), jnp.arange(len(r)),
        next_actions=0 * actions, followed=0 * rewards,
    )  # fmt: skip


def random_key(seed: int) -> jax.Array:
    """Of a generator that compiles in no time; which numbers are drawn is of no account here."""
    return jax.random.key(seed, impl="unsafe_rbg")


@functools.cache
def compiled(function: Callable[..., Any], static: tuple[Any, ...] = ()) -> Any:
    """Once for all tests whose settings differ in traced numbers alone."""
    return jax.jit(function, static_argnums=static)


@functools.cache
def started(method: Any, config: Any, shapes: Shapes) -> Any:
    """A method's first state, every floating-point array in float64."""

    def init(key: jax.Array) -> Any:
        state = method.init(config, shapes, key)
        return jax.tree.map(lambda x: x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x, state)

    return jax.jit(init)(random_key(3))


def train_both(
    method: Any,
    Reference: Any,
    config: Any,
    reference_config: Any = None,
    updates: int = 4,
    prepare: Callable[..., Any] = lambda state: state,
) -> tuple[Any, Any]:
    """A method's state and its transcription's after the same updates on the same batches and random numbers."""
    state = started(method, config, SHAPES)
    # A head as small as it starts would hide the policy's part in everything.
    louder = jax.tree.map(lambda p: 3 * p, state.soft.network)
    state = prepare(state._replace(soft=state.soft._replace(network=louder)))
    reference = Reference(reference_config or config, state)
    step = compiled(method.update, static=4)
    before = arrays(state.soft.network)
    for number, columns in enumerate(ref.batches(updates, SIZE, *SHAPES)):
        key = random_key(number)
        batch = batch_of(*columns)
        draws = jax.tree.map(np.asarray, compiled(method.draw)(config, batch, key))
        state, metrics = step(config, state, batch, key, 0)
        reference.update(*columns, draws)
        assert all(np.isfinite(value) for value in metrics.values())
    assert difference(before, reference.soft.network) > 1e-4, "the actor did not move: agreement would mean nothing"
    return state, reference


def largest_difference(state: Any, reference: Any) -> float:
    """Relative, over actor, temperature, critics and targets, and over Adam's means of their gradients.

    A first step of Adam hardly depends on the size of a gradient: its means do.
    """
    soft, expected = state.soft, reference.soft
    found = [
        difference(arrays(soft.network), expected.network),
        difference(arrays(soft.network_optimiser.mu), expected.network_adam.m),
        difference([soft.log_temperature], expected.log_alpha),
        difference([soft.temperature_optimiser.mu], expected.alpha_adam.m),
    ]
    for i, (online, adam, target) in enumerate(zip(reference.critics, reference.adams, reference.targets, strict=True)):
        found += [
            difference(arrays(state.critics, i), online),
            difference(arrays(state.critic_optimiser.mu, i), adam.m),
            difference(arrays(state.target_critics, i), target),
        ]
    return max(found)
