"""The order of rows: by episode and, within it, by time. Rows that already stand so are found out and left alone."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from score_rl.data.tables.conversion import Block
from score_rl.data.tables.roles import Columns
from score_rl.errors import InputError

CHUNK = 1_000_000  # rows that are looked at together; arrays of more than 32 MB cost page faults each time


class Ordered(NamedTuple):
    """The rows in order: which row stands where, which begin an episode, and when each was recorded."""

    order: np.ndarray | None  # rows of the table; None: as they stand
    starts: np.ndarray  # bool: the first rows of episodes, and those after gaps that end a trajectory
    times: np.ndarray | None

    def row(self, position: int) -> int:
        """The row of the table that stands at a position."""
        return position if self.order is None else int(self.order[position])


def order_rows(block: Block, texts: dict[str, int], columns: Columns, location: Callable[[int], str]) -> Ordered:
    """Sort by episode and time. Two rows of one episode at the same time are refused: nothing says which came first."""
    if block.episodes is None and (block.terminals is not None or block.timeouts is not None):
        ordered = _by_marks(block, columns, location)
    else:
        ordered = _sorted(block, texts)
    _refuse_ties(ordered, columns, location)
    return ordered


def parted_by_gaps(ordered: Ordered, gap: float) -> Ordered:
    """The same where a row that comes later than this begins anew; `gap` is in the ticks of the times."""
    starts, times = ordered.starts.copy(), ordered.times
    if times is None:
        return ordered
    for first in range(0, len(times) - 1, CHUNK):
        starts[first + 1 : first + CHUNK + 1] |= np.diff(np.asarray(times[first : first + CHUNK + 1])) > gap
    return ordered._replace(starts=starts)


def _sorted(block: Block, texts: dict[str, int]) -> Ordered:
    rows = len(block.rewards)
    episodes = None if block.episodes is None else _ranked(block.episodes, texts)
    if _in_order(episodes, block.times):
        order = None
    elif episodes is None:
        order = np.argsort(block.times, kind="stable")  # type: ignore[arg-type]
    elif block.times is None:
        order = np.argsort(episodes, kind="stable")
    else:
        order = np.lexsort((block.times, episodes))
    if order is not None and rows < 1 << 32:
        order = order.astype(np.uint32)
    starts = np.zeros(rows, dtype=bool)
    starts[0] = True
    if episodes is not None:
        episodes = episodes if order is None else episodes[order]
        starts[1:] = episodes[1:] != episodes[:-1]
    times = block.times if order is None or block.times is None else block.times[order]
    return Ordered(order, starts, times)


def _by_marks(block: Block, columns: Columns, location: Callable[[int], str]) -> Ordered:
    """Without a column of episodes the marks tell them apart. Then only the order of the table can be taken."""
    ends = np.zeros(len(block.rewards), dtype=bool)
    for marks in (block.terminals, block.timeouts):
        if marks is not None:
            ends |= marks == 1
    starts = np.concatenate([[True], ends[:-1]])
    if block.times is not None:
        back = np.flatnonzero((block.times[1:] < block.times[:-1]) & ~starts[1:]) + 1
        if len(back):
            raise InputError(
                f"{columns.time} goes back in {location(int(back[0]))} ({len(back):,} such rows), and no end of an "
                "episode is marked before: sort the rows, mark the ends, or name the column that tells the episodes as "
                "`episode`."
            )
    return Ordered(None, starts, block.times)


def _ranked(episodes: np.ndarray, texts: dict[str, int]) -> np.ndarray:
    """Numbers that are in the order of the texts, where texts name the episodes."""
    if not texts:
        return episodes
    ranks = np.empty(len(texts), np.int64)
    ranks[[texts[text] for text in sorted(texts)]] = np.arange(len(texts))
    return ranks[episodes]


def _in_order(episodes: np.ndarray | None, times: np.ndarray | None) -> bool:
    rows = len(episodes if episodes is not None else times if times is not None else ())
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK + 1)
        later = np.ones(max(0, min(rows, start + CHUNK + 1) - start - 1), dtype=bool)
        if times is not None:
            later = times[part][1:] >= times[part][:-1]
        if episodes is not None:
            one = episodes[part]
            later = (one[1:] > one[:-1]) | ((one[1:] == one[:-1]) & later)
        if not later.all():
            return False
    return True


def _refuse_ties(ordered: Ordered, columns: Columns, location: Callable[[int], str]) -> None:
    if ordered.times is None:
        return
    found, first = 0, 0
    for start in range(0, len(ordered.times), CHUNK):
        part = slice(start, start + CHUNK + 1)
        times = ordered.times[part]
        ties = np.flatnonzero((times[1:] == times[:-1]) & ~ordered.starts[part][1:])
        first = first if found or not len(ties) else start + int(ties[0])
        found += len(ties)
    if found:
        where = f"{location(ordered.row(first))} and {location(ordered.row(first + 1))}"
        remedy = (
            "name the column that tells the episodes as `episode`"
            if columns.episode is None
            else f"keep one of them, or make {columns.episode} tell them apart"
        )
        raise InputError(
            f"{found:,} rows have the {columns.time} of another row of their episode, such as {where}: {remedy}."
        )
