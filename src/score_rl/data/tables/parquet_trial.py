"""Reads all of a Parquet file, to see whether that ends: by a process that may fail (`file_trial`)."""

from contextlib import suppress
from pathlib import Path

import polars  # here, before the process has limits

from score_rl.data.tables.table import BLOCK_ROWS


def read_wholly(path: Path) -> None:
    """What polars itself refuses is left to whoever asked."""
    with suppress(polars.exceptions.PolarsError, OSError):
        for _ in polars.scan_parquet(path, glob=False).collect_batches(chunk_size=BLOCK_ROWS):
            pass
