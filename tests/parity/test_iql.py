"""IQL against a plain float64 transcription: the order of its updates, the bound of the weight, the schedule."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import iql
from score_rl.algorithms.algorithm import Batch, Shapes
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, perceptron, start

OBSERVATIONS, ACTIONS, SIZE = 4, 3, 10


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.updates = config, 0
        self.actor = [*arrays(state.actor.net), np.array(state.actor.log_std)]
        self.critics = [arrays(state.critics, i) for i in range(2)]
        self.targets = [[p.copy() for p in critic] for critic in self.critics]
        self.value = arrays(state.value)
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.value_adam = ref.Adam(self.value, config.value_learning_rate)
        self.critic_adams = [ref.Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def update(self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray) -> None:
        c, n = self.config, len(r)
        q = np.minimum(*(perceptron(critic, beside(s, a))[:, 0] for critic in self.targets))

        def value_loss(parameters: Parameters) -> Any:
            u = q - perceptron(parameters, s)[:, 0]
            return (np.abs(c.expectile - (u.real < 0)) * u**2).sum() / n

        self.value_adam.step(self.value, gradient(value_loss, self.value))
        weights = np.minimum(np.exp(c.temperature * (q - perceptron(self.value, s)[:, 0])), c.largest_weight)
        self.weights = weights

        def actor_loss(parameters: Parameters) -> Any:
            mean, log_std = np.tanh(perceptron(parameters[:-1], s)), ref.clip(parameters[-1], -5, 2)
            variance = np.exp(log_std) ** 2
            log_density = -((a - mean) ** 2) / (2 * variance) - np.log(2 * np.pi * variance) / 2
            return -(weights * log_density.sum(1)).sum() / n

        rate = c.actor_learning_rate
        if c.schedule_steps:
            rate *= (1 + np.cos(np.pi * min(self.updates / c.schedule_steps, 1))) / 2
        self.actor_adam.step(self.actor, gradient(actor_loss, self.actor), rate)
        y = r + c.discount * (1 - terminal) * perceptron(self.value, s2)[:, 0]
        for critic, target, adam in zip(self.critics, self.targets, self.critic_adams, strict=True):
            adam.step(critic, gradient(lambda p: ((perceptron(p, beside(s, a))[:, 0] - y) ** 2).sum() / n, critic))
            follow(target, critic, c.tau)
        self.updates += 1


@cache
def first_state() -> Any:
    """The same for all options; drawing orthogonal weights takes seconds to compile."""
    return start(iql, iql.Config(hidden=(7, 6)), Shapes(OBSERVATIONS, ACTIONS))


@pytest.mark.parametrize(
    "options",
    [{}, {"schedule_steps": 4, "expectile": 0.9}, {"schedule_steps": 0, "largest_weight": 1.5, "tau": 0.1}],
    ids=str,
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = iql.Config(hidden=(7, 6), **options)
        state = first_state()
        # Log-standard deviations out of their range, where they have no gradient, and one within.
        state = state._replace(actor=state.actor._replace(log_std=jnp.asarray([-5.5, 0.3, 2.5])))
        reference = Reference(config, state)
        step, bounded = jax.jit(iql.update, static_argnums=4), 0
        for s, a, r, s2, terminal in ref.batches(6, SIZE, OBSERVATIONS, ACTIONS):
            reference.update(s, a, r, s2, terminal)
            bounded += (reference.weights == config.largest_weight).sum()
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            state, _ = step(config, state, batch, jax.random.key(0), 0)
        assert bounded > 0, "the bound of the weight was never met"
        assert difference([*arrays(state.actor.net), state.actor.log_std], reference.actor) < 1e-10
        assert difference(arrays(state.value), reference.value) < 1e-10
        for i in range(2):
            assert difference(arrays(state.critics, i), reference.critics[i]) < 1e-10
            assert difference(arrays(state.target_critics, i), reference.targets[i]) < 1e-10


def test_the_schedule_ends_at_zero_and_stays() -> None:
    config = iql.Config(schedule_steps=10)
    rates = [float(iql.actor_rate(config, jnp.asarray(step))) for step in (0, 5, 10, 20)]
    np.testing.assert_allclose(rates, [3e-4, 1.5e-4, 0, 0], atol=1e-10)
