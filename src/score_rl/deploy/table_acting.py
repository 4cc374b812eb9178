"""An exported policy on the rows of a table: CSV, Parquet or npz, read in blocks and found by the names of columns."""

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from score_rl.data.progress_bar import byte_progress, row_progress
from score_rl.data.tables.csv_table import CsvTable
from score_rl.data.tables.frames import open_table
from score_rl.data.tables.table import CellError, Part, Table, import_polars
from score_rl.deploy.opening import DeployedPolicy
from score_rl.disk import replacing
from score_rl.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars

ROWS_AT_ONCE = 10_000
MEASURES = ("uncertainty", "distance")  # what an answer holds beside the actions
FLAGS = ("far", "unknown")  # what a row can be marked as
FLAG = "flag"  # the column that says it
GAP = "fill the gap, such as with the value before"
PARQUET = (".parquet", ".pq")


class Acted(NamedTuple):
    """How many rows were answered, and how many of them are marked."""

    rows: int
    far: int
    unknown: int


def act_on_table(
    policy: DeployedPolicy,
    path: Path,
    out: Path,
    *,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    progress: bool = False,
) -> Acted:
    """Write a table with the action of every row. `keep` are columns to copy, `ignore` columns to leave out."""
    if out.suffix.lower() not in (".csv", *PARQUET):
        raise InputError(f"{out} is no name for a table here: end it in .csv or .parquet.")
    table = open_table(path)
    observed = [column["name"] for column in policy.about["observations"]]
    kept = _copied(table, policy, observed, keep, ignore)
    bar = byte_progress if isinstance(table, CsvTable) else row_progress
    counts = np.zeros(3, np.int64)
    with (
        replacing(out, if_full="free some space") as temporary,
        _Writer(temporary, out.suffix.lower() in PARQUET) as writer,
        bar(f"acting on {table.name}", table.size, progress) as advance,
    ):
        columns = list(dict.fromkeys([*observed, *kept]))
        for part in table.parts(columns, observed, advance):
            answer = _answers(policy, _numbers(table, part, observed))
            writer.add(_frame(part, kept, policy.about, answer))
            marks = [int(np.sum(answer[name])) if name in answer else 0 for name in FLAGS]
            counts += [len(part.frame), *marks]
    return Acted(*map(int, counts))


def _copied(
    table: Table, policy: DeployedPolicy, observed: Sequence[str], keep: Sequence[str], ignore: Sequence[str]
) -> list[str]:
    """The columns to copy. Columns that are missing, unknown or would be written twice are refused."""
    names = list(table.names)
    missing = [name for name in observed if name not in names]
    if missing:
        raise InputError(
            f"{table.name} has no column {', '.join(missing)}, which the policy observes; it has {', '.join(names)}: "
            "rename the columns as in the logs that the policy was trained on."
        )
    for name in (*keep, *ignore):
        if not fnmatch.filter(names, name):
            raise unknown_name(f"column of {table.name}", name, names)
    kept = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in keep)]
    known = [*observed, *kept, *(name for pattern in ignore for name in fnmatch.filter(names, pattern))]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            f"{table.name} has columns that the policy does not observe: {', '.join(unknown)}; name them in `keep` to "
            "copy them, or in `ignore`."
        )
    written = [*(column["name"] for column in policy.about["actions"]), *MEASURES, FLAG]
    twice = [name for name in kept if name in written]
    if twice:
        raise InputError(f"{', '.join(twice)} would be written twice, as copied and as answered: take it from `keep`.")
    return kept


def _numbers(table: Table, part: Part, observed: Sequence[str]) -> np.ndarray:
    """The observations of a part; a cell that is no finite number is refused with its line."""
    matrix = np.empty((len(part.frame), len(observed)), np.float32)
    for place, name in enumerate(observed):
        column = part.frame[name]
        if not column.dtype.is_numeric():
            broken = int(column.cast(import_polars("acting on a table").Float64, strict=False).is_null().arg_max() or 0)
            raise CellError(table, name, part.first + broken, f"holds {column[broken]!r}", "write it as a number")
        matrix[:, place] = column.cast(import_polars("acting on a table").Float64).to_numpy()
    broken_rows, places = np.nonzero(~np.isfinite(matrix))
    if len(broken_rows):
        row, name = int(broken_rows[0]), observed[int(places[0])]
        found = part.frame[name][row]
        said = "is empty" if found is None else f"is {found}"
        raise CellError(table, name, part.first + row, said, GAP)
    return matrix


def _answers(policy: DeployedPolicy, observations: np.ndarray) -> dict[str, np.ndarray]:
    """In blocks that fit into memory whatever the method computes."""
    blocks = [policy(observations[at : at + ROWS_AT_ONCE]) for at in range(0, len(observations), ROWS_AT_ONCE)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _frame(
    part: Part, kept: Sequence[str], about: Mapping[str, Any], answer: Mapping[str, np.ndarray]
) -> "polars.DataFrame":
    pl = import_polars("acting on a table")
    columns = [part.frame[name] for name in kept]
    columns += [pl.Series(c["name"], answer["actions"][:, place]) for place, c in enumerate(about["actions"])]
    columns += [pl.Series(name, answer[name]) for name in MEASURES if name in answer]
    flags = [name for name in FLAGS if name in answer]
    if flags:
        marks = np.stack([np.where(answer[name], name, "") for name in flags])
        texts = [" ".join(filter(None, column)) for column in marks.T]
        columns.append(pl.Series(FLAG, texts))
    return pl.DataFrame(columns)


class _Writer:
    """Writes frames one after the other. A Parquet file is written at the end."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self._path, self._parquet = path, parquet
        self._frames: list[polars.DataFrame] = []

    def __enter__(self) -> "_Writer":
        self._file = self._path.open("wb")
        self._empty = True
        return self

    def add(self, frame: "polars.DataFrame") -> None:
        if self._parquet:
            self._frames.append(frame)
            return
        frame.write_csv(self._file, include_header=self._empty)
        self._empty = False

    def __exit__(self, kind: object, *error: object) -> None:
        if self._parquet and kind is None and self._frames:
            import_polars("acting on a table").concat(self._frames).write_parquet(self._file)
        self._file.close()
