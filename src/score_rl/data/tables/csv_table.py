"""Tables as text: columns between commas, semicolons or tabs, with their names in the first line.

The file is read in blocks of whole lines. So memory does not grow with it, the bar knows how far it is, and a cell
that cannot be used is named by its line.
"""

import csv
import gzip
import hashlib
import io
import re
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from score_rl.data.sources.hdf5_file import ALWAYS_ALLOWED, MOST_UNPACKED
from score_rl.data.tables.table import MISSING, SAMPLE_ROWS, Advance, Part, import_polars
from score_rl.errors import InputError, printable

if TYPE_CHECKING:
    import polars

BLOCK = 16 << 20  # bytes
LONGEST_LINE = 64 << 20  # bytes
BEGINNING = 1 << 20  # bytes that the form is guessed from
LONE_RETURN = re.compile(rb"\r(?!\n)")
SEPARATORS = (",", ";", "\t", "|")


class Form(NamedTuple):
    """How a text is written."""

    names: tuple[str, ...]
    separator: str
    decimal_comma: bool
    encoding: str
    header_bytes: int


class BlockPlace(NamedTuple):
    """Where a block begins."""

    row: int
    line: int
    one_line_each: bool  # whether each of its rows is one line


class CsvTable:
    """A CSV file, packed by gzip or not."""

    named = whole = True
    rows = None

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        with self._open() as file:
            beginning = file.read(BEGINNING)
        self.form = _guess_form(beginning, path)
        self.names = self.form.names
        self.size = path.stat().st_size
        self._beginning = beginning
        self._blocks_read = [BlockPlace(0, 2, True)]
        self._sha256 = ""
        self._only_numbers = True  # until a word stands where a number is missing

    @cached_property
    def sample(self) -> "polars.DataFrame":
        lines = _whole_lines(self._beginning, len(self._beginning) < BEGINNING)[self.form.header_bytes :]
        texts = self._texts(lines, list(range(len(self.names)))).head(SAMPLE_ROWS)
        return as_they_look(texts)

    def parts(self, columns: Sequence[str], numbers: Collection[str], advance: Advance) -> Iterator[Part]:
        pl = import_polars("reading CSV")
        places = [self.names.index(name) for name in columns]
        looks = self.sample.schema
        types = {
            name: looks[name] if name not in numbers or looks[name] == pl.String else pl.Float64 for name in columns
        }
        row, line = 0, 2
        self._blocks_read = []
        for block in self._blocks(advance):
            frame = self._parsed(block, places, types, line)
            lines = block.count(b"\n") + (not block.endswith(b"\n"))
            self._blocks_read.append(BlockPlace(row, line, lines == len(frame)))
            yield Part(frame, row)
            row, line = row + len(frame), line + lines

    def location(self, row: int) -> str:
        block = self._blocks_read[max(0, bisect_right(self._blocks_read, row, key=lambda block: block.row) - 1)]
        if not block.one_line_each:
            return f"row {row} below the names, counted from 0"
        return f"line {block.line + row - block.row}"

    def origin(self) -> Mapping[str, Any]:
        return {"path": str(self.path), "bytes": self.size, "file_sha256": self._sha256}

    # -- reading ---------------------------------------------------------------------------------------------------

    def _open(self) -> "_Reading":
        return _Reading(self.path)

    def _blocks(self, advance: Advance) -> Iterator[bytes]:
        """Whole lines, without the names."""
        digest = hashlib.sha256()
        with self._open() as file:
            rest = file.read(self.form.header_bytes)
            digest.update(rest)
            rest, told = b"", 0
            while read := file.read(BLOCK):
                digest.update(read)
                advance(file.tell() - told)
                told = file.tell()
                rest += read
                if len(rest) > LONGEST_LINE and b"\n" not in rest:
                    raise InputError(f"{self.path} has a line of more than {LONGEST_LINE:,} bytes: it is no table.")
                lines = _whole_lines(rest, whole=False)
                rest = rest[len(lines) :]
                if lines:
                    _refuse_lone_returns(lines, self.path)
                    yield lines
            if rest := rest.rstrip(b"\r\n \t"):
                _refuse_lone_returns(rest, self.path)
                yield rest
        packed = self.path.suffix.lower() == ".gz"
        self._sha256 = _file_digest(self.path) if packed else digest.hexdigest()

    def _parsed(self, block: bytes, places: Sequence[int], types: Mapping[str, Any], line: int) -> "polars.DataFrame":
        """Columns that look like numbers as such, all others as text."""
        pl = import_polars("reading CSV")
        wanted = {f"{place}": types[name] for place, name in zip(places, types, strict=True)}
        names = {str(place): name for place, name in zip(places, types, strict=True)}
        failed = (pl.exceptions.PolarsError, UnicodeError)
        if self._only_numbers:
            with suppress(*failed):
                return self._frame(block, places, wanted, words=False).rename(names)
        try:
            frame = self._frame(block, places, wanted).rename(names)
        except failed:
            _refuse_ragged(block, self.form, self.name, line)
            return self._texts(block, places)  # whoever converts the texts names the cell that is wrong
        self._only_numbers = False
        return frame

    def _texts(self, block: bytes, places: Sequence[int]) -> "polars.DataFrame":
        pl = import_polars("reading CSV")
        try:
            frame = self._frame(block, places, dict.fromkeys(map(str, places), pl.String))
        except (pl.exceptions.PolarsError, UnicodeError) as error:
            _refuse_ragged(block, self.form, self.name, 2)
            reason = printable(str(error).partition("\n")[0][:200])
            raise InputError(f"{self.name} cannot be read as CSV ({reason}); save it again as CSV in UTF-8.") from None
        if self.form.decimal_comma:
            frame = frame.with_columns(pl.all().str.replace(r"^\s*([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)\s*$", "${1}.${2}"))
        return frame.rename({str(place): self.names[place] for place in places})

    def _frame(
        self, block: bytes, places: Sequence[int], types: Mapping[str, Any], *, words: bool = True
    ) -> "polars.DataFrame":
        """The columns under their places. `words` says whether numbers may be missing by a word, such as NA: looking
        for it costs as much as reading the numbers."""
        pl = import_polars("reading CSV")
        text = block if self.form.encoding == "utf-8" else block.decode(self.form.encoding).encode()
        header = self.form.separator.join(map(str, range(len(self.names)))).encode()
        frame = pl.read_csv(
            b"".join([header, b"\n", text]),
            columns=list(map(str, places)),
            separator=self.form.separator,
            decimal_comma=self.form.decimal_comma,
            null_values=list(MISSING) if words else None,
            schema_overrides=types,
            infer_schema=False,
        ).select(list(map(str, places)))
        texts = pl.col([name for name, kind in types.items() if kind == pl.String])
        return frame if words else frame.with_columns(pl.when(~texts.is_in(MISSING)).then(texts))


