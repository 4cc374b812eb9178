"""A table becomes a recording: a file in our format, or arrays in memory."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from score_rl.data.columns import bound_vectors, bounds_of_list
from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.progress_bar import byte_progress, row_progress
from score_rl.data.sources.reader import Recording
from score_rl.data.tables.arrangement import Arranged, arrange, arranged_blocks
from score_rl.data.tables.conversion import Bounds, Converter, Missing
from score_rl.data.tables.csv_table import CsvTable
from score_rl.data.tables.order import Ordered, order_rows, parted_by_gaps
from score_rl.data.tables.read_ahead import read_ahead
from score_rl.data.tables.roles import Columns, Roles, resolve
from score_rl.data.tables.spool import Spool, Spooled, spool_beside
from score_rl.data.tables.table import CellError, Table
from score_rl.data.tables.writing import FileSink, MemorySink
from score_rl.errors import InputError

FROM_DATA = "data"
MISSING_POLICIES = ("error", "forward", "drop")


@dataclasses.dataclass(frozen=True)
class Options:
    """What is done with the rows."""

    missing: Missing = "error"  # forward: the value before in the trajectory; drop: without rows that miss something
    gap: float | None = None  # a trajectory ends where the next row comes later than this; seconds if times are dates
    action_bounds: Sequence[float] | Literal["data"] | None = None  # None: ±1; "data": least and most that was recorded
    environment: str | None = None
    progress: bool = False

    def check(self) -> None:
        if self.missing not in MISSING_POLICIES:
            raise InputError(f"`missing` is {self.missing!r}; it must be error, forward or drop.")
        if self.gap is not None and not self.gap > 0:
            raise InputError(f"`gap` is {self.gap:g}; it must be a time, more than 0.")
        if isinstance(self.action_bounds, str) and self.action_bounds != FROM_DATA:
            raise InputError(f"`action_bounds` is {self.action_bounds!r}; give numbers, or data.")


@dataclasses.dataclass(frozen=True)
class Summary:
    """What became of a table."""

    table: str
    columns: Columns
    rows_read: int
    rows: int  # that were kept
    lengths: np.ndarray  # of the trajectories, in rows
    was_sorted: bool
    terminals: int
    timeouts: int
    rewards: tuple[float, float]
    action_range: Bounds
    action_bounds: Bounds
    bounds_from_data: bool
    arranged: Arranged
    seconds: float | None  # in one unit of the times, where that is known

    def to_json(self) -> dict[str, Any]:
        """What is stored in the file and beside every result."""
        gaps = self.arranged.gaps
        return {
            "kind": "import",
            "columns": self.columns.to_json(),
            "rows_read": self.rows_read,
            "rows": self.rows,
            "sorted_here": not self.was_sorted,
            "action_bounds": "from the data" if self.bounds_from_data else "given",
            "filled": dict(self.arranged.filled),
            "left_out": self.arranged.left_out,
            **({} if gaps is None else {"gaps": gaps.number, "usual_step": gaps.usual, "longest_gap": gaps.longest}),
        }


def roles_of(
    observations: Sequence[str],
    actions: Sequence[str],
    next_observations: Sequence[str] | None = None,
    units: Mapping[str, str] | None = None,
    **single: str | None,
) -> Roles:
    """Roles from what a user gives: a single name is a list of one."""
    lists = (
        (names,) if isinstance(names, str) else tuple(names or ())
        for names in (observations, actions, next_observations)
    )
    seen, acted, following = lists
    return Roles(seen, acted, next_observations=following, units=dict(units or {}), **single)


def import_table(table: Table, roles: Roles, out: Path, options: Options | None = None) -> Summary:
    """Write a table as a file in our format, whole or not at all."""
    with FileSink(out) as sink:
        return _import(table, roles, options or Options(), sink, out)


def recording_of_table(table: Table, roles: Roles, options: Options | None = None, kind: str = "frame") -> Recording:
    """A table as a recording in memory."""
    options, sink = options or Options(), MemorySink()
    summary = _import(table, roles, options, sink, None)
    return Recording(
        columns=sink.arrays(),
        origin={"kind": kind, **table.origin(), "recipe": summary.to_json()},
        label="",
        environment=options.environment or "none",
        action_bounds=summary.action_bounds,
        labels=labels_of(table, summary.columns),
    )


def labels_of(table: Table, columns: Columns) -> Labels:
    if not table.named:
        return NO_LABELS
    return Labels(columns.observations, columns.actions, columns.units)


def _import(
    table: Table, roles: Roles, options: Options, sink: "FileSink | MemorySink", beside: Path | None
) -> Summary:
    options.check()
    columns = resolve(roles, table.names, table.name)
    if not len(table.sample):
        raise InputError(f"{table.name} has no rows; at least one is needed.")
    asked = options.action_bounds
    given = None if asked == FROM_DATA else _given_bounds(table.name, asked, columns)
    converter = Converter(table, columns, options.missing, given)
    with spool_beside(beside, may_miss=options.missing != "error", total=table.rows) as spool:
        _read_all(table, columns, converter, spool, options)
        if table.whole:
            converter.refuse_absent_values()
        spooled = spool.whole()
        ordered = order_rows(spooled.arrays, converter.texts, columns, table.location)
        form = converter.time_form
        seconds = None if form is None else form.seconds
        if options.gap is not None:
            if form is None:
                raise InputError("`gap` was given, but no column of times; name it as `time`.")
            ordered = parted_by_gaps(ordered, options.gap / (seconds or 1.0))
        arranged = arrange(spooled, ordered, columns, options.missing, table.location)
        return _write(table, columns, options, (spooled, ordered, arranged), (given, seconds), sink)


def _given_bounds(name: str, asked: Sequence[float] | str | None, columns: Columns) -> Bounds:
    width = len(columns.actions)
    bounds = (-1.0, 1.0) if asked is None or isinstance(asked, str) else bounds_of_list(asked, width)
    return bound_vectors(name, bounds, width)


def _read_all(table: Table, columns: Columns, converter: Converter, spool: Spool, options: Options) -> None:
    label = f"reading {table.name}"
    progress = byte_progress if isinstance(table, CsvTable) else row_progress
    with progress(label, table.size, options.progress) as advance:
        for part in read_ahead(table.parts(columns.all, columns.numbers, advance)):
            _refuse_other_length(table, spool.rows + len(part.frame), ended=False)
            try:
                spool.add(converter(part))
            except CellError as error:
                if options.action_bounds is None and "beyond its bounds -1 to 1" in str(error):
                    raise _no_bounds(table, error) from None
                raise
    _refuse_other_length(table, spool.rows, ended=True)


def _refuse_other_length(table: Table, rows: int, *, ended: bool) -> None:
    """Refuse a table that says how many rows it has, and has others."""
    if table.rows is not None and (rows > table.rows or (ended and rows < table.rows)):
        raise InputError(
            f"{table.name} is damaged: it says that it has {table.rows:,} rows, and {rows:,} were read; write it again."
        )


def _no_bounds(table: Table, error: CellError) -> InputError:
    return InputError(
        f"{table.name}, {table.location(error.row)}: {error.column} is beyond ±1, and nobody said what the actions can "
        "be: give LOW HIGH of each in `action_bounds`, what the device can do or less, or `action_bounds=data` for the "
        "least and the most that was recorded."
    )


def _write(
    table: Table,
    columns: Columns,
    options: Options,
    rows: tuple[Spooled, Ordered, Arranged],
    known: tuple[Bounds | None, float | None],
    sink: "FileSink | MemorySink",
) -> Summary:
    spooled, ordered, arranged = rows
    given, seconds = known
    recorded = len(ordered.starts)
    count = recorded if arranged.keep is None else int(arranged.keep.sum())
    if not count:
        raise InputError(f"{table.name}: something is missing in every row; fill the gaps, or leave a column out.")
    in_place = ordered.order is None and not spooled.incomplete
    if isinstance(sink, FileSink) and spooled.begun is not None and in_place:
        sink.adopt(spooled.begun)
    first = None if ordered.times is None else ordered.times.min()
    with row_progress("writing", count, options.progress) as advance:
        for block in arranged_blocks(spooled, ordered, arranged, columns, options.missing):
            if first is not None and seconds is not None:
                block["times"] = (block["times"] - first) * seconds
            sink.write(block, count)
            advance(len(block["rewards"]))
    bounds = given if given is not None else _bounds_of_data(table, columns, sink.action_range)
    summary = Summary(
        table=table.name,
        columns=columns,
        rows_read=recorded,
        rows=count,
        lengths=sink.lengths(),
        was_sorted=ordered.order is None,
        terminals=sink.terminals,
        timeouts=sink.timeouts,
        rewards=sink.rewards,
        action_range=sink.action_range,
        action_bounds=bounds,
        bounds_from_data=given is None,
        arranged=arranged,
        seconds=seconds,
    )
    sink.finish(
        summary.to_json() | {"source": dict(table.origin())}, bounds, options.environment, labels_of(table, columns)
    )
    return summary


def _bounds_of_data(table: Table, columns: Columns, found: Bounds) -> Bounds:
    low, high = found
    constant = np.flatnonzero(low == high)
    if len(constant):
        name = columns.actions[int(constant[0])]
        raise InputError(
            f"{table.name}: {name} is always {low[constant[0]]:g}, so the data give it no bounds and nothing can be "
            "learned about it; leave it out, or give LOW HIGH in `action_bounds`."
        )
    return low, high
