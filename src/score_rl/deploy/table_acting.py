"""An exported policy on the rows of a table: CSV, Parquet or npz, read in blocks and found by the names of columns."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from score_rl.data.progress_bar import byte_progress, row_progress
from score_rl.data.tables.conversion import cells_as_numbers
from score_rl.data.tables.csv_table import CsvTable
from score_rl.data.tables.frames import open_table
from score_rl.data.tables.roles import columns_called
from score_rl.data.tables.table import CellError, Part, Table, import_polars
from score_rl.deploy.opening import DeployedPolicy
from score_rl.disk import replacing
from score_rl.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars

ROWS_AT_ONCE = 10_000
MEASURES = ("uncertainty", "distance")  # what an answer holds beside the actions
MISSES = "missing"
FLAGS = ("far", "unknown", MISSES)  # what a row can be marked as
FLAG = "flag"  # the column that says it
GAP = "fill the gap, such as with the value before, or pass `missing=mark` (no action, and a flag)"
Missing = Literal["error", "mark"]
PARQUET = (".parquet", ".pq")


class Acted(NamedTuple):
    """How many rows were answered, and how many of them are marked."""

    rows: int
    far: int
    unknown: int
    missing: int


def act_on_table(
    policy: DeployedPolicy,
    path: Path,
    out: Path,
    *,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    missing: Missing = "error",
    progress: bool = False,
) -> Acted:
    """Write a table with the action of every row. `keep` are columns to copy, `ignore` columns to leave out.

    A row with an empty cell is refused, or answered by a flag alone (`missing="mark"`).
    """
    if out.suffix.lower() not in (".csv", *PARQUET):
        raise InputError(f"{out} is no name for a table here: end it in .csv or .parquet.")
    table = open_table(path)
    observed = [column["name"] for column in policy.about["observations"]]
    kept = _copied(table, policy, observed, keep, ignore)
    bar = byte_progress if isinstance(table, CsvTable) else row_progress
    counts = np.zeros(1 + len(FLAGS), np.int64)
    with (
        replacing(out, if_full="free some space") as temporary,
        _Writer(temporary, out.suffix.lower() in PARQUET) as writer,
        bar(f"acting on {table.name}", table.size, progress) as advance,
    ):
        columns = list(dict.fromkeys([*observed, *kept]))
        for part in table.parts(columns, observed, advance):
            answer = _answers(policy, _numbers(table, part, observed, missing), missing)
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
    for text in (*keep, *ignore):
        if not columns_called(text, names):
            raise unknown_name(f"column of {table.name}", text, names)
    copied, ignored = ({name for text in texts for name in columns_called(text, names)} for texts in (keep, ignore))
    kept = [name for name in names if name in copied]
    known = {*observed, *kept, *ignored}
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


def _numbers(table: Table, part: Part, observed: Sequence[str], missing: Missing) -> np.ndarray:
    """The observations of a part, NaN where a cell is empty. One that may not be so is refused with its line."""
    matrix = np.empty((len(part.frame), len(observed)), np.float32)
    for place, name in enumerate(observed):
        with np.errstate(over="ignore"):  # what is too large for 32 bits is refused as infinite
            matrix[:, place] = cells_as_numbers(table, part, name)
    broken_rows, places = np.nonzero(np.isinf(matrix) if missing == "mark" else ~np.isfinite(matrix))
    if len(broken_rows):
        row, name = int(broken_rows[0]), observed[int(places[0])]
        if np.isnan(matrix[row, int(places[0])]):
            raise CellError(table, name, part.first + row, "is empty", GAP)
        raise CellError(table, name, part.first + row, f"is {part.frame[name][row]}, which is too large", "correct it")
    return matrix


def _answers(policy: DeployedPolicy, observations: np.ndarray, missing: Missing) -> dict[str, np.ndarray]:
    """In blocks that fit into memory whatever the method computes. Rows that miss something have no numbers."""
    complete = np.isfinite(observations).all(axis=1)
    asked = observations[complete] if complete.any() else np.zeros_like(observations[:1])
    blocks = [policy(asked[at : at + ROWS_AT_ONCE]) for at in range(0, len(asked), ROWS_AT_ONCE)]
    found = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    if missing == "error":
        return found
    answer = {MISSES: ~complete}
    for name, values in found.items():
        nothing = False if values.dtype == bool else np.nan
        answer[name] = np.full((len(complete), *values.shape[1:]), nothing, values.dtype)
        answer[name][complete] = values[: complete.sum()]
    return answer


def _frame(
    part: Part, kept: Sequence[str], about: Mapping[str, Any], answer: Mapping[str, np.ndarray]
) -> "polars.DataFrame":
    pl = import_polars("acting on a table")
    columns = [part.frame[name] for name in kept]
    numbers = [pl.Series(c["name"], answer["actions"][:, place]) for place, c in enumerate(about["actions"])]
    numbers += [pl.Series(name, answer[name]) for name in MEASURES if name in answer]
    columns += [column.fill_nan(None) for column in numbers] if MISSES in answer else numbers
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
