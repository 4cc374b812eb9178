"""What every table gives, whatever it was read from: names, a look at the first rows, and all rows in blocks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from score_rl.errors import InputError, not_installed, printable

if TYPE_CHECKING:
    import polars

BLOCK_ROWS = 250_000
SAMPLE_ROWS = 1_000  # that a table is judged by before it is read
REFUSED = "refused"  # what a process that reads a file apart says of one that its library does not take
MISSING = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "NULL", "null", "None", "none", "-", "--", "?", "#N/A")

Advance = Callable[[int], None]


class Part(NamedTuple):
    """Some rows of a table, one after the other."""

    frame: "polars.DataFrame"  # the wanted columns, under their names
    first: int  # the number of its first row in the table, from 0


class Table(Protocol):
    """A table that can be read from its beginning, more than once."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def names(self) -> Sequence[str]:
        """Its columns."""

    @property
    def named(self) -> bool:
        """Whether the names are somebody's: those of a matrix's columns are not."""

    @property
    def whole(self) -> bool:
        """Whether these are all rows, and not the first ones of another table."""

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known before they are read."""

    @property
    def sample(self) -> "polars.DataFrame":
        """Its first rows, each column as what it looks like."""

    @property
    def size(self) -> int:
        """What reading all of it advances by: bytes of a text, rows of anything else."""

    def parts(self, columns: Sequence[str], numbers: Collection[str], advance: Advance) -> Iterator[Part]:
        """All rows of these columns; `numbers` are those of them that must hold numbers."""

    def location(self, row: int) -> str:
        """Where a row stands, as a user finds it: "line 17" of a text, "row 15" of anything else."""

    def origin(self) -> Mapping[str, Any]:
        """What a stored result says of it; complete after all rows were read."""


def import_polars(what: str) -> Any:
    """polars, or how to get it."""
    try:
        import polars
    except ImportError:
        raise not_installed(f"{what} needs polars", "tables") from None
    return polars


class CellError(InputError):
    """A cell that cannot be used: its column, its line, what it holds and what to do."""

    def __init__(self, table: Table, column: str, row: int, found: str, remedy: str) -> None:
        super().__init__(printable(f"{table.name}, {table.location(row)}: {column} {found}; {remedy}."))
        self.column, self.row = column, row
