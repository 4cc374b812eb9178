"""Fitted evaluators on a linear plant, against values and densities that are known exactly."""

import numpy as np
import pytest

from score_rl.judge.estimates import STARTS
from score_rl.store.judgements import FITTED, MODEL, PESSIMISTIC
from tests.judge import linear_plant as plant
from tests.judge.conftest import GAINS, Fitted

OWN = (plant.GAIN, plant.NOISE)  # the behaviour, which comes last
POLICIES = [(gain, 0.0) for gain in GAINS.values()] + [OWN]


def test_fitted_values_are_those_of_the_plant(evaluators: Fitted) -> None:
    values = np.array([each.value for each in evaluators.found.by_estimator[FITTED]])
    np.testing.assert_allclose(values, [plant.per_step(*each) for each in POLICIES], atol=0.01)
    assert values[0] > values[2] > values[1], "strong, own, weak"


def test_imagined_values_are_those_of_the_plant(evaluators: Fitted) -> None:
    """Over one horizon of 10 steps, from a hundred of the starts."""
    values = np.array([each.value for each in evaluators.found.by_estimator[MODEL]])
    first = evaluators.dataset.observations[evaluators.dataset.trajectories[:, 0], 0]
    start = float(np.square(first[np.linspace(0, len(first) - 1, STARTS).astype(int)]).mean())
    exact = [plant.truncated(*each, steps=10, start=start) for each in POLICIES]
    np.testing.assert_allclose(values, exact, atol=0.016)


def test_differences_have_their_signs(evaluators: Fitted) -> None:
    for kind in (FITTED, MODEL):
        strong, weak, _, behaviour = evaluators.found.by_estimator[kind]
        assert (strong.sign, weak.sign, behaviour.sign) == (1, -1, 0), kind


def test_the_pessimistic_value_is_below_the_plain_one(evaluators: Fitted) -> None:
    plain, least = (evaluators.found.by_estimator[kind] for kind in (FITTED, PESSIMISTIC))
    for one, other in zip(plain[:-1], least[:-1], strict=True):
        assert other.value < one.value
    assert least[-1].value == pytest.approx(plain[-1].value), "the behaviour is compared as it is"


def test_the_density_is_the_behaviours(evaluators: Fitted) -> None:
    states = np.linspace(-0.6, 0.6, 7, dtype=np.float32)[:, None]
    found = evaluators.behaviour.at(states)
    np.testing.assert_allclose(found.mean, -plant.GAIN * states, atol=0.04)
    np.testing.assert_allclose(found.deviation, plant.NOISE, rtol=0.12)


def test_nobody_strays_where_everything_was_recorded(evaluators: Fitted) -> None:
    assert evaluators.found.strayed.max() < 0.05
