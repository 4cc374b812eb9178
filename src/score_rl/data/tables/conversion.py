"""From the cells of a table to numbers: what a cell may hold in each role, and what is said of one that may not.

A missing number becomes NaN here, and a missing mark `UNKNOWN`. What is done about them is decided later, when the
rows are sorted (`arrangement`).
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from score_rl.data.columns import BOUND_TOLERANCE
from score_rl.data.tables.roles import Columns, Mark
from score_rl.data.tables.table import MISSING, CellError, Part, Table, import_polars
from score_rl.data.tables.times import TimeForm
from score_rl.errors import InputError

if TYPE_CHECKING:
    import polars

Missing = Literal["error", "forward", "drop"]
UNKNOWN = 2  # a mark that is missing
TRUE, FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n")
FILL = "fill the gap, or pass `missing=forward` (the value before) or `missing=drop` (without such rows)"
LEAVE_OUT = "fill the gap, or pass `missing=drop` (without such rows)"
FEW = 5  # values of a column that a message lists
RARE = 0.1  # share of cells with a text, below which it is a slip
ENCODE = "leave the column out, or write it as numbers (a column of 0 and 1 for each value)"

Bounds = tuple[np.ndarray, np.ndarray]


class Block(NamedTuple):
    """Some rows as numbers, in the order of the table."""

    observations: np.ndarray  # float32; NaN is missing
    actions: np.ndarray
    rewards: np.ndarray
    next_observations: np.ndarray | None
    terminals: np.ndarray | None  # uint8: 0, 1 or UNKNOWN
    timeouts: np.ndarray | None
    episodes: np.ndarray | None  # int64: the number in the table, or that of a text in the order of appearance
    times: np.ndarray | None  # int64 or float64, in the form's ticks

    def rows(self, chosen: slice | np.ndarray) -> "Block":
        """Some of the rows, in memory."""
        arrays: list[Any] = [None if values is None else np.asarray(values[chosen]) for values in self]
        return Block(*arrays)


class Converter:
    """Converts the parts of one table, one after the other."""

    def __init__(self, table: Table, columns: Columns, missing: Missing, bounds: Bounds | None) -> None:
        self._table, self._columns, self._missing, self._bounds = table, columns, missing, bounds
        self._fillable = {*columns.observations, *columns.actions}
        self.texts: dict[str, int] = {}  # the episodes that are named by texts, each with its number
        self._found: set[Mark] = set()  # values of marks that stand in some row
        self._others: dict[Mark, list[str]] = {}  # what the columns of the others hold
        self.time_form = None if columns.time is None else TimeForm.of(table, columns.time)

    def __call__(self, part: Part) -> Block:
        columns, frame = self._columns, part.frame
        actions = self._numbers(part, columns.actions, may_miss=self._missing != "error")
        self._hold_bounds(part, actions)
        terminals = None if columns.terminal is None else self._marks(part, columns.terminal)
        observations = self._numbers(part, columns.observations, may_miss=self._missing != "error")
        return Block(
            observations=observations,
            actions=actions,
            rewards=self._rewards(part),
            next_observations=self._following(part, observations, terminals) if columns.next_observations else None,
            terminals=terminals,
            timeouts=None if columns.timeout is None else self._marks(part, columns.timeout),
            episodes=None if columns.episode is None else self._episodes(part, frame.get_column(columns.episode)),
            times=None if self.time_form is None else self._times(part, self.time_form),
        )

    def refuse_absent_values(self) -> None:
        """Refuse a value that was named as a mark and stands in no row: a slip of the pen would lose every mark."""
        for role in ("terminal", "timeout"):
            mark: Mark | None = getattr(self._columns, role)
            if mark is not None and mark.value is not None and mark not in self._found:
                held = ", ".join(self._others[mark][:FEW])
                raise InputError(
                    f"{self._table.name}: no row has {mark.value!r} in {mark.column}, which holds {held}; correct "
                    f"`{role}`, or leave it out."
                )

    # -- numbers ---------------------------------------------------------------------------------------------------

    def _numbers(self, part: Part, names: Sequence[str], may_miss: bool | None = None) -> np.ndarray:
        """The columns side by side in float32. What may not be missing is refused, unless its rows are left out."""
        out = self._side_by_side(part, names)
        missing_allowed = self._missing == "drop" if may_miss is None else may_miss
        if not np.isfinite(out.sum(dtype=np.float64)):
            self._refuse_broken(part, names, np.isinf(out) if missing_allowed else ~np.isfinite(out), out)
        return out

    def _rewards(self, part: Part) -> np.ndarray:
        rewards = self._numbers(part, (self._columns.reward,))[:, 0]
        return rewards if self._columns.sign > 0 else np.float32(0) - rewards  # so that no cost is 0, and not -0

    def _following(self, part: Part, observations: np.ndarray, terminals: np.ndarray | None) -> np.ndarray:
        """The next observations. After a terminal there may be none: nothing is computed from it."""
        names = self._columns.next_observations
        out = self._side_by_side(part, names)
        if terminals is not None:
            nothing = (terminals == 1) & np.isnan(out).all(axis=1)
            out[nothing] = observations[nothing]
        self._refuse_broken(part, names, np.isinf(out) if self._missing == "drop" else ~np.isfinite(out), out)
        return out

    def _side_by_side(self, part: Part, names: Sequence[str]) -> np.ndarray:
        out = np.empty((len(part.frame), len(names)), np.float32)
        for column, name in enumerate(names):
            with np.errstate(over="ignore"):  # what is too large for 32 bits is refused as infinite
                out[:, column] = cells_as_numbers(self._table, part, name)
        return out

    def _refuse_broken(self, part: Part, names: Sequence[str], broken: np.ndarray, numbers: np.ndarray) -> None:
        if not broken.any():
            return
        row, column = (int(index) for index in np.argwhere(broken)[0])
        if np.isinf(numbers[row, column]):
            found, remedy = "is infinite, or too large for 32 bits", "correct the cell"
        else:
            # A reward is what a step brought. The one before is no substitute.
            found, remedy = "is missing", FILL if names[column] in self._fillable else LEAVE_OUT
        raise CellError(self._table, names[column], part.first + row, found, remedy)

    def _hold_bounds(self, part: Part, actions: np.ndarray) -> None:
        if self._bounds is None:
            return
        low, high = self._bounds
        inside = (
            column.min() >= least - BOUND_TOLERANCE and column.max() <= most + BOUND_TOLERANCE
            for column, least, most in zip(actions.T, low, high, strict=True)
        )
        if all(inside):  # a third of the time, and true of nearly every part
            return
        outside = (actions < low - BOUND_TOLERANCE) | (actions > high + BOUND_TOLERANCE)
        if outside.any():
            row, column = (int(index) for index in np.argwhere(outside)[0])
            raise CellError(
                self._table, self._columns.actions[column], part.first + row,
                f"is {actions[row, column]:g}, beyond its bounds {low[column]:g} to {high[column]:g}",
                "correct the cell, or the bounds (`action_bounds`)",
            )  # fmt: skip

    # -- marks and keys --------------------------------------------------------------------------------------------

    def _plain(self, cells: "polars.Series") -> "polars.Series":
        """Numbers, texts, dates or categories; not lists, structures or bytes."""
        pl = import_polars("a table")
        if cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object, pl.Duration):
            kind = str(cells.dtype).lower()
            raise InputError(f"{self._table.name}: {cells.name} holds {kind}, but one value to a row is expected.")
        return cells

    def _marks(self, part: Part, mark: Mark) -> np.ndarray:
        pl = import_polars("a table")
        cells = part.frame.get_column(mark.column)
        if mark.value is not None:
            marked = _equal(self._plain(cells), mark.value)
            if marked.any():
                self._found.add(mark)
            elif mark not in self._others:
                self._others[mark] = cells.drop_nulls().unique(maintain_order=True).head(FEW).cast(pl.String).to_list()
            return marked.to_numpy().astype(np.uint8)
        texts = self._plain(cells).cast(pl.String).str.strip_chars().str.to_lowercase()
        missing = (texts.is_null() | texts.is_in([text.lower() for text in MISSING])).to_numpy()
        yes, no = (texts.is_in(known).fill_null(False).to_numpy() for known in (TRUE, FALSE))
        unknown = np.flatnonzero(~(yes | no | missing))
        if len(unknown):
            row = int(unknown[0])
            raise CellError(
                self._table, mark.column, part.first + row, f"holds {cells[row]!r}, which is neither true nor false",
                f"write 0 and 1, or name the value that marks a row, such as {mark.column}={cells[row]}",
            )  # fmt: skip
        if missing.any() and self._missing != "drop":
            row = int(np.flatnonzero(missing)[0])
            remedy = "write 0 or 1, or pass `missing=drop` (without such rows)"
            raise CellError(self._table, mark.column, part.first + row, "is missing", remedy)
        return np.where(missing, UNKNOWN, yes).astype(np.uint8)

    def _episodes(self, part: Part, cells: "polars.Series") -> np.ndarray:
        pl = import_polars("a table")
        cells = self._plain(cells)
        if cells.dtype == pl.String:
            cells = cells.str.strip_chars()
        if cells.dtype.is_float():
            cells = cells.fill_nan(None)
        if cells.null_count():
            row = int(cells.is_null().arg_true()[0])
            raise CellError(self._table, cells.name, part.first + row, "is missing", "say which episode the row is of")
        if not self._table.sample[cells.name].dtype.is_numeric():
            return self._numbered(cells.cast(pl.String))
        whole = cells.cast(pl.Int64, strict=False)
        wrong = whole.is_null() if cells.dtype == pl.String else whole.is_null() | (whole != cells)
        if wrong.any():
            row = int(wrong.arg_true()[0])
            raise CellError(
                self._table, cells.name, part.first + row, f"is {cells[row]!r}, but the first ones are whole numbers",
                "name all of them alike",
            )  # fmt: skip
        return whole.to_numpy()

    def _numbered(self, texts: "polars.Series") -> np.ndarray:
        pl = import_polars("a table")
        known = texts.unique(maintain_order=True).to_list()
        numbers = [self.texts.setdefault(text, len(self.texts)) for text in known]
        return texts.replace_strict(known, numbers, return_dtype=pl.Int64).to_numpy()

    def _times(self, part: Part, form: TimeForm) -> np.ndarray:
        cells = part.frame.get_column(form.column)
        ticks = form.ticks(cells)
        if ticks.null_count():
            row = int(ticks.is_null().arg_true()[0])
            if cells[row] is None or (isinstance(cells[row], float) and np.isnan(cells[row])):
                raise CellError(
                    self._table, form.column, part.first + row, "is missing", "say when the row was recorded"
                )
            raise CellError(
                self._table, form.column, part.first + row, f"is {cells[row]!r}, which is {form.expected}", form.remedy
            )
        return ticks.to_numpy()


def cells_as_numbers(table: Table, part: Part, name: str) -> np.ndarray:
    """A column in float64, NaN where a cell is missing. A cell that is no number is refused by its line."""
    pl = import_polars("a table")
    cells = part.frame.get_column(name)
    if cells.dtype == pl.String:
        cells = _texts_as_numbers(table, part, cells)
    elif not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"{table.name}: {name} holds {str(cells.dtype).lower()}, but numbers are expected; {ENCODE}.")
    return cells.cast(pl.Float64).to_numpy()  # what is missing becomes NaN


def _texts_as_numbers(table: Table, part: Part, cells: "polars.Series") -> "polars.Series":
    pl = import_polars("a table")
    stripped = cells.str.strip_chars()
    stripped = pl.select(pl.when(stripped.is_in(MISSING)).then(None).otherwise(stripped).alias(cells.name)).to_series()
    numbers = stripped.cast(pl.Float64, strict=False)
    wrong = (numbers.is_null() & stripped.is_not_null()).to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        others = stripped.filter(numbers.is_null()).unique().drop_nulls().sort().head(4).to_list()
        shown = ", ".join(map(repr, others))
        many = wrong.sum() > RARE * len(wrong) or len(others) > 1
        remedy = f"{ENCODE} (texts in it: {shown})" if many else "correct it, or remove the line"
        if re.match(r"[+-]?[.,]?\d", stripped[row]):  # such as 45%
            remedy = "write it as a number and nothing else"
        raise CellError(table, cells.name, part.first + row, f"holds {stripped[row]!r}, which is no number", remedy)
    return numbers


def _equal(cells: "polars.Series", value: str) -> "polars.Series":
    """Where the cells hold this value, as a number if they are numbers; an empty cell does not."""
    pl = import_polars("a table")
    if cells.dtype.is_numeric():
        try:
            return (cells.cast(pl.Float64) == float(value)).fill_null(False)
        except ValueError:
            return pl.Series([False] * len(cells))
    return (cells.cast(pl.String).str.strip_chars() == value).fill_null(False)
