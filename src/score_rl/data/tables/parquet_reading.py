"""Reads a Parquet file in a process that may fail (`file_trial`), and leaves its rows as files that polars maps.

Nothing here runs in the process that imports the table. What comes out is Arrow's format, written by polars itself.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import polars  # here, before the process has limits

from score_rl.data.tables.table import BLOCK_ROWS, REFUSED, SAMPLE_ROWS

Answers = Iterator[dict[str, Any]]


def _refusing(read: Callable[..., Answers]) -> Callable[..., Answers]:
    """With what polars says of a file that is no Parquet as the last answer."""

    @wraps(read)
    def answers(*asked: Any) -> Answers:
        try:
            yield from read(*asked)
        except (polars.exceptions.PolarsError, OSError) as error:
            yield {REFUSED: str(error).splitlines()[0] if str(error) else type(error).__name__}

    return answers


@_refusing
def look(path: Path, folder: str) -> Answers:
    """Its columns, how many rows it says it has, and the first ones as a file."""
    table = polars.scan_parquet(path, glob=False)
    names = list(table.collect_schema())
    rows = int(table.select(polars.len()).collect().item())
    sample = Path(folder) / "sample.arrow"
    table.head(SAMPLE_ROWS).collect().write_ipc(sample)
    yield {"names": names, "rows": rows, "sample": sample.name}


@_refusing
def read(path: Path, folder: str, columns: Sequence[str]) -> Answers:
    """All rows of these columns, a file for each block."""
    table = polars.scan_parquet(path, glob=False).select(columns)
    for number, frame in enumerate(table.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True)):
        file = Path(folder) / f"{number}.arrow"
        frame.write_ipc(file)
        yield {"file": file.name, "rows": len(frame)}
