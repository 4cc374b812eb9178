"""Rows by trajectory and time, with what is missing treated as told, and the ends of trajectories marked.

A trajectory ends with its episode, before a row that is left out, and where the next row comes too late if it was said
what that is. Nothing here needs more of memory than a few bytes a row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from score_rl.data.tables.conversion import UNKNOWN, Block, Missing
from score_rl.data.tables.order import Ordered
from score_rl.data.tables.roles import Columns
from score_rl.data.tables.spool import Spooled

CHUNK = 250_000  # rows that are written together
GAP = 1.5  # times the usual step is a gap
STEPS = 1_000_000  # that the usual one is found from, and that are looked at together: larger arrays cost page faults


class Gaps(NamedTuple):
    """Where the rows of an episode do not follow each other at the usual step."""

    usual: float
    number: int
    longest: float
    places: tuple[str, ...]  # of the rows after the first few


class Arranged(NamedTuple):
    """What is to be written, and what became of the table."""

    keep: np.ndarray | None  # which of the sorted rows; None: all
    ends: np.ndarray  # bool: the last rows of trajectories, among the sorted rows
    filled: Mapping[str, int]  # cells by column
    left_out: int  # rows
    gaps: Gaps | None


def arrange(
    spooled: Spooled,
    ordered: Ordered,
    columns: Columns,
    missing: Missing,
    location: Callable[[int], str],
) -> Arranged:
    """Decide which rows stay and where trajectories end."""
    keep, filled = None, Counter[str]()
    if spooled.incomplete:
        keep = np.concatenate(
            [_complete(block) for _, block in _sorted_blocks(spooled.arrays, ordered, columns, missing, filled)]
        )
    ends = np.append(ordered.starts[1:], True)
    if columns.episode is None:
        for marks in (spooled.arrays.terminals, spooled.arrays.timeouts):
            ends |= False if marks is None else np.asarray(marks) == 1
    if keep is not None:
        ends[:-1] |= ~keep[1:]
    gaps = None if ordered.times is None else _find_gaps(ordered, ends, location)
    return Arranged(keep, ends, filled, 0 if keep is None else int((~keep).sum()), gaps)


def arranged_blocks(
    spooled: Spooled, ordered: Ordered, arranged: Arranged, columns: Columns, missing: Missing
) -> Iterator[dict[str, np.ndarray]]:
    """The rows that stay, named as the file format names them; times in ticks."""
    for start, block in _sorted_blocks(spooled.arrays, ordered, columns, missing, Counter()):
        rows = slice(start, start + len(block.rewards))
        chosen = slice(None) if arranged.keep is None else arranged.keep[rows]
        ends = arranged.ends[rows][chosen]
        nothing = np.zeros(len(ends), dtype=bool)
        terminals = nothing if block.terminals is None else block.terminals[chosen] == 1
        timeouts = nothing if block.timeouts is None else (block.timeouts[chosen] == 1) & ~terminals
        out = {
            "observations": block.observations[chosen],
            "actions": block.actions[chosen],
            "rewards": block.rewards[chosen],
            "terminals": terminals,
            "timeouts": timeouts | (ends & ~terminals),
            "trajectory_ends": ends | timeouts,
        }
        if block.next_observations is not None:
            out["next_observations"] = block.next_observations[chosen]
        if ordered.times is not None:
            out["times"] = ordered.times[rows][chosen]
        yield out


def _sorted_blocks(
    arrays: Block, ordered: Ordered, columns: Columns, missing: Missing, filled: Counter[str]
) -> Iterator[tuple[int, Block]]:
    """The sorted rows, block after block, each with where it begins; gaps are filled if they are to be."""
    width = len(columns.observations)
    before = np.full(width + len(columns.actions), np.nan, np.float32)
    for start in range(0, len(arrays.rewards), CHUNK):
        rows: slice | np.ndarray = slice(start, start + CHUNK)
        starts = ordered.starts[rows]
        rows = rows if ordered.order is None else ordered.order[rows]
        block = arrays.rows(rows)
        if missing == "forward":
            both = np.concatenate([block.observations, block.actions], axis=1)
            was_missing = np.isnan(both)
            both, before = fill_forward(both, starts, before)
            counts = (was_missing & ~np.isnan(both)).sum(axis=0)
            named = zip((*columns.observations, *columns.actions), counts.tolist(), strict=True)
            filled.update({name: count for name, count in named if count})
            block = block._replace(observations=both[:, :width], actions=both[:, width:])
        yield start, block


def fill_forward(values: np.ndarray, starts: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each missing value becomes the one before it in its episode, and stays missing where there is none.

    `before` holds the last known values of the episode that the first row may go on with; those of the last row come
    back beside the filled rows.
    """
    rows = np.arange(len(values))
    began = np.maximum.accumulate(np.where(starts, rows, -1))  # -1: before these rows
    filled = values.copy()
    for index, column in enumerate(values.T):
        known = np.maximum.accumulate(np.where(np.isnan(column), -1, rows))
        here = known >= np.maximum(began, 0)
        filled[:, index] = np.where(here, column[known], np.nan)
        from_before = (known < 0) & (began < 0)
        filled[from_before, index] = before[index]
    return filled, filled[-1].copy()


def _complete(block: Block) -> np.ndarray:
    """The rows in which nothing is missing any more."""
    complete = np.isfinite(block.rewards)
    for numbers in (block.observations, block.actions, block.next_observations):
        complete &= True if numbers is None else np.isfinite(numbers).all(axis=1)
    for marks in (block.terminals, block.timeouts):
        complete &= True if marks is None else marks != UNKNOWN
    return np.asarray(complete)


def _find_gaps(ordered: Ordered, ends: np.ndarray, location: Callable[[int], str]) -> Gaps | None:
    times = ordered.times
    if times is None or len(times) < 2:
        return None
    steps = np.diff(times[: STEPS + 1])[~ends[:-1][:STEPS]]
    if not len(steps):
        return None
    usual = float(np.median(steps))
    found: list[int] = []
    count, longest = 0, 0.0
    for start in range(0, len(times) - 1, STEPS):
        part = slice(start, start + STEPS + 1)
        apart = np.diff(np.asarray(times[part]))
        late = np.flatnonzero((apart > GAP * usual) & ~ends[part][: len(apart)])
        count += len(late)
        longest = max(longest, float(apart[late].max(initial=0)))
        found += (start + late[: 3 - len(found)] + 1).tolist()
    return Gaps(usual, count, longest, tuple(location(ordered.row(at)) for at in found)) if count else None