class _Reading:
    """An open file that is unpacked if it is packed, as far as one of its size is believed to go."""

    def __init__(self, path: Path) -> None:
        self._path, self._raw = path, _opened(path)
        self._file: IO[bytes] = self._raw
        self._room = max(ALWAYS_ALLOWED, MOST_UNPACKED * path.stat().st_size)
        if path.suffix.lower() == ".gz":
            self._file = cast("IO[bytes]", gzip.GzipFile(fileobj=self._raw))

    def read(self, size: int) -> bytes:
        try:
            found = self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            reason = printable(str(error)) or type(error).__name__
            raise InputError(f"{self._path} is damaged ({reason}): fetch it again, or unpack it yourself.") from error
        self._room -= len(found)
        if self._room < 0:
            raise InputError(
                f"{self._path} holds more than {MOST_UNPACKED} times its size: unpack it yourself if that is meant."
            )
        return found

    def tell(self) -> int:
        """How far it is in the file on the disk."""
        return self._raw.tell()

    def __enter__(self) -> "_Reading":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._raw.close()


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); give the path of a CSV file.") from None


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _whole_lines(text: bytes, whole: bool) -> bytes:
    """The text up to the end of its last line; a line that ends inside quotes is none."""
    if whole:
        return text
    cut = text.rfind(b"\n") + 1
    if b'"' in text:
        while cut and text.count(b'"', 0, cut) % 2:
            cut = text.rfind(b"\n", 0, cut - 1) + 1
    return text[:cut]


