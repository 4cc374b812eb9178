"""Every rule of docs/judging.md: just beyond its limit, and just within."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from score_rl.judge.verdict import Asked, agreement, middle_value, rank_value, reasons_for_doubt, verdict
from score_rl.store.judgements import (
    BETTER,
    DOUBTFUL,
    FITTED,
    MODEL,
    PESSIMISTIC,
    SAME,
    WORSE,
    Distance,
    Estimate,
    Histogram,
    PolicyJudgement,
    rank_of,
)

NOTHING = Histogram(0.0, 1.0, (1.0,), (1.0,))
NEAR = Distance((0.1,), (0.1,), 0.01, 0.01, 0.0, 0.0, (NOTHING,), NOTHING)
UP, DOWN, OPEN = (0.1, 0.3), (-0.3, -0.1), (-0.1, 0.3)


def estimate(interval: tuple[float, float]) -> Estimate:
    middle = sum(interval) / 2
    return Estimate(1 + middle, 1 + interval[0], 1 + interval[1], middle, *interval)


def asked(fitted: Any = UP, model: Any = UP, pessimistic: Any = UP, **other: Any) -> Asked:
    estimates = {FITTED: estimate(fitted), PESSIMISTIC: estimate(pessimistic), MODEL: estimate(model)}
    far = dataclasses.replace(NEAR, **{n: other.pop(n) for n in list(other) if n in Distance.__dataclass_fields__})
    plain: Mapping[str, Any] = {"strayed": 0.1, "strayed_behaviour": 0.1, "seeds_apart": None}
    return Asked(estimates=estimates, distance=far, **{**plain, **other})


@pytest.mark.parametrize(
    ("fitted", "model", "pessimistic", "expected"),
    [
        (UP, UP, UP, BETTER),
        (UP, UP, (-0.3, 0.1), SAME),
        (UP, OPEN, UP, SAME),
        (OPEN, UP, UP, SAME),
        (OPEN, OPEN, UP, SAME),
        (DOWN, DOWN, DOWN, WORSE),
        (DOWN, OPEN, DOWN, WORSE),
        (OPEN, DOWN, DOWN, WORSE),
        (UP, DOWN, UP, DOUBTFUL),
        (DOWN, UP, DOWN, DOUBTFUL),
    ],
)
def test_what_the_estimators_say_decides(fitted: Any, model: Any, pessimistic: Any, expected: str) -> None:
    words, reasons = verdict(asked(fitted, model, pessimistic))
    assert words == expected
    assert all(reason.endswith(".") for reason in reasons)
    assert reasons


@pytest.mark.parametrize(
    ("beyond", "within", "says"),
    [
        ({"unknown": 0.34}, {"unknown": 0.33}, "34% of the states"),
        ({"strayed": 0.36}, {"strayed": 0.34}, "36% of the steps"),
        ({"strayed": 0.9}, {"strayed": 0.9, "strayed_behaviour": 0.66}, "90% of the steps"),
        ({"saturated": 0.51}, {"saturated": 0.49}, "51% of its actions"),
        ({"saturated": 0.9}, {"saturated": 0.9, "saturated_in_data": 0.46}, "90% of its actions"),
        ({"seeds_apart": 0.51}, {"seeds_apart": 0.49}, "0.51 half-ranges"),
        ({"training_says": "Q is 9."}, {"training_says": None}, "Q is 9."),
    ],
)
def test_what_is_not_to_be_trusted(beyond: Any, within: Any, says: str) -> None:
    words, reasons = verdict(asked(**beyond))
    assert words == DOUBTFUL
    assert len(reasons) == 1
    assert says in reasons[0]
    assert verdict(asked(**within))[0] == BETTER


def test_a_reason_counts_however_good_the_estimates_are_and_all_are_said() -> None:
    assert len(reasons_for_doubt(asked(unknown=0.9, saturated=0.9, strayed=0.9))) == 3


def test_rank_is_what_pessimistic_q_and_model_both_are_sure_of() -> None:
    assert rank_value(asked(pessimistic=(0.1, 0.2), model=(0.4, 0.6)).estimates) == pytest.approx(0.1)
    assert rank_value(asked(pessimistic=(0.4, 0.6), model=(-0.2, 0.9)).estimates) == pytest.approx(-0.2)
    assert middle_value(asked(pessimistic=(0.4, 0.6), model=(-0.2, 0.8)).estimates) == pytest.approx(0.3)


def test_who_is_not_to_be_trusted_comes_last_whatever_it_claims() -> None:
    claims, worse = PolicyJudgement(DOUBTFUL, (), rank_value=5.0), PolicyJudgement(WORSE, (), rank_value=-5.0)
    broken = PolicyJudgement(DOUBTFUL, ())
    assert rank_of(worse) > rank_of(claims) > rank_of(broken)


def test_agreement_counts_signs_and_pairs() -> None:
    one, other = asked(UP, UP).estimates, asked(OPEN, DOWN).estimates
    said = agreement({"a": one, "b": other})
    assert "1 of 2 policies" in said
    assert "100% of all pairs" in said
    assert agreement({"a": one}).endswith("against the behaviour.")
