"""The rows of a table as numbers, in the order in which they came: on the disk for a file, in memory for a frame."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from score_rl.data.tables.conversion import UNKNOWN, Block


class Spooled(NamedTuple):
    """The arrays of all rows, and whether anything is missing in them."""

    arrays: Block
    incomplete: bool


class Spool:
    """Takes blocks and gives them back as whole arrays."""

    def __init__(self, folder: Path | None, *, may_miss: bool = True) -> None:
        """`may_miss` says whether blocks may have gaps at all."""
        self._folder, self._may_miss = folder, may_miss
        self._kept: list[Block] = []  # in memory; of a spool on the disk the first block without its rows
        self._files: dict[str, IO[bytes]] = {}
        self._rows = 0
        self._incomplete = False

    def add(self, block: Block) -> None:
        self._rows += len(block.rewards)
        self._incomplete = self._incomplete or (self._may_miss and has_gaps(block))
        if self._folder is None:
            self._kept.append(block)
            return
        if not self._kept:
            self._kept.append(block.rows(slice(0)))
        for key, values in block._asdict().items():
            if values is not None:
                if key not in self._files:
                    self._files[key] = (self._folder / key).open("wb")
                self._files[key].write(np.ascontiguousarray(values).data)

    def whole(self) -> Spooled:
        """All rows. On the disk they stay there: the arrays are views of the files."""
        self.close()
        arrays: dict[str, np.ndarray | None] = {}
        for key in Block._fields:
            parts = [getattr(block, key) for block in self._kept]
            if parts[0] is None:
                arrays[key] = None
            elif self._folder is None:
                arrays[key] = parts[0] if len(parts) == 1 else np.concatenate(parts)
            else:
                shape = (self._rows, *parts[0].shape[1:])
                arrays[key] = np.memmap(self._folder / key, parts[0].dtype, "r", shape=shape)
        return Spooled(Block(**arrays), self._incomplete)  # type: ignore[arg-type]

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    @property
    def rows(self) -> int:
        return self._rows


@contextmanager
def spool_beside(path: Path | None, *, may_miss: bool) -> Iterator[Spool]:
    """A spool in a folder that lies beside the file to be written and is gone afterwards; in memory without a file."""
    if path is None:
        yield Spool(None, may_miss=may_miss)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as folder:
        spool = Spool(Path(folder), may_miss=may_miss)
        try:
            yield spool
        finally:
            spool.close()


def has_gaps(block: Block) -> bool:
    """Whether anything in these rows is missing."""
    numbers = (block.observations, block.actions, block.rewards, block.next_observations)
    marks = (block.terminals, block.timeouts)
    return any(values is not None and not np.isfinite(values.sum(dtype=np.float64)) for values in numbers) or any(
        values is not None and bool((values == UNKNOWN).any()) for values in marks
    )
