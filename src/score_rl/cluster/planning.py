"""In how many parts fleets are trained, so that all devices end together. Pure rules on numbers.

More parts use more devices, but a device trains many runs at once in little more time than few. Both are in a fleet's
pace: seconds of an update are `fixed + per_run * runs`. The plan splits the part that takes longest, as long as that
lets the whole end sooner.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from score_rl.cluster.speed import Pace

WORTH = 0.02  # by which share a split must shorten the whole; starting a task costs something too


class Group(NamedTuple):
    """Runs that could train together, if a device had the memory."""

    runs: int
    most: int  # runs of one part, by memory
    pace: Pace


def plan_parts(groups: Sequence[Group], devices: int) -> list[list[int]]:
    """For every group the sizes of its parts."""
    parts = [-(-group.runs // group.most) for group in groups]
    best, chosen = makespan(groups, parts, devices), list(parts)
    for _ in range(sum(group.runs for group in groups)):
        longest = max(
            (number for number, group in enumerate(groups) if parts[number] < group.runs),
            key=lambda number: _seconds(groups[number], parts[number]),
            default=None,
        )
        if longest is None or sum(parts) >= max(devices, sum(chosen)) + devices:
            break
        parts[longest] += 1
        found = makespan(groups, parts, devices)
        if found < best * (1 - WORTH):
            best, chosen = found, list(parts)
    return [sizes(group.runs, number) for group, number in zip(groups, chosen, strict=True)]


def sizes(runs: int, parts: int) -> list[int]:
    """As equal as possible, the larger ones first."""
    size, more = divmod(runs, parts)
    return [size + 1] * more + [size] * (parts - more)


def makespan(groups: Sequence[Group], parts: Sequence[int], devices: int) -> float:
    """Seconds of one update of everything, if each device takes the longest part that is left."""
    tasks = sorted(
        (
            group.pace.of(size)
            for group, number in zip(groups, parts, strict=True)
            for size in sizes(group.runs, number)
        ),
        reverse=True,
    )
    ends = [0.0] * max(1, devices)
    for seconds in tasks:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def _seconds(group: Group, parts: int) -> float:
    return group.pace.of(-(-group.runs // parts))
