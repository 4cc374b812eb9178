"""Tables that are in memory, and Parquet files: frames of polars and pandas, and dictionaries of arrays."""

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from score_rl.data.sources.file_trial import answers_about
from score_rl.data.sources.npz_file import read_npz
from score_rl.data.sources.reader import file_facts
from score_rl.data.tables.csv_table import CsvTable
from score_rl.data.tables.table import BLOCK_ROWS, REFUSED, SAMPLE_ROWS, Advance, Part, Table, import_polars
from score_rl.errors import InputError, printable

if TYPE_CHECKING:
    import polars

PARQUET_READING = "score_rl.data.tables.parquet_reading"  # imported by the process that reads, and not here
UNITS_OF_TIME = ("ms", "us", "ns")  # of NumPy's dates, as polars has them
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".pq", ".npz")


class FrameTable:
    """A frame in memory."""

    whole = True

    def __init__(self, frame: "polars.DataFrame", name: str, origin: Mapping[str, Any], *, named: bool = True) -> None:
        self.name, self.named = name, named
        self.names: Sequence[str] = frame.columns
        self.size = self.rows = len(frame)
        self._frame, self._origin = frame, origin

    @property
    def sample(self) -> "polars.DataFrame":
        return self._frame.head(SAMPLE_ROWS)

    def parts(self, columns: Sequence[str], numbers: Collection[str], advance: Advance) -> Iterator[Part]:
        chosen = self._frame.select(columns)
        for first in range(0, len(chosen), BLOCK_ROWS):
            part = chosen.slice(first, BLOCK_ROWS)
            yield Part(part, first)
            advance(len(part))

    def location(self, row: int) -> str:
        return f"row {row}"

    def origin(self) -> Mapping[str, Any]:
        return self._origin


class ParquetTable:
    """A Parquet file. It is read by a process that may fail: a damaged file can crash the library."""

    named = whole = True

    def __init__(self, path: Path) -> None:
        pl = import_polars("reading Parquet")
        self.path, self.name = path, path.name
        with tempfile.TemporaryDirectory(prefix="score-rl-") as folder:
            (found,) = self._answers("look", folder)
            self.sample = pl.read_ipc(Path(folder) / found["sample"])
        self.names: Sequence[str] = found["names"]
        self.size = self.rows = int(found["rows"])

    def parts(self, columns: Sequence[str], numbers: Collection[str], advance: Advance) -> Iterator[Part]:
        pl, first = import_polars("reading Parquet"), 0
        with tempfile.TemporaryDirectory(prefix="score-rl-", ignore_cleanup_errors=True) as folder:
            for found in self._answers("read", folder, list(columns)):
                block = Path(folder) / found["file"]
                frame = pl.read_ipc(block)
                with suppress(OSError):  # Windows keeps what is mapped until the folder goes
                    block.unlink()
                yield Part(frame, first)
                first += len(frame)
                advance(len(frame))

    def _answers(self, reader: str, folder: str, *request: Any) -> Iterator[Any]:
        source = f"{PARQUET_READING}:{reader}"
        for answer in answers_about(self.path, "Parquet", source, folder, *request):
            if REFUSED in answer:
                raise InputError(
                    f"{self.path} cannot be read as Parquet ({printable(answer[REFUSED])}); write it again."
                )
            yield answer

    def location(self, row: int) -> str:
        return f"row {row}"

    def origin(self) -> Mapping[str, Any]:
        return file_facts(self.path)


def open_table(path: Path) -> Table:
    """The table in a file, by how its name ends."""
    table = _opened(path)
    hostile = next((name for name in table.names if not name.isprintable()), None)
    if hostile is not None:
        raise InputError(f"{path} has a column called {hostile[:60]!r}, which cannot be shown; give it another name.")
    return table


def _opened(path: Path) -> Table:
    if not path.exists():
        raise InputError(f"{path} does not exist; give the path of a CSV, Parquet or npz file.")
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is no ordinary file; give the path of a CSV, Parquet or npz file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of a CSV, Parquet or npz file.")
    match path.suffix.lower():
        case ".parquet" | ".pq":
            return ParquetTable(path)
        case ".npz":
            return table_of_arrays(read_npz(path), path.name, file_facts(path))
        case ".hdf5" | ".h5" | ".hdf":
            raise InputError(
                f"{path} is HDF5, which needs no import: look at it with score data check, and train on it."
            )
        case ".xlsx" | ".xls" | ".ods":
            raise InputError(f"{path} is a spreadsheet; save its sheet as CSV, and import that.")
        case ".feather" | ".arrow" | ".json" | ".jsonl" | ".mat" | ".npy":
            raise InputError(f"{path} cannot be imported; write it as CSV, Parquet or npz.")
        case ".pkl" | ".pickle" | ".p":
            raise InputError(
                f"{path} is a pickle, which may run any program when it is opened, so it is not; write it as Parquet "
                "or npz."
            )
    return CsvTable(path)


def table_of_frame(frame: Any, name: str) -> Table:
    """A frame of polars or pandas."""
    pl = import_polars("a frame")
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        if type(frame).__module__.partition(".")[0] != "pandas":
            raise InputError(f"a {type(frame).__name__} is no frame; give one of pandas or polars.")
        frame = _of_pandas(frame, name)
    return FrameTable(frame, name, {})


def _of_pandas(frame: Any, name: str) -> "polars.DataFrame":
    """Column by column, which needs no pyarrow. The index is a column if it has a name."""
    pl = import_polars("a frame")
    if any(label is not None for label in frame.index.names):
        frame = frame.reset_index()
    columns = []
    for number, label in enumerate(frame.columns):
        values = frame.iloc[:, number]
        if values.dtype.kind in "biufmM" and hasattr(values.dtype, "itemsize"):
            columns.append(pl.Series(str(label), values.to_numpy()))
            continue
        plain = [None if missing else value for value, missing in zip(values.tolist(), values.isna(), strict=True)]
        try:
            columns.append(pl.Series(str(label), plain))
        except (TypeError, pl.exceptions.PolarsError):
            columns.append(pl.Series(str(label), [None if value is None else str(value) for value in plain]))
    names = [column.name for column in columns]
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has several columns called {twice!r}; give each its own name.")
    return pl.DataFrame(columns)


def table_of_arrays(arrays: Mapping[str, Any], name: str, origin: Mapping[str, Any]) -> Table:
    """Arrays by name: one that is a matrix is several columns, such as observations_0 and observations_1."""
    pl = import_polars("a dictionary of arrays")
    columns, rows = [], {}
    for key, given in arrays.items():
        values = np.asarray(given)
        if values.ndim not in (1, 2) or values.dtype.kind not in "biufmMUS":
            raise InputError(
                f"{name}: {key} is an array of {values.dtype} with shape {values.shape}; a vector or matrix of "
                "numbers with one row for each step is expected."
            )
        if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] not in UNITS_OF_TIME:
            raise InputError(f"{name}: {key} is an array of {values.dtype}; write its times as datetime64[ms].")
        rows[key] = len(values)
        if values.ndim == 1:
            columns.append(pl.Series(key, values))
        else:
            columns += [pl.Series(f"{key}_{number}", column) for number, column in enumerate(values.T)]
    if len(set(rows.values())) > 1:
        found = ", ".join(f"{key} {count}" for key, count in rows.items())
        raise InputError(f"{name}: the arrays differ in rows ({found}), but every step needs one row in each.")
    return FrameTable(
        pl.DataFrame(columns), name, origin, named=all(np.ndim(values) == 1 for values in arrays.values())
    )
