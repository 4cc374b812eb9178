"""Weighted estimates against exact values: a linear plant, and a plant that may end at any step."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.judge.candidates import Candidates
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import Noise
from score_rl.judge.importance import Weighted, weighted_estimates
from tests.judge import linear_plant as plant
from tests.judge.test_evidence import recording

CLOSE, DISCOUNT = 0.45, 0.8  # k near the behaviour's, so that weights stay small


def fitted(values: Any) -> Any:
    """Values in the place of fitted ones, the same for all policies: (policies, members, batch)."""
    return SimpleNamespace(per_step=lambda s, a: np.stack([values(s[:, 0], mine[:, 0])[None] for mine in a]))


def weighted(dataset: Dataset, gain: float, values: Any, discount: float = plant.DISCOUNT) -> Weighted:
    candidates = Candidates({"linear": plant.linear(gain)}, [-1.0], [1.0])
    density: Any = plant.ExactDensity()
    return weighted_estimates(Evidence(dataset, discount), candidates, density, fitted(values))


def test_importance_sampling_finds_the_value_of_another_policy() -> None:
    """Of the policy with the behaviour's noise: that is what the weights stand for."""
    found = weighted(plant.logs(4000), CLOSE, lambda s, a: 0 * s)
    policy, behaviour = found.importance
    exact, own = (plant.truncated(gain, plant.NOISE) for gain in (CLOSE, plant.GAIN))
    assert behaviour.value == pytest.approx(own, rel=0.02)
    assert policy.low < exact < policy.high
    assert policy.difference == pytest.approx(exact - own, rel=0.2)
    assert behaviour.difference == 0
    assert 5 < found.effective[0] < found.effective[1]
    assert found.effective[1] == pytest.approx(4000)


def test_doubly_robust_with_right_values_needs_no_luck() -> None:
    """Right values leave nothing over, so 60 trajectories do where weights alone say little."""
    few = plant.logs(60, seed=1)
    found = weighted(few, 1.2, lambda s, a: plant.value(1.2, s, a))
    starts = few.observations[few.trajectories[:, 0], 0].astype(float)
    exact = plant.value(1.2, starts, -1.2 * starts).mean()
    assert found.effective[0] < 15
    assert found.doubly_robust[0].value == pytest.approx(exact, abs=0.006)
    assert abs(found.importance[0].value - exact) > 0.006


def test_doubly_robust_with_values_of_0_is_weighted_rewards() -> None:
    """Discounted sums times 1 - γ, beside discounted means."""
    found = weighted(plant.logs(300), CLOSE, lambda s, a: 0 * s)
    mean = found.importance[0].value * (1 - plant.DISCOUNT**plant.STEPS)
    assert found.doubly_robust[0].value == pytest.approx(mean, rel=1e-6)


def with_ends(trajectories: int, hazard: Any, longest: int, seed: int = 0) -> Dataset:
    """A reward of 1 in every step; each step may be the last, by a hazard that depends on the action."""
    rng = np.random.default_rng(seed)
    rows, ends, actions = [], [], []
    for number in range(trajectories):
        for _ in range(longest):
            action = float(np.clip(plant.NOISE * rng.normal(), -1, 1))
            ended = rng.random() < hazard(action)
            rows.append(number)
            actions.append(action)
            ends.append(ended)
            if ended:
                break
    column = np.zeros((len(rows), 1))
    last = np.append(np.diff(rows) > 0, True)
    return make_dataset(
        "ends", observations=column, actions=np.array(actions)[:, None], rewards=np.ones(len(rows)),
        next_observations=column, terminals=np.array(ends), timeouts=last & ~np.array(ends),
    )  # fmt: skip


class AroundZero(plant.ExactDensity):
    def at(self, observations: np.ndarray) -> Noise:
        return Noise(np.zeros(observations.shape), np.full(observations.shape, plant.NOISE))


def estimates_with_ends(dataset: Dataset, action: float) -> Weighted:
    candidates = Candidates({"always": lambda s: np.full(s.shape, action)}, [-1.0], [1.0])
    density: Any = AroundZero()
    return weighted_estimates(Evidence(dataset, DISCOUNT), candidates, density, fitted(lambda s, a: 0 * s))


def lasting(hazard: float) -> float:
    """(1 - γ)·Σ γᵗ·(1 - hazard)ᵗ."""
    return (1 - DISCOUNT) / (1 - DISCOUNT * (1 - hazard))


@pytest.mark.parametrize("longest", [400, 12], ids=["all end", "some stop"])
def test_what_ended_earns_nothing_for_ever(longest: int) -> None:
    """A policy's own hazard comes out, whether recordings stopped early or not."""

    def hazard(action: float) -> float:
        return float(np.clip(0.15 + 0.3 * action, 0, 1))

    dataset = with_ends(3000, hazard, longest)
    found = estimates_with_ends(dataset, -0.2)
    evidence = Evidence(dataset, DISCOUNT)
    assert found.importance[1].value == pytest.approx(lasting(0.15), rel=0.04)
    assert evidence.recorded_value() == pytest.approx(found.importance[1].value, rel=0.02)
    assert found.importance[0].value == pytest.approx(lasting(0.15 - 0.06), rel=0.05)
    assert found.importance[0].difference_low > 0


def test_two_short_recordings_that_ended_are_worth_little_per_step() -> None:
    """Two rewards and then nothing: not two rewards per two steps."""
    dataset = with_ends(200, lambda action: 1.0, 5)
    assert estimates_with_ends(dataset, 0.0).importance[1].value == pytest.approx(1 - DISCOUNT)


def test_what_was_recorded_behind_a_terminal_is_not_earned() -> None:
    """Robots solve their task in the second step, and recordings go on for two more; one never solves it."""
    solved = tuple(range(1, 32, 4))
    dataset = recording([4] * 9, terminal_rows=solved, rewards=[1.0, 1.0, 9.0, 9.0] * 8 + [0.0] * 4)
    found = estimates_with_ends(dataset, 0.0).importance[1]
    recorded, rest = (1 - DISCOUNT**4) / (1 - DISCOUNT), DISCOUNT**4 / (1 - DISCOUNT)
    assert found.value == pytest.approx(8 / 9 * (1 + DISCOUNT) / (recorded + 8 / 9 * rest))
    assert Evidence(dataset, DISCOUNT).recorded_value() == pytest.approx(found.value)
