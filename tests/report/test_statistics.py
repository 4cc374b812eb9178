"""Intervals and aggregates against what they are by definition."""

import numpy as np
import pytest
from scipy import stats

from score_rl.errors import InputError
from score_rl.report.results import Curve
from score_rl.report.statistics import (
    Estimate,
    aggregates,
    companies,
    comparable,
    mean_curve,
    mean_over_seeds,
    overlap,
    printed_interval,
    profiles,
    score_matrix,
    seeded,
    t_interval,
    welch,
)


@pytest.fixture
def matrix() -> np.ndarray:
    return np.random.default_rng(0).normal(60, 25, (5, 8))


def test_aggregates_are_what_their_names_say(matrix: np.ndarray) -> None:
    found = aggregates({"m": matrix}, repetitions=50)["m"]
    ordered = np.sort(matrix.ravel())
    assert found["iqm"].value == pytest.approx(ordered[10:30].mean())
    assert found["mean"].value == pytest.approx(matrix.mean())
    assert found["median"].value == pytest.approx(np.median(matrix.mean(0)))
    assert found["optimality_gap"].value == pytest.approx(np.where(matrix < 100, 100 - matrix, 0).mean())
    for estimate in found.values():
        assert estimate.low < estimate.value < estimate.high


def test_the_interval_of_the_mean_is_that_of_a_stratified_bootstrap(matrix: np.ndarray) -> None:
    """For the mean the bootstrap's spread is known: sqrt(sum over data sets of s²/n) / number of data sets."""
    found = aggregates({"m": matrix}, repetitions=4000)["m"]["mean"]
    spread = np.sqrt((matrix.var(0) / len(matrix)).sum()) / matrix.shape[1]
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * spread, rel=0.06)


def test_the_seed_decides_the_interval_and_nothing_else_changes(matrix: np.ndarray) -> None:
    np.random.seed(12)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(12)  # noqa: NPY002
    once = aggregates({"m": matrix}, repetitions=100, seed=1)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002
    assert once == aggregates({"m": matrix}, repetitions=100, seed=1)
    other = aggregates({"m": matrix}, repetitions=100, seed=2)
    assert other["m"]["iqm"].low != once["m"]["iqm"].low
    assert other["m"]["iqm"].value == once["m"]["iqm"].value
    both = aggregates({"first": matrix + 3, "m": matrix}, repetitions=100, seed=1)
    assert both["m"] == once["m"], "who else is compared must not change an interval"


def test_the_generator_is_restored_after_a_failure() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    with pytest.raises(ZeroDivisionError), seeded(0):
        1 / 0  # noqa: B018
    assert np.random.random() == expected  # noqa: NPY002


def test_profiles_are_shares_of_runs(matrix: np.ndarray) -> None:
    from rliable.library import score_distributions

    thresholds = np.array([0.0, 30.0, 60.0, matrix[0, 0], 200.0])
    found = profiles({"m": matrix}, thresholds, repetitions=200)["m"]
    np.testing.assert_allclose(found.share, score_distributions(matrix, thresholds))
    assert (found.low <= found.share).all()
    assert (found.share <= found.high).all()
    assert found.share[-1] == 0
    again = profiles({"m": matrix}, thresholds, repetitions=200)["m"]
    np.testing.assert_array_equal(found.low, again.low)
    default = profiles({"m": matrix}, repetitions=10)["m"]
    assert default.thresholds[-1] > matrix.max()
    assert default.share[-1] == 0


def test_one_seed_has_no_interval(matrix: np.ndarray) -> None:
    found = aggregates({"m": matrix[:1]})["m"]["mean"]
    assert found.value == pytest.approx(matrix[0].mean())
    assert not found.has_interval
    assert not mean_over_seeds(np.array([3.0])).has_interval
    assert np.isnan(profiles({"m": matrix[:1]})["m"].low).all()


def test_students_interval(matrix: np.ndarray) -> None:
    low, high = t_interval(matrix)
    expected = stats.t.interval(0.95, 4, matrix.mean(0), matrix.std(0, ddof=1) / np.sqrt(5))
    np.testing.assert_allclose((low, high), expected)
    estimate = mean_over_seeds(matrix[:, 0])
    assert (estimate.low, estimate.high) == pytest.approx((low[0], high[0]))
    with pytest.raises(InputError, match="no value"):
        mean_over_seeds(np.array([]))


