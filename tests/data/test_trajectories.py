"""Trajectories, training rows and returns are those of a plain loop, for recordings of every shape."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.trajectories import complete_trajectories, end_rows, split_trajectories, spread_rows
from score_rl.errors import InputError

from .recordings import recording

settings.register_profile("any machine", deadline=None)  # a busy machine is not a failure
settings.load_profile("any machine")


class Expected(NamedTuple):
    """What the plain loop finds."""

    rows: list[int]  # of the recording, in order
    next_rows: list[int | None]  # whose observation is the next one; None where it is the stored one
    timeouts: list[bool]
    trajectories: list[tuple[int, int]]  # in the rows that stay
    starts: list[int]  # in the recording
    returns: list[float]
    complete: list[bool]
    dropped_trajectories: int


def plain_loop(arrays: dict[str, Any], limit: int | None) -> Expected:
    """One row after the other, as the documentation says it."""
    count = len(arrays["rewards"])
    timeouts = arrays.get("timeouts", np.zeros(count, bool))
    marked = arrays.get("trajectory_ends")
    stored = "next_observations" in arrays
    found = Expected([], [], [], [], [], [], [], 0)
    dropped = 0
    start, first, total = 0, 0, 0.0  # the trajectory's first row in the recording, and in the rows that stay
    for row in range(count):
        terminal = bool(arrays["terminals"][row])
        ends = bool(timeouts[row]) or (terminal if marked is None else bool(marked[row]))
        last = ends or row == count - 1
        total += float(arrays["rewards"][row])
        if stored or not last or terminal:
            found.rows.append(row)
            found.next_rows.append(None if stored else row if last else row + 1)
            found.timeouts.append(bool(timeouts[row]))
        elif timeouts[row] and len(found.rows) > first:
            found.timeouts[-1] = True  # the row before the dropped one
        if last:
            if len(found.rows) > first:
                found.trajectories.append((first, len(found.rows)))
                found.starts.append(start)
                found.returns.append(total)
                found.complete.append(terminal or (ends and (limit is None or row - start + 1 >= limit)))
            else:
                dropped += 1
            start, first, total = row + 1, len(found.rows), 0.0
    return found._replace(dropped_trajectories=dropped)


@st.composite
def recordings(draw: st.DrawFn) -> dict[str, Any]:
    """Any marks in any rows, with and without each of the optional columns."""
    count = draw(st.integers(1, 24))
    marks = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    arrays = recording((count,), "p")
    arrays["terminals"] = draw(marks)
    arrays["timeouts"] = draw(marks)
    if draw(st.booleans()):
        arrays["trajectory_ends"] = draw(marks)
        if draw(st.booleans()):
            del arrays["timeouts"]
    if draw(st.booleans()):
        del arrays["next_observations"]
    return arrays


def made(arrays: dict[str, Any]) -> Dataset | None:
    """The data set; None where the recording is refused, as it has to be."""
    marks = [arrays[key] for key in ("timeouts", "trajectory_ends") if key in arrays]
    marks += [] if "trajectory_ends" in arrays else [arrays["terminals"]]
    left = len(plain_loop(arrays, None).rows)
    refused = "cannot be told apart" if not np.any(marks) else "no row with" if not left else ""
    if not refused and left < len(arrays["rewards"]) / 2:
        refused = "Are the rows sorted"
    if not refused:
        return make_dataset("test", **arrays)
    with pytest.raises(InputError, match=refused):
        make_dataset("test", **arrays)
    return None


@settings(max_examples=400)
@given(recordings())
def test_rows_are_those_of_a_plain_loop(arrays: dict[str, Any]) -> None:
    dataset, expected = made(arrays), plain_loop(arrays, None)
    if dataset is None:
        return
    for key in ("observations", "actions", "rewards", "terminals"):
        np.testing.assert_array_equal(getattr(dataset, key), arrays[key][expected.rows])
    np.testing.assert_array_equal(dataset.timeouts, expected.timeouts)
    following = [
        arrays["next_observations"][row] if other is None else arrays["observations"][other]
        for row, other in zip(expected.rows, expected.next_rows, strict=True)
    ]
    np.testing.assert_array_equal(dataset.next_observations, following)
    np.testing.assert_array_equal(dataset.trajectories, expected.trajectories)
    assert dataset.dropped_rows == len(arrays["rewards"]) - len(expected.rows)
    assert dataset.dropped_trajectories == expected.dropped_trajectories
    np.testing.assert_array_equal(dataset.recorded_rows(np.arange(len(dataset))), expected.rows)
    values, complete = dataset.returns()
    np.testing.assert_allclose(values, expected.returns, atol=1e-12)
    np.testing.assert_array_equal(complete, expected.complete)


@settings(max_examples=200)
@given(recordings())
def test_followed_says_whose_next_action_is_the_next_row_s(arrays: dict[str, Any]) -> None:
    dataset, expected = made(arrays), plain_loop(arrays, None)
    if dataset is None:
        return
    inside = {row for start, stop in expected.trajectories for row in range(start, stop - 1)}
    np.testing.assert_array_equal(dataset.followed(), [row in inside for row in range(len(dataset))])
    for row in inside:
        assert expected.rows[row + 1] == expected.rows[row] + 1


@given(recordings(), st.integers(1, 5))
def test_a_trajectory_is_complete_at_the_step_limit(arrays: dict[str, Any], limit: int) -> None:
    none = np.zeros_like(arrays["terminals"])
    ends = end_rows(arrays["terminals"], arrays.get("timeouts", none), arrays.get("trajectory_ends"))
    trajectories = split_trajectories(ends)
    assert trajectories.dtype == np.int64
    found = complete_trajectories(trajectories, arrays["terminals"], ends, limit)
    stored = {**arrays, "next_observations": arrays["observations"]}  # so that no trajectory is dropped
    np.testing.assert_array_equal(found, plain_loop(stored, limit).complete)


@given(recordings())
def test_marking_the_ends_that_are_there_anyway_changes_nothing(arrays: dict[str, Any]) -> None:
    """Not a bit: run keys derive from the checksum."""
    arrays.pop("trajectory_ends", None)
    arrays.setdefault("timeouts", np.zeros_like(arrays["terminals"]))
    plain = made(arrays)
    if plain is None:
        return
    marked = make_dataset("test", **arrays, trajectory_ends=arrays["terminals"] | arrays["timeouts"])
    assert marked.checksum == plain.checksum
    np.testing.assert_array_equal(marked.trajectories, plain.trajectories)


def test_split_of_nothing() -> None:
    assert split_trajectories(np.zeros(0, bool)).shape == (0, 2)


def solved_on_the_way() -> dict[str, Any]:
    """Two recordings of six rows that go on after the task is solved."""
    arrays = recording((6, 6), "cc", next_observations=None)
    arrays["terminals"] = np.isin(np.arange(12), (2, 3, 9))
    arrays["trajectory_ends"] = np.isin(np.arange(12), (5, 11))
    return arrays


def test_a_task_that_is_solved_on_the_way_stays_one_trajectory() -> None:
    arrays = solved_on_the_way()
    dataset = make_dataset("test", **arrays)
    np.testing.assert_array_equal(dataset.trajectories, [[0, 5], [5, 10]])
    np.testing.assert_array_equal(dataset.terminals, np.isin(np.arange(10), (2, 3, 8)))
    np.testing.assert_array_equal(dataset.next_observations[2:4], arrays["observations"][3:5])
    np.testing.assert_allclose(dataset.returns().values, arrays["rewards"].reshape(2, 6).sum(axis=1), rtol=1e-6)
    del arrays["trajectory_ends"]
    by_terminals = make_dataset("test", **arrays)
    np.testing.assert_array_equal(by_terminals.trajectories[:, 1] - by_terminals.trajectories[:, 0], [3, 1, 1, 4, 1])


def test_what_is_dropped_is_counted() -> None:
    arrays = recording((4, 1, 1, 3), "ccct", next_observations=None)
    dataset = make_dataset("test", **arrays)
    assert (len(dataset), dataset.dropped_rows, dataset.dropped_trajectories) == (6, 3, 2)
    np.testing.assert_array_equal(dataset.recorded_rows(np.arange(6)), [0, 1, 2, 6, 7, 8])
    whole = make_dataset("test", **recording((4, 1, 1, 3), "ccct"))
    assert (whole.dropped_rows, whole.dropped_trajectories) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"timeouts": None}, "test has no timeouts: store them, or the ends of trajectories in trajectory_ends"),
        ({"trajectory_ends": np.zeros(12)}, "test marks no end of a trajectory in 12 rows"),
        ({"trajectory_ends": np.full(12, 2)}, "trajectory_ends holds 2 in row 0"),
        ({"trajectory_ends": np.zeros(11)}, "differ in rows .*trajectory_ends 11"),
    ],
)
def test_marks_that_are_refused(changes: dict[str, Any], words: str) -> None:
    arrays = recording((12,), "t", **{"timeouts": np.zeros(12), **changes})
    with pytest.raises(InputError, match=words):
        make_dataset("test", **arrays)


@given(recordings(), st.data())
def test_spread_rows_takes_whole_trajectories_but_one(arrays: dict[str, Any], data: st.DataObject) -> None:
    trajectories = split_trajectories(arrays["terminals"])
    count = data.draw(st.integers(1, len(arrays["terminals"])))
    rows, stopped = spread_rows(trajectories, count)
    assert len(rows) == len(stopped) == count
    assert (np.diff(rows) > 0).all()
    short = 0
    for start, stop in trajectories:
        inside = rows[(rows >= start) & (rows < stop)]
        np.testing.assert_array_equal(inside, np.arange(start, start + len(inside)))
        short += 0 < len(inside) < stop - start
    assert short == stopped.sum() <= 1


def test_spread_rows_represents_every_part() -> None:
    stops = np.arange(1, 101) * 10
    rows, _ = spread_rows(np.stack([stops - 10, stops], axis=1), 200)
    assert np.histogram(rows, bins=4, range=(0, 1000))[0].min() >= 40