def _guess_form(beginning: bytes, path: Path) -> Form:
    if not beginning.strip():
        raise InputError(f"{path} is empty; a first line with the names of its columns is expected, and rows below.")
    _refuse_lone_returns(beginning.rstrip(b"\r"), path)  # its last line may go on
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in beginning:
        raise InputError(f"{path} is no CSV in UTF-8 (it has zero bytes); save it again as CSV in UTF-8.")
    encoding = "utf-8"
    try:
        beginning[: beginning.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        encoding = "cp1252"  # what a spreadsheet on Windows writes in Europe
    first = _first_line(beginning)
    header = first.decode(encoding, errors="replace").removeprefix("\ufeff").strip("\r\n")
    separator = max(SEPARATORS, key=header.count)
    names = tuple(name.strip() for name in next(_rows(header, separator, path.name), ()))
    names = tuple(name or f"column {number}" for number, name in enumerate(names))
    if not names:
        raise InputError(f"{path} has an empty first line; the names of its columns are expected there.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path} has several columns called {twice!r}; give each its own name in the first line.")
    below = _first_line(beginning[len(first) :]).decode(encoding, errors="replace")
    if len(names) == 1 and any(mark in below for mark in SEPARATORS):
        raise InputError(
            f"{path}: the first line names 1 column ({printable(names[0][:40])}), and the second has more cells; "
            "remove what stands above the line with the names of the columns."
        )
    if all(_is_number(name) for name in names):
        raise InputError(
            f"{path}: the first line holds numbers ({', '.join(names[:4])}, ...), but the names of the columns are "
            "expected; write them above."
        )
    return Form(names, separator, _has_decimal_commas(beginning, encoding, separator), encoding, len(first))


def _refuse_lone_returns(text: bytes, path: Path) -> None:
    """Some programs begin a line there, others do not: rows would vanish or join."""
    if LONE_RETURN.search(text):
        raise InputError(
            f"{path} has carriage returns that do not stand at the end of a line; save it again with usual line ends."
        )


def _first_line(text: bytes) -> bytes:
    stop = text.find(b"\n") + 1 or len(text)
    while text.count(b'"', 0, stop) % 2 and stop < len(text):
        stop = text.find(b"\n", stop) + 1 or len(text)
    return text[:stop]


def _has_decimal_commas(text: bytes, encoding: str, separator: str) -> bool:
    if separator == ",":
        return False
    rows = _rows(text.decode(encoding, errors="replace"), separator, "")
    with suppress(InputError):  # whoever reads the rows says which
        cells = [cell for _, row in zip(range(100), rows, strict=False) for cell in row]
        return any("," in cell and _is_number(cell.replace(",", ".", 1)) for cell in cells)
    return False


def _rows(text: str, separator: str, name: str, line: int = 1) -> Iterator[list[str]]:
    """The rows of a text that begins in this line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(
            f"{name}, line {line + reader.line_num - 1}: it cannot be read ({error}); is a quotation mark not closed?"
        ) from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_ragged(block: bytes, form: Form, name: str, line: int) -> None:
    """Name the first line that has more cells than there are names."""
    rows = _rows(block.decode(form.encoding, errors="replace"), form.separator, name, line)
    for number, cells in enumerate(rows):
        if len(cells) > len(form.names):
            raise InputError(
                f"{name}, line {line + number}: it has {len(cells)} cells, but the first line names "
                f"{len(form.names)} columns; correct that line, or quote what holds {form.separator!r}."
            )


def as_they_look(texts: "polars.DataFrame") -> "polars.DataFrame":
    """Columns of text as numbers where all of them are; otherwise as they are."""
    pl = import_polars("reading CSV")
    looks = []
    for column in texts.iter_columns():
        stripped = column.str.strip_chars()
        missing = stripped.is_null() | stripped.is_in(MISSING)
        filled = pl.Series(column.name, stripped).set(missing, None) if missing.any() else stripped
        for kind in (pl.Int64, pl.Float64):
            typed = filled.cast(kind, strict=False)
            if typed.null_count() == filled.null_count() and typed.null_count() < len(typed):
                looks.append(typed)
                break
        else:
            looks.append(column)
    return pl.DataFrame(looks)