def test_a_mean_curve_counts_the_same_runs_everywhere() -> None:
    long = Curve(np.array([10, 20, 30, 40]), np.array([1.0, 2.0, 3.0, 4.0]))
    short = Curve(np.array([20, 40, 60]), np.array([4.0, 8.0, 12.0]))
    mean = mean_curve([long, short])
    np.testing.assert_array_equal(mean.steps, [20, 40])
    np.testing.assert_array_equal(mean.mean, [3.0, 6.0])
    assert mean.runs == 2
    low, _ = t_interval(np.array([[2.0, 4.0], [4.0, 8.0]]))
    np.testing.assert_allclose(mean.low, low)
    with pytest.raises(InputError, match="never measured at the same update"):
        mean_curve([long, Curve(np.array([5]), np.array([1.0]))])
    with pytest.raises(InputError, match="no curve"):
        mean_curve([])


def test_unequal_numbers_of_seeds_are_refused_not_averaged() -> None:
    with pytest.raises(InputError, match=r"unequal numbers of seeds \(2 on a, 1 on b\)"):
        score_matrix("m", {"a": [1.0, 2.0], "b": [3.0]})
    with pytest.raises(InputError, match="no score on b"):
        score_matrix("m", {"a": [1.0, 2.0], "b": []})
    with pytest.raises(InputError, match="not finite"):
        score_matrix("m", {"a": [np.nan]})
    np.testing.assert_array_equal(score_matrix("m", {"a": [1, 2], "b": [3, 4]}), [[1, 3], [2, 4]])


def test_what_cannot_be_compared_is_named() -> None:
    matrices, shared, notes = comparable(
        {
            "whole": {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [1.0]},
            "uneven": {"a": [1.0], "b": [3.0, 4.0]},
            "nothing": {"a": []},
            "more seeds": {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]},
        }
    )
    assert list(matrices) == ["whole", "more seeds"]
    assert shared == ["a", "b"]
    assert matrices["more seeds"].shape == (3, 2)
    assert any("nothing has no finished run" in note for note in notes)
    assert any("Not every method finished on c" in note for note in notes)
    assert any("uneven has unequal numbers" in note for note in notes)
    matrices, shared, notes = comparable({"x": {"a": [1.0]}, "y": {"b": [1.0]}, "z": {"a": [1.0], "c": [2.0]}})
    assert (list(matrices), shared) == (["x", "z"], ["a"])
    assert "Left out of the aggregates: y, which finished only on b." in notes
    assert comparable({})[:2] == ({}, [])


def test_an_interval_follows_from_what_is_printed() -> None:
    values = np.random.default_rng(0).normal(50, 10, 5)
    measured, printed = mean_over_seeds(values), printed_interval(values.mean(), values.std(), 5)
    assert (printed.low, printed.high) == pytest.approx((measured.low, measured.high))
    assert not printed_interval(50.0, 0.0, 1).has_interval


def test_intervals_overlap_where_they_touch() -> None:
    one = Estimate(1.0, 0.0, 2.0)
    assert overlap(one, Estimate(3.0, 2.0, 4.0)) is True
    assert overlap(Estimate(3.0, 2.1, 4.0), one) is False
    assert overlap(one, Estimate(1.0, np.nan, np.nan)) is None


def test_companies_are_compared_over_the_same_data() -> None:
    scores: dict[str, dict[str, list[float]]] = {
        "wide": {"a": [1, 2], "b": [3, 4], "c": [5, 6]},
        "too": {"a": [1, 2], "b": [3, 4], "c": [5, 6]},
        "narrow": {"b": [7, 8, 9]},
        "uneven": {"a": [1], "b": [3, 4]},
        "nothing": {"a": []},
    }
    found, notes = companies(scores)
    assert [(each.datasets, list(each.matrices)) for each in found] == [
        (["a", "b", "c"], ["wide", "too"]),
        (["a", "b"], ["wide", "too"]),
        (["b"], ["wide", "too", "narrow", "uneven"]),
    ]
    assert found[2].matrices["narrow"].shape == (3, 1)
    assert any("nothing" in note for note in notes)
    assert any("uneven" in note and "unequal" in note for note in notes)
    assert companies({}) == ([], [])


def test_welch_is_scipys() -> None:
    mine = [102.2, 103.6, 105.0, 106.4, 109.0]
    n, std = 5, 2.8  # with n below the line
    expected = stats.ttest_ind_from_stats(
        np.mean(mine), np.std(mine, ddof=1), len(mine), 99.6, std * (n / (n - 1)) ** 0.5, n, equal_var=False
    ).pvalue
    assert welch(mine, 99.6, std, n) == pytest.approx(expected)
    assert welch([1.0], 99.6, std, n) is None
    assert welch([1.0, 1.0], 2.0, 0.0, 5) is None
