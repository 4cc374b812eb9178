"""What the ablations and sweeps make of curves."""

import dataclasses

import numpy as np
import pytest

from score_rl.paper.experiments.curves import SCORE, TARGET, UNCERTAINTY, averaged, group_numbers
from score_rl.report.results import Curve, RunResult
from tests.paper.evidence.made_up import curve_of


def runs() -> list[RunResult]:
    """Three seeds with nine evaluations each: 1, 2, 3, then 10 to 60 and what the seed adds."""
    return [
        curve_of("score", "replica:hopper-medium", [1, 2, 3, *(n + seed for n in range(10, 70, 10))], seed=seed)
        for seed in range(3)
    ]


def test_a_score_is_the_mean_of_the_last_six_evaluations() -> None:
    late, early = (averaged(runs(), SCORE, late=part) for part in (True, False))
    assert late is not None
    assert early is not None
    assert late.value == pytest.approx(36.0)
    assert late.high - late.value == pytest.approx(4.302653 / np.sqrt(3), rel=1e-5)  # Student's, deviation 1
    assert (early.value, early.low, early.high) == (2.0, 2.0, 2.0)
    assert averaged(runs(), TARGET, late=True) is None


def test_a_run_with_few_evaluations_has_none_before_its_last_six() -> None:
    few = [curve_of("score", "replica:hopper-medium", [4, 6], seed=seed) for seed in range(3)]
    late = averaged(few, SCORE, late=True)
    assert late is not None
    assert late.value == 5.0
    assert averaged(few, SCORE, late=False) is None


def test_what_is_stored_of_a_variant() -> None:
    with_u = [
        dataclasses.replace(run, curves={**run.curves, UNCERTAINTY: Curve(np.arange(3), np.array([0.1, 0.9, 0.2]))})
        for run in runs()
    ]
    found = group_numbers(with_u, SCORE, TARGET)
    assert found["last"][SCORE]["mean"] == 61.0
    assert found["last"][TARGET] is None
    assert found["last"][UNCERTAINTY]["mean"] == pytest.approx(0.2)
    assert found["late"][SCORE]["mean"] == pytest.approx(36.0)
    assert found["early"][SCORE]["mean"] == 2.0
    assert found["largest"] == {TARGET: None, UNCERTAINTY: pytest.approx(0.9)}
