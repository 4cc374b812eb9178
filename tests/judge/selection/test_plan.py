"""What is planned follows from measured speeds, and stays within the time."""

from pathlib import Path

import pytest

import score_rl
from score_rl.errors import InputError
from score_rl.judge.selection.grid import DEFAULT_METHODS, grid_of, variants_of
from score_rl.judge.selection.plan import SHARE, SIZES, affordable, make_plan, seconds_of, two_stages
from score_rl.store.selections import Plan, Size, Speeds, StagePlan, Variant

VARIANTS = variants_of(DEFAULT_METHODS)


def speeds(updates: float) -> Speeds:
    return Speeds(dict.fromkeys(DEFAULT_METHODS, updates), dict.fromkeys(DEFAULT_METHODS, 5.0), 3_000.0, start=20.0)


def plan(updates: float, seconds: float) -> Plan:
    return make_plan(VARIANTS, 3, SIZES[0], speeds(updates), seconds, judged_by=3_000)


def test_the_grid_of_score_is_the_whole_product_with_spread_beginnings() -> None:
    grid = grid_of("score")
    settings = {(one["alpha"], one["beta"], one["bc_decay"]) for one in grid}
    assert len(grid) == len(settings) == 4 * 4 * 3
    for count in (8, 12, 24):
        for name in ("alpha", "bc_decay"):
            assert len({one[name] for one in grid[:count]}) == len({one[name] for one in grid}), (count, name)


def test_few_variants_hold_every_method() -> None:
    assert {variant.algorithm for variant in VARIANTS[:8]} == set(DEFAULT_METHODS)
    assert [variant.algorithm for variant in VARIANTS[:3]] == ["score", "score", "iql"]
    assert len({variant.label for variant in VARIANTS}) == len(VARIANTS)


@pytest.mark.parametrize("updates", [500.0, 3_000.0, 50_000.0])
@pytest.mark.parametrize("seconds", [600.0, 3_600.0])
def test_a_plan_keeps_its_time(updates: float, seconds: float) -> None:
    made = plan(updates, seconds)
    assert made.seconds is not None
    assert made.seconds <= SHARE * seconds
    assert made.seconds == pytest.approx(seconds_of(made.variants, 3, made.stages, speeds(updates)))


def test_more_time_trains_more() -> None:
    plans = [plan(1_000.0, seconds) for seconds in (500, 1_500, 6_000, 100_000, 1_000_000)]
    work = [len(made.variants) * made.steps for made in plans]
    assert work == sorted(work)
    assert work[0] < work[-1]
    last = plans[-1]
    assert (len(last.variants), len(last.stages), last.steps) == (len(VARIANTS), 1, 300_000)
    assert len(plans[0].stages) == 2, "where time is short, most are left behind early"


def test_too_little_time_is_refused_with_what_is_needed() -> None:
    with pytest.raises(InputError, match=r"the smallest plan takes \d+ min"):
        plan(100.0, 60.0)


def test_a_machine_that_became_slower_goes_on_with_fewer_and_keeps_cloning() -> None:
    made = Plan(tuple(VARIANTS[:16]), SIZES[0], two_stages(10_000, 16, 3_000), 400.0, speeds(2_000.0))
    order = [variant for variant in VARIANTS[:16] if variant.algorithm != "bc"]
    order.append(next(variant for variant in VARIANTS if variant.algorithm == "bc"))
    needed = seconds_of(order[:4], 3, two_stages(10_000, 16, 3_000)[1:], speeds(2_000.0))
    planned = affordable(order, made, 1, 3, seconds=needed, slower=1.0)
    assert [variant.label for variant in planned] == [*(one.label for one in order[:3]), "bc"]
    fewer = affordable(order, made, 1, 3, seconds=needed, slower=1.6)
    assert len(fewer) < len(planned)
    assert fewer[0] == order[0]
    assert fewer[-1].algorithm == "bc"


@pytest.mark.parametrize("steps", [(), (101,), (400, 100), (100, 100), (1, 2)])
def test_stages_that_cannot_be_trained_are_refused_before_a_folder_is_made(
    tmp_path: Path, steps: tuple[int, ...]
) -> None:
    own = Plan((Variant("bc"),), Size((16, 16), 16), tuple(StagePlan(end, 1, 10) for end in steps))
    with pytest.raises(InputError, match="they must be even numbers, each larger than the one before"):
        score_rl.select("replica:hopper-medium", plan=own, transitions=300, out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
