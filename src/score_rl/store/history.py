"""The history of measurements that a checkpoint carries, so that a damaged `metrics.csv` can be made whole.

A checkpoint holds a copy of the table as it was then. On resuming, what the copy has and the table lacks, or has with
another value, goes back into the table.
"""

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from score_rl.errors import InputError
from score_rl.store.checkpoints import DamagedError
from score_rl.store.metrics import FILE, MetricsTable, Row, parse_rows, read_metrics, write_rows

MOST = 1 << 30  # bytes of a table, unpacked


class Rewound(NamedTuple):
    """A table without what is measured again."""

    table: MetricsTable
    restored: int  # rows that were lost and came from the checkpoint


def pack_history(folder: Path) -> np.ndarray:
    """The table of a folder as bytes for a checkpoint."""
    path = folder / FILE
    content = path.read_bytes() if path.is_file() else b""
    return np.frombuffer(zlib.compress(content, 1), np.uint8)


def unpack_history(packed: np.ndarray) -> list[Row]:
    """The rows of a copy; `DamagedError` if it is none."""
    try:
        content = zlib.decompressobj().decompress(packed.tobytes(), MOST).decode()
        return list(parse_rows(content[: content.rfind("\n") + 1]))
    except (zlib.error, ValueError) as error:
        raise DamagedError(f"its copy of {FILE} cannot be read ({error})") from error


def rewind_metrics(
    folder: Path,
    runs: Iterable[str],
    step: int,
    counted: Callable[[str], bool] = lambda name: True,
    history: Iterable[Row] = (),
) -> Rewound:
    """Remove what these runs measured after `step`, since they will measure it again, and restore what was lost.

    Only metrics for which `counted` is true are removed: the stages before training count epochs, not updates.
    """
    held = {(row.run, row.step, row.name): row for row in history}
    try:
        found = list(read_metrics(folder))
    except InputError:
        if not held:
            raise
        found = []
    there = {(row.run, row.step, row.name): repr(row.value) for row in found}
    lost = [row for key, row in held.items() if there.get(key) != repr(row.value)]
    if lost:
        found = [*held.values(), *(row for row in found if (row.run, row.step, row.name) not in held)]
    chosen = set(runs)
    rows = [row for row in found if row.run not in chosen or row.step <= step or not counted(row.name)]
    write_rows(folder, rows)
    return Rewound(MetricsTable(rows), len(lost))
