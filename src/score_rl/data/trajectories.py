"""Where trajectories begin and end in a recording, and which of its rows can be trained on.

A recording has three marks, and each means one thing:

- *terminal*: nothing follows this row, so bootstrapping stops here;
- *timeout*: the recording stopped after this row;
- *end of trajectory*: the next row of the file does not belong to the same recording.

A trajectory is a run of rows that belong together. It ends at every timeout. It also ends at every terminal, unless
the recording marks the ends of its trajectories: then a terminal may lie inside one. Such a recording solves its task
and goes on.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64


class TrajectoryReturns(NamedTuple):
    """Undiscounted returns of a data set's trajectories."""

    values: Float64[np.ndarray, " trajectories"]  # over the whole recorded trajectory, dropped rows included
    complete: Bool[
        np.ndarray, " trajectories"
    ]  # whether it ran to a terminal or to a marked end (see `Dataset.returns`)


class Recorded(NamedTuple):
    """What the recording held before rows without a next observation were dropped."""

    returns: TrajectoryReturns
    lengths: Int64[np.ndarray, " trajectories"]  # in recorded rows, dropped rows included
    starts: Int64[np.ndarray, " trajectories"]  # the row of the recording with which each trajectory begins
    dropped_rows: int
    dropped_trajectories: int  # those that had no other row


class TrainingView(NamedTuple):
    """The rows of a recording that have a usable next observation."""

    rows: np.ndarray  # [N] int64, into the recording, ascending
    next_rows: np.ndarray  # [N] int64: the row of the recording whose observation is the next one
    timeouts: np.ndarray  # [N] bool
    trajectories: np.ndarray  # [E, 2] int64, into the view
    kept: np.ndarray  # [E] int64: which of the recording's trajectories they are


def end_rows(terminals: np.ndarray, timeouts: np.ndarray, marked_ends: np.ndarray | None = None) -> np.ndarray:
    """The rows that end a trajectory, [N] bool.

    `marked_ends` are the ends that the recording marks. Without them every terminal ends a trajectory, as in D4RL's
    files.
    """
    return np.asarray(timeouts | (terminals if marked_ends is None else marked_ends), dtype=bool)


def split_trajectories(ends: np.ndarray) -> np.ndarray:
    """Start and stop of every trajectory, [E, 2]. The last one is partial if no end is marked in the last row."""
    stops = np.flatnonzero(ends) + 1
    if len(ends) and (len(stops) == 0 or stops[-1] != len(ends)):
        stops = np.append(stops, len(ends))
    starts = np.concatenate([[0], stops[:-1]]) if len(stops) else stops
    return np.stack([starts, stops], axis=1).astype(np.int64)


def complete_trajectories(
    trajectories: np.ndarray, terminals: np.ndarray, ends: np.ndarray, limit: int | None
) -> np.ndarray:
    """Which trajectories ran to their end, [E] bool.

    A trajectory is complete if its last row is terminal, or if its end is marked and it has at least `limit` rows: the
    step limit of its environment. Every marked end counts where the limit is not known.
    """
    last = trajectories[:, 1] - 1
    ended = ends[last]
    if limit is not None:
        ended = ended & (trajectories[:, 1] - trajectories[:, 0] >= limit)
    return np.asarray(terminals[last] | ended, dtype=bool)


def training_view(trajectories: np.ndarray, terminals: np.ndarray, timeouts: np.ndarray) -> TrainingView:
    """The view for a recording without stored next observations.

    The next observation of a row is the observation of the row that follows it in its trajectory. The last row of a
    trajectory has none, so it is dropped. It stays if it is terminal: nothing is bootstrapped from it, and its own
    observation fills the gap. If a dropped row was a timeout, the row before it becomes the timeout.
    """
    last = trajectories[:, 1] - 1
    keep = np.ones(len(terminals), dtype=bool)
    keep[last] = terminals[last]
    stopped = timeouts[last] & ~terminals[last]
    view_timeouts = timeouts.copy()
    view_timeouts[last[stopped] - 1] |= trajectories[stopped, 1] - trajectories[stopped, 0] > 1
    followed = np.ones(len(terminals), dtype=bool)
    followed[last] = False
    rows = np.flatnonzero(keep)
    lengths = trajectories[:, 1] - trajectories[:, 0] - ~terminals[last]
    kept = np.flatnonzero(lengths > 0)
    stops = np.cumsum(lengths[kept])
    bounds = np.stack([stops - lengths[kept], stops], axis=1).astype(np.int64)
    return TrainingView(rows, rows + followed[rows], view_timeouts[rows], bounds, kept)


def spread_rows(trajectories: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` rows of evenly spread whole trajectories, and a mask of those rows after which a trajectory is cut short.

    Trajectories are chosen in the order of the golden-ratio sequence. So every part of a recording made of several
    policies is represented. The last one chosen is cut to reach `count`. Rows come in recording order.
    """
    lengths = trajectories[:, 1] - trajectories[:, 0]
    order = np.argsort((np.arange(len(trajectories)) * 0.6180339887498949) % 1.0, kind="stable")
    filled = np.cumsum(lengths[order])
    needed = int(np.searchsorted(filled, count)) + 1
    chosen = order[:needed]
    take = lengths[chosen].copy()
    take[-1] -= filled[needed - 1] - count
    by_time = np.argsort(chosen)
    starts, take = trajectories[chosen[by_time], 0], take[by_time]
    rows = np.concatenate([np.arange(start, start + n) for start, n in zip(starts, take, strict=True)])
    short = (starts + take - 1)[take < lengths[chosen[by_time]]]
    return rows, np.isin(rows, short)
