"""How long an update of a fleet takes, by the number of its runs: a line through two measured points."""

import dataclasses
import time
from collections.abc import Sequence

import jax

from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.nets.precision import Precision

LEAST_SECONDS = 0.3  # that a measurement takes, so that the clock is no part of it
MOST_CALLS = 200


@dataclasses.dataclass(frozen=True)
class Pace:
    """Seconds of an update of so many runs together: `fixed + per_run * runs`."""

    fixed: float
    per_run: float

    def of(self, runs: int) -> float:
        return self.fixed + self.per_run * runs


def measured_pace(runs: Sequence[Run], window: int, precision: Precision) -> Pace:
    """The pace of a fleet like this one on this machine. One run says nothing of several: it is taken as it is."""
    most = len(runs)
    if most == 1:
        return Pace(0.0, seconds_of_update(runs, window, precision))
    few = max(1, most // 4)
    short, long = (seconds_of_update(runs[:number], window, precision) for number in (few, most))
    per_run = max(0.0, (long - short) / (most - few))
    return Pace(max(0.0, long - per_run * most), per_run)


def seconds_of_update(runs: Sequence[Run], window: int, precision: Precision) -> float:
    """Of all these runs together, compiling not counted. Stages before training are left out."""
    program = FleetProgram(runs, precision=precision)
    state = program.init()
    length = program.updates_per_call(window)
    state, metrics = program.advance(state, 0, length)
    jax.block_until_ready(metrics)
    began, calls = time.perf_counter(), 0
    while calls < MOST_CALLS and (not calls or time.perf_counter() - began < LEAST_SECONDS):
        calls += 1
        state, metrics = program.advance(state, calls * length, length)
        jax.block_until_ready(metrics)
    return (time.perf_counter() - began) / (calls * length)
