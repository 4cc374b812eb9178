"""The column of times: numbers, or dates and times of day in a form that is guessed from the first rows or told."""

from typing import TYPE_CHECKING, Any, NamedTuple

from score_rl.data.tables.table import CellError, Table, import_polars
from score_rl.errors import InputError

if TYPE_CHECKING:
    import polars

FORMS = (  # ISO 8601 and what is near it, and days before months where dots stand between
    "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y/%m/%d %H:%M:%S%.f", "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S%.f", "%d.%m.%Y %H:%M", "%d.%m.%Y",
)  # fmt: skip
SLASHED = tuple(  # the days above 12 tell which is which
    f"{date}{time}"
    for date in ("%m/%d/%Y", "%d/%m/%Y")
    for time in ("", " %H:%M:%S%.f", " %H:%M", " %I:%M:%S %p", " %I:%M %p")
)
OF_DAY = ("%H:%M:%S%.f", "%H:%M")
EXACT = 1 << 52  # whole numbers up to here are exact as floats
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}


class TimeForm(NamedTuple):
    """How the times of a table are written."""

    column: str
    form: str | None  # of texts
    seconds: float | None  # in one tick; None: the numbers are in a unit that nobody said
    whole: bool = False  # numbers too large to be exact as floats
    expected: str = "not written as the times above it"
    remedy: str = "write all times alike"

    @classmethod
    def of(cls, table: Table, column: str) -> "TimeForm":
        pl = import_polars("a table")
        cells = table.sample[column]
        kind = cells.dtype
        if kind.is_numeric():
            largest = cells.cast(pl.Float64).abs().max()
            return cls(column, None, None, kind.is_integer() and largest is not None and float(str(largest)) > EXACT)
        if isinstance(kind, pl.Datetime | pl.Duration):
            return cls(column, None, SECONDS[kind.time_unit or "us"])
        if kind == pl.Date:
            return cls(column, None, 86_400.0)
        if kind == pl.Time:
            return cls(column, None, 1e-9)
        if kind != pl.String:
            raise InputError(
                f"{table.name}: {column} holds {str(kind).lower()}, which are no times; name another column."
            )
        texts = cells.drop_nulls()
        if not len(texts):
            raise InputError(f"{table.name}: {column} holds no times in its first rows; name another column as `time`.")
        read = {form: _parsed(texts, form) for form in (*FORMS, *SLASHED, *OF_DAY)} | {
            None: texts.str.strip_chars().cast(pl.Float64, strict=False)
        }
        best = min(read, key=lambda form: read[form].null_count())
        if read[best].null_count() == 0 and best is not None:
            _refuse_ambiguous(table, column, cells, [read[form] for form in SLASHED])
            return cls(column, best, 1e-9 if best in OF_DAY else 1e-6)
        wrong = int(read[best].is_null().arg_true()[0])
        row = int(cells.is_not_null().arg_true()[wrong])
        raise CellError(
            table, column, row, f"is {cells[row]!r}, which is neither a number nor a time such as 2024-01-31 12:00:00",
            "write times like that, or as numbers",
        )  # fmt: skip

    def ticks(self, cells: "polars.Series") -> "polars.Series":
        """Whole ticks, or floats where the times are numbers; null where there is no time."""
        pl = import_polars("a table")
        if self.form is not None:
            return _parsed(cells.cast(pl.String), self.form).to_physical()
        if self.seconds is not None:
            return cells.to_physical().cast(pl.Int64)
        numbers = cells.str.strip_chars() if cells.dtype == pl.String else cells
        if self.whole:
            return numbers.cast(pl.Int64, strict=False)
        floats = numbers.cast(pl.Float64, strict=False)
        return pl.select(pl.when(floats.is_finite()).then(floats).alias(cells.name)).to_series()


def _parsed(texts: "polars.Series", form: str) -> "polars.Series":
    pl = import_polars("a table")
    stripped = texts.str.strip_chars()
    parsed: Any = stripped.str.strptime(pl.Time if form in OF_DAY else pl.Datetime("us"), form, strict=False)
    return parsed


def _refuse_ambiguous(table: Table, column: str, cells: "polars.Series", read: "list[polars.Series]") -> None:
    """Refuse dates such as 1/2/2024 where no day above 12 says which number is the month."""
    whole = [times for times in read if times.null_count() == 0]
    if any(not times.equals(whole[0]) for times in whole[1:]):
        row = int((whole[0] != whole[-1]).arg_true()[0])
        raise CellError(
            table, column, int(cells.is_not_null().arg_true()[row]),
            f"is {cells.drop_nulls()[row]!r}, of which either number may be the month", "write 2024-01-31 12:00:00",
        )  # fmt: skip
