"""Distances from the data, of policies whose distance is known, with evaluators fitted to a linear plant."""

import numpy as np
import pytest

from score_rl.judge.candidates import Candidates
from score_rl.judge.distance import between_seeds, chosen_rows, distances
from score_rl.store.judgements import Distance
from tests.judge import linear_plant as plant
from tests.judge.conftest import Fitted


def distance_of(fitted: Fitted, policy: object) -> Distance:
    rows = chosen_rows(fitted.dataset)
    recorded = fitted.dataset.actions[rows]
    if policy is None:
        actions = recorded
    else:
        actions = Candidates({"p": policy}, [-1.0], [1.0]).act_on(fitted.dataset.observations[rows])[0]  # type: ignore[dict-item]
    (found,) = distances(fitted.dataset, actions[None], rows, fitted.model, fitted.behaviour)
    return found


def test_recorded_actions_are_as_unknown_as_one_in_a_hundred(evaluators: Fitted) -> None:
    own = distance_of(evaluators, None)
    assert own.unknown == pytest.approx(0.01, abs=0.002)
    assert own.unlikely == pytest.approx(0.01, abs=0.002)
    assert own.moved == (0.0,)
    assert own.saturated == own.saturated_in_data
    np.testing.assert_array_equal(own.actions[0].data, own.actions[0].policy)


def test_actions_that_were_never_taken_are_unknown_unlikely_and_at_their_bounds(evaluators: Fitted) -> None:
    far = distance_of(evaluators, lambda s: np.ones_like(s))
    near = distance_of(evaluators, plant.linear(plant.GAIN))
    assert far.unknown > 0.03 > near.unknown, "a linear plant can be continued far beyond its data"
    assert far.unlikely > 0.5
    assert near.unlikely == 0
    assert far.saturated == 1.0
    assert far.saturated_in_data < 0.02


def test_moves_are_mean_distances_in_half_ranges(evaluators: Fitted) -> None:
    near = distance_of(evaluators, plant.linear(plant.GAIN))
    expected = plant.NOISE * np.sqrt(2 / np.pi)  # the mean of |N(0, σ²)|
    assert near.moved[0] == pytest.approx(expected, rel=0.03)
    assert near.behaviour_spread[0] == pytest.approx(expected, rel=0.05)


def test_histograms_are_shares_between_the_bounds(evaluators: Fitted) -> None:
    found = distance_of(evaluators, lambda s: np.full_like(s, 0.99))
    (histogram,) = found.actions
    assert (histogram.low, histogram.high) == (-1.0, 1.0)
    assert sum(histogram.data) == pytest.approx(1, abs=1e-3)
    assert histogram.policy[-1] == 1.0
    assert sum(found.uncertainty.policy) == pytest.approx(1, abs=1e-3)


def test_seeds_apart_is_over_a_group_alone() -> None:
    actions = np.array([[[0.0]], [[1.0]], [[5.0]]])
    assert between_seeds(actions, ["a", "a", "b"], np.array([2.0])) == [0.25, 0.25, None]


def test_rows_that_are_asked_about_are_spread_over_all(evaluators: Fitted) -> None:
    rows = chosen_rows(evaluators.dataset)
    assert rows[0] == 0
    assert rows[-1] == len(evaluators.dataset) - 1
