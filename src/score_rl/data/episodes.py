"""Where episodes begin and end in a recording, and which of its rows can be trained on."""

from typing import NamedTuple

import numpy as np


class TrainingView(NamedTuple):
    """The rows of a recording that have a usable next observation."""

    rows: np.ndarray  # [N] int64, into the recording, ascending
    next_rows: np.ndarray  # [N] int64: the row of the recording whose observation is the next one
    timeouts: np.ndarray  # [N] bool
    episodes: np.ndarray  # [E, 2] int64, into the view
    kept: np.ndarray  # [E] int64: which of the recording's episodes they are


def split_episodes(terminals: np.ndarray, timeouts: np.ndarray) -> np.ndarray:
    """Start and stop of every episode, [E, 2]; the last one is partial when the last row ends nothing."""
    stops = np.flatnonzero(terminals | timeouts) + 1
    if len(terminals) and (len(stops) == 0 or stops[-1] != len(terminals)):
        stops = np.append(stops, len(terminals))
    starts = np.concatenate([[0], stops[:-1]]) if len(stops) else stops
    return np.stack([starts, stops], axis=1).astype(np.int64)


def complete_episodes(
    episodes: np.ndarray, terminals: np.ndarray, timeouts: np.ndarray, limit: int | None
) -> np.ndarray:
    """Which episodes ran to their end, [E] bool: to a terminal, or to a timeout at the environment's step
    limit.

    Where the limit is not known every timeout counts as an end.
    """
    last = episodes[:, 1] - 1
    timed_out = timeouts[last]
    if limit is not None:
        timed_out = timed_out & (episodes[:, 1] - episodes[:, 0] >= limit)
    return np.asarray(terminals[last] | timed_out, dtype=bool)


def training_view(terminals: np.ndarray, timeouts: np.ndarray) -> TrainingView:
    """The view for a recording without stored next observations.

    Within an episode the next observation is the next row's. The last row of an episode has none: it is
    dropped, unless it is terminal, when nothing is ever bootstrapped from it and its own observation stands
    in. The row before a dropped timeout becomes the place where the recording was cut, and so carries the
    timeout.
    """
    episodes = split_episodes(terminals, timeouts)
    last = episodes[:, 1] - 1
    keep = np.ones(len(terminals), dtype=bool)
    keep[last] = terminals[last]
    cut = timeouts[last] & ~terminals[last]
    view_timeouts = timeouts.copy()
    view_timeouts[last[cut] - 1] |= episodes[cut, 1] - episodes[cut, 0] > 1
    rows = np.flatnonzero(keep)
    next_rows = rows + ~terminals[rows]
    lengths = episodes[:, 1] - episodes[:, 0] - ~terminals[last]
    kept = np.flatnonzero(lengths > 0)
    stops = np.cumsum(lengths[kept])
    bounds = np.stack([stops - lengths[kept], stops], axis=1).astype(np.int64)
    return TrainingView(rows, next_rows, view_timeouts[rows], bounds, kept)


def spread_rows(episodes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of about evenly spread whole episodes, `count` in all, and which of them cut an episode short.

    Episodes are chosen in the order of the golden-ratio sequence, so that every part of a recording made of
    several policies is represented; the last one chosen is cut to reach `count`. Rows come in recording
    order.
    """
    lengths = episodes[:, 1] - episodes[:, 0]
    order = np.argsort((np.arange(len(episodes)) * 0.6180339887498949) % 1.0, kind="stable")
    filled = np.cumsum(lengths[order])
    needed = int(np.searchsorted(filled, count)) + 1
    chosen = order[:needed]
    take = lengths[chosen].copy()
    take[-1] -= filled[needed - 1] - count
    by_time = np.argsort(chosen)
    starts, take = episodes[chosen[by_time], 0], take[by_time]
    rows = np.concatenate([np.arange(start, start + n) for start, n in zip(starts, take, strict=True)])
    cut_at = (starts + take - 1)[take < lengths[chosen[by_time]]]
    return rows, np.isin(rows, cut_at)
