"""TD3-BC against a plain float64 transcription: consecutive updates, the delay included."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import td3_bc
from score_rl.algorithms.algorithm import Batch, Shapes
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, perceptron, start

OBSERVATIONS, ACTIONS, SIZE = 4, 2, 10


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.updates = config, 0
        self.actor, self.critics = arrays(state.actor), [arrays(state.critics, i) for i in range(2)]
        self.target_actor = [p.copy() for p in self.actor]
        self.target_critics = [[p.copy() for p in critic] for critic in self.critics]
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.critic_adams = [ref.Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def update(
        self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, noise: Any
    ) -> None:
        c = self.config
        smoothing = np.clip(c.target_noise * noise, -c.target_noise_clip, c.target_noise_clip)
        a2 = np.clip(np.tanh(perceptron(self.target_actor, s2)) + smoothing, -1, 1)
        next_values = [perceptron(critic, beside(s2, a2))[:, 0] for critic in self.target_critics]
        y = r + c.discount * (1 - terminal) * np.minimum(*next_values)
        for critic, adam in zip(self.critics, self.critic_adams, strict=True):
            adam.step(critic, gradient(lambda p: ((perceptron(p, beside(s, a))[:, 0] - y) ** 2).sum() / len(r), critic))
        self.updates += 1
        if self.updates % c.actor_delay == 0:
            q = perceptron(self.critics[0], beside(s, np.tanh(perceptron(self.actor, s))))
            scale = c.alpha / np.abs(q).mean()

            def loss(parameters: Parameters) -> Any:
                pi = np.tanh(perceptron(parameters, s))
                return -scale * perceptron(self.critics[0], beside(s, pi)).mean() + ((pi - a) ** 2).mean()

            self.actor_adam.step(self.actor, gradient(loss, self.actor))
            follow(self.target_actor, self.actor, c.tau)
            for target, online in zip(self.target_critics, self.critics, strict=True):
                follow(target, online, c.tau)


def differences(state: Any, reference: Any) -> Iterator[Any]:
    yield difference(arrays(state.actor), reference.actor)
    yield difference(arrays(state.target_actor), reference.target_actor)
    for i in range(2):
        yield difference(arrays(state.critics, i), reference.critics[i])
        yield difference(arrays(state.target_critics, i), reference.target_critics[i])


@pytest.mark.parametrize(
    "options", [{}, {"actor_delay": 1, "alpha": 1.0}, {"actor_delay": 3, "discount": 0.9, "tau": 0.1}], ids=str
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = td3_bc.Config(hidden=(7, 6), target_noise=0.4, **options)
        state = start(td3_bc, config, Shapes(OBSERVATIONS, ACTIONS))
        reference = Reference(config, state)
        step, before = jax.jit(td3_bc.update, static_argnums=4), arrays(state.actor)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(6, SIZE, OBSERVATIONS, ACTIONS)):
            key = jax.random.key(number)
            noise = np.asarray(jax.random.normal(key, a.shape, jnp.float64))
            reference.update(s, a, r, s2, terminal, noise)
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            state, metrics = step(config, state, batch, key, number % config.actor_delay)
            assert ("actor_loss" in metrics) == ((number + 1) % config.actor_delay == 0)
        assert max(differences(state, reference)) < 1e-10
        assert difference(before, reference.actor) > 1e-4


def test_parameters_on_halfcheetah() -> None:
    actor = 17 * 256 + 256 + 256 * 256 + 256 + 256 * 6 + 6
    critic = 23 * 256 + 256 + 256 * 256 + 256 + 256 + 1
    count = ref.parameter_count(td3_bc, td3_bc.Config(), Shapes(17, 6), "actor", "critics")
    assert count == actor + 2 * critic
