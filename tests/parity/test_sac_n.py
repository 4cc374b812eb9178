"""SAC-N against a plain float64 transcription: consecutive full updates."""

from typing import Any

import jax
import numpy as np
import pytest

from score_rl.algorithms import sac_n
from score_rl.algorithms.presets import preset
from tests.parity.numpy_reference import Adam, arrays, follow, gradient, smallest
from tests.parity.soft_reference import SIZE, SoftReference, all_q, largest_difference, q_of, sample, train_both


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config = config
        self.soft = SoftReference(state.soft, config.actor_learning_rate)
        self.critics = [arrays(state.critics, i) for i in range(config.critics)]
        self.targets = [[p.copy() for p in critic] for critic in self.critics]
        self.adams = [Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def target(self, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, draws: Any) -> np.ndarray:
        a2, log_prob = sample(self.soft.network, s2, draws.there)
        v2 = smallest(all_q(self.targets, s2, a2), 0) - self.soft.alpha * log_prob
        return r + self.config.discount * (1 - terminal) * v2

    def critic_gradients(self, s: np.ndarray, a: np.ndarray, y: np.ndarray) -> list[list[np.ndarray]]:
        return [gradient(lambda p: ((q_of(p, s, a) - y) ** 2).mean(), critic) for critic in self.critics]

    def update(
        self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, draws: Any
    ) -> None:
        soft = self.soft
        y = self.target(r, s2, terminal, draws)
        critic_gradients = self.critic_gradients(s, a, y)
        actor_gradient = soft.actor_gradient(soft.alpha, self.critics, s, draws.here)
        soft.tune(s, draws.here)
        soft.network_adam.step(soft.network, actor_gradient)
        for critic, adam, slope, followed in zip(self.critics, self.adams, critic_gradients, self.targets, strict=True):
            adam.step(critic, slope)
            follow(followed, critic, self.config.tau)


SMALL: dict[str, Any] = {"hidden": (6, 5, 4), "critics": 4, "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"discount": 0.9, "tau": 0.1, "actor_learning_rate": 0.01},
        {"critics": SIZE + 1},  # more than rows: the actor's slope goes through the least of them alone
    ],
    ids=str,
)
def test_updates_agree(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        assert largest_difference(*train_both(sac_n, Reference, sac_n.Config(**(SMALL | options)))) < 1e-8


def test_the_reference_notices_a_wrong_setting() -> None:
    with jax.enable_x64(True):
        right, wrong = sac_n.Config(**SMALL), sac_n.Config(**(SMALL | {"discount": 0.98}))
        assert largest_difference(*train_both(sac_n, Reference, right, wrong, updates=1)) > 1e-6


def test_presets_are_the_table() -> None:
    kinds = ("random", "medium-replay", "medium", "medium-expert", "expert", "full-replay")
    wanted = {
        "halfcheetah": (10, 10, 10, 10, 10, 10),
        "hopper": (500, 200, 500, 200, 500, 200),
        "walker2d": (20, 20, 20, 20, 100, 20),
    }
    for task, critics in wanted.items():
        for kind, number in zip(kinds, critics, strict=True):
            assert sac_n.Config(**preset("sac-n", f"d4rl:{task}-{kind}-v2")).critics == number, (task, kind)
