"""What is due when: nothing is left out, nothing comes twice, and a cut changes nothing."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from score_rl.run.schedule import Schedule, checkpoint_is_due


@st.composite
def schedules(draw: Callable[..., Any]) -> tuple[int, Schedule]:
    """With every relation of steps, windows and evaluations that a request may have."""
    cycle = draw(st.integers(1, 4))  # of the algorithm: no call is a part of it
    calls = draw(st.integers(1, 6))
    log_every = cycle * calls
    windows = draw(st.integers(1, 12))
    per_call = draw(st.sampled_from([n for n in range(cycle, log_every + 1, cycle) if log_every % n == 0]))
    return cycle, Schedule(
        steps=log_every * windows,
        log_every=log_every,
        eval_every=log_every * draw(st.integers(1, windows + 2)),
        updates_per_call=per_call,
    )


@given(schedules())
def test_every_update_is_in_one_call(drawn: tuple[int, Schedule]) -> None:
    cycle, schedule = drawn
    calls = list(schedule.calls(0))
    assert [update for call in calls for update in range(call.first, call.end)] == list(range(schedule.steps))
    assert all(call.updates % cycle == 0 for call in calls)
    assert {call.updates for call in calls} == {schedule.updates_per_call}, "one program is compiled"
    assert [call.ends_training for call in calls] == [False] * (len(calls) - 1) + [True]


@given(schedules())
def test_windows_end_at_every_multiple_and_evaluations_with_them(drawn: tuple[int, Schedule]) -> None:
    _, schedule = drawn
    calls = list(schedule.calls(0))
    rows = [call.end for call in calls if call.ends_window]
    assert rows == list(range(schedule.log_every, schedule.steps + 1, schedule.log_every))
    evaluated = [call.end for call in calls if call.evaluates]
    multiples = range(schedule.eval_every, schedule.steps + 1, schedule.eval_every)
    assert evaluated == sorted({*multiples, schedule.steps}), "every due evaluation once, and the last policy"
    assert set(evaluated) <= set(rows)


@given(schedules(), st.data())
def test_a_stop_anywhere_and_other_calls_afterwards_change_nothing_that_is_due(
    drawn: tuple[int, Schedule], data: Any
) -> None:
    """Another machine may take a window in other calls."""
    cycle, schedule = drawn
    undisturbed = list(schedule.calls(0))
    stopped = data.draw(st.integers(1, len(undisturbed)))
    before = undisturbed[:stopped]
    lengths = list(range(cycle, schedule.log_every + 1, cycle))
    elsewhere = dataclasses.replace(schedule, updates_per_call=data.draw(st.sampled_from(lengths)))
    after = list(elsewhere.calls(before[-1].end))
    calls = before + after
    assert [update for call in calls for update in range(call.first, call.end)] == list(range(schedule.steps))
    assert all(call.updates % cycle == 0 for call in calls)
    for due in ("ends_window", "evaluates", "ends_training"):
        assert [c.end for c in calls if getattr(c, due)] == [c.end for c in undisturbed if getattr(c, due)], due
    for call in after:  # no call crosses the end of a window: its row is made of whole calls
        assert call.first // schedule.log_every == (call.end - 1) // schedule.log_every
    if elsewhere == schedule:
        assert calls == undisturbed


@given(schedules(), st.integers(1, 5))
def test_more_steps_keep_the_calls_that_there_were(drawn: tuple[int, Schedule], more: int) -> None:
    """But for the last policy, which is evaluated where training ended first."""
    _, schedule = drawn
    longer = dataclasses.replace(schedule, steps=schedule.steps + more * schedule.log_every)
    short, long = list(schedule.calls(0)), list(longer.calls(0))
    assert long[: len(short) - 1] == short[:-1]
    assert list(longer.calls(schedule.steps)) == long[len(short) :]


def test_a_finished_training_has_no_calls_left() -> None:
    schedule = Schedule(steps=60, log_every=30, eval_every=30, updates_per_call=10)
    assert list(schedule.calls(60)) == []
    assert [schedule.evaluates_at(step) for step in (0, 15, 30, 60)] == [False, False, True, True]
    assert not Schedule(50, 10, 20, 10).evaluates_at(50), "the end of this length alone: not where training goes on"


def test_the_rest_of_a_window_that_was_cut_elsewhere_is_taken_in_equal_calls() -> None:
    schedule = Schedule(steps=60, log_every=30, eval_every=30, updates_per_call=30)
    assert [call.updates for call in schedule.calls(20)] == [10, 30]
    assert [call.updates for call in dataclasses.replace(schedule, updates_per_call=4).calls(40)] == [4] * 5


MINUTES = st.floats(0, 100)


@given(MINUTES, MINUTES, st.booleans(), st.booleans())
def test_an_urgent_checkpoint_never_waits(minutes: float, every: float, writing: bool, waiting: bool) -> None:
    assert checkpoint_is_due(minutes, every, urgent=True, still_writing=writing, evaluations_wait=waiting)


@given(MINUTES, MINUTES, st.booleans())
def test_a_slow_disk_does_not_hold_up_training(minutes: float, every: float, waiting: bool) -> None:
    assert not checkpoint_is_due(minutes, every, urgent=False, still_writing=True, evaluations_wait=waiting)


@pytest.mark.parametrize(
    ("minutes", "waiting", "due"),
    [(0.9, False, False), (1.0, False, True), (1.0, True, False), (1.9, True, False), (2.0, True, True)],
)
def test_evaluations_may_delay_a_checkpoint_once_over(minutes: float, waiting: bool, due: bool) -> None:
    assert checkpoint_is_due(minutes, 1.0, urgent=False, still_writing=False, evaluations_wait=waiting) is due


@given(MINUTES)
def test_zero_minutes_mean_after_every_call(minutes: float) -> None:
    assert checkpoint_is_due(minutes, 0.0, urgent=False, still_writing=False, evaluations_wait=True)
