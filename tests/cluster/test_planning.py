"""In how many parts fleets are trained."""

import pytest

from score_rl.cluster.planning import Group, makespan, plan_parts, sizes
from score_rl.cluster.speed import Pace


def test_parts_are_as_equal_as_possible() -> None:
    assert sizes(10, 4) == [3, 3, 2, 2]


def test_memory_sets_the_least_number_of_parts() -> None:
    assert plan_parts([Group(75, 20, Pace(1.0, 0.0))], 1) == [[19, 19, 19, 18]]


def test_a_fleet_is_split_over_devices_where_that_is_faster() -> None:
    assert plan_parts([Group(40, 40, Pace(0.0, 1.0))], 4) == [[10, 10, 10, 10]]


def test_a_fleet_stays_whole_where_many_runs_take_no_longer_than_few() -> None:
    assert plan_parts([Group(40, 40, Pace(1.0, 0.0))], 4) == [[40]]


def test_devices_end_together() -> None:
    """A long fleet and three short ones on two devices: the long one is split until the ends meet."""
    groups = [Group(30, 30, Pace(0.0, 1.0)), *[Group(4, 4, Pace(0.0, 1.0))] * 3]
    parts = plan_parts(groups, 2)
    whole = makespan(groups, [len(each) for each in parts], 2)
    assert whole <= 1.1 * (30 + 12) / 2
    assert sum(map(sum, parts)) == 42


@pytest.mark.parametrize("devices", [1, 3, 100])
def test_no_plan_is_slower_than_leaving_fleets_whole(devices: int) -> None:
    groups = [Group(75, 75, Pace(0.5, 0.1)), Group(7, 3, Pace(2.0, 0.0)), Group(1, 1, Pace(9.0, 1.0))]
    parts = [len(each) for each in plan_parts(groups, devices)]
    assert makespan(groups, parts, devices) <= makespan(groups, [1, 3, 1], devices)
