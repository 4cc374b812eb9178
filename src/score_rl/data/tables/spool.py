"""The rows of a table as numbers, in the order in which they came: on the disk for a file, in memory for a frame."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from score_rl.data.tables.conversion import UNKNOWN, Block
from score_rl.data.tables.writing import create_column

NUMBERS = ("observations", "actions", "rewards", "next_observations")  # named alike in blocks and in our format
BEGUN = "rows.hdf5"


class Spooled(NamedTuple):
    """The arrays of all rows, and whether anything is missing in them."""

    arrays: Block
    incomplete: bool
    begun: Path | None  # a file in our format that holds the numbers of these rows, as they stand


class Spool:
    """Takes blocks and gives them back as whole arrays.

    On the disk, the numbers of a table whose length is known go where the file to be written would have them: where
    the rows turn out to be sorted and whole, they are there already.
    """

    def __init__(self, folder: Path | None, *, may_miss: bool = True, total: int | None = None) -> None:
        """`may_miss` says whether blocks may have gaps at all, `total` how many rows are to come, where it is known."""
        self._folder, self._may_miss, self._total = folder, may_miss, total
        self._kept: list[Block] = []  # in memory; of a spool on the disk the first block without its rows
        self._files: dict[str, IO[bytes]] = {}
        self._begun: Any = None
        self._rows = 0
        self._incomplete = False

    def add(self, block: Block) -> None:
        first, self._rows = self._rows, self._rows + len(block.rewards)
        self._incomplete = self._incomplete or (self._may_miss and has_gaps(block))
        if self._folder is None:
            self._kept.append(block)
            return
        if not self._kept:
            self._begin(self._folder, block)
        for key, values in block._asdict().items():
            if key in self._files:
                self._files[key].write(np.ascontiguousarray(values).data)
            elif values is not None:
                self._begun[key][first : self._rows] = values

    def whole(self) -> Spooled:
        """All rows. On the disk they stay there: the arrays are views of the files."""
        places = {} if self._begun is None else {key: self._begun[key].id.get_offset() for key in self._begun}
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
                path = self._folder / (BEGUN if key in places else key)
                arrays[key] = np.memmap(path, parts[0].dtype, "r", places.get(key, 0), shape)
        begun = None if self._begun is None or self._folder is None else self._folder / BEGUN
        return Spooled(Block(**arrays), self._incomplete, begun)  # type: ignore[arg-type]

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if self._begun is not None:
            self._begun.close()

    @property
    def rows(self) -> int:
        return self._rows

    def _begin(self, folder: Path, first: Block) -> None:
        """Open the files for columns like these."""
        import h5py

        self._kept.append(first.rows(slice(0)))
        given = {key: values for key, values in first._asdict().items() if values is not None}
        numbers = NUMBERS if self._total is not None else ()
        self._files = {key: (folder / key).open("wb") for key in given if key not in numbers}
        if self._total is not None:
            self._begun = h5py.File(folder / BEGUN, "w")
            for key in (key for key in given if key in numbers):
                create_column(self._begun, key, given[key], self._total)


@contextmanager
def spool_beside(path: Path | None, *, may_miss: bool, total: int | None = None) -> Iterator[Spool]:
    """A spool in a folder that lies beside the file to be written and is gone afterwards; in memory without a file."""
    if path is None:
        yield Spool(None, may_miss=may_miss)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as folder:
        spool = Spool(Path(folder), may_miss=may_miss, total=total)
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
