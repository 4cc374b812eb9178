"""Where arranged rows go: into a file in our format, or into memory."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from score_rl.data.labels import Labels
from score_rl.data.sources.hdf5 import write_labels
from score_rl.disk import replacing
from score_rl.versions import version_of

Rows = Mapping[str, np.ndarray]


class Tally:
    """What is counted while rows go by."""

    def __init__(self) -> None:
        self.terminals = self.timeouts = 0
        self.rewards = (np.inf, -np.inf)
        self.action_range = (np.zeros(0, np.float32), np.zeros(0, np.float32))
        self._ends: list[np.ndarray] = []

    def count(self, rows: Rows) -> None:
        self._ends.append(rows["trajectory_ends"])
        self.terminals += int(rows["terminals"].sum())
        self.timeouts += int(rows["timeouts"].sum())
        if not len(rows["rewards"]):
            return
        columns = rows["actions"].T  # one after the other: thirty times as fast as all at once
        low, high = np.array([column.min() for column in columns]), np.array([column.max() for column in columns])
        least, most = self.action_range
        self.action_range = (np.minimum(low, least), np.maximum(high, most)) if len(least) else (low, high)
        self.rewards = (
            min(self.rewards[0], float(rows["rewards"].min())),
            max(self.rewards[1], float(rows["rewards"].max())),
        )

    def lengths(self) -> np.ndarray:
        """How many rows each trajectory has."""
        return np.diff(np.flatnonzero(np.concatenate(self._ends)), prepend=-1)


class MemorySink(Tally):
    """Keeps the rows."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Rows] = []

    def write(self, rows: Rows, total: int) -> None:
        self.count(rows)
        self._blocks.append(rows)

    def arrays(self) -> dict[str, np.ndarray]:
        return {key: np.concatenate([rows[key] for rows in self._blocks]) for key in self._blocks[0]}

    def finish(
        self, recipe: Mapping[str, Any], bounds: tuple[np.ndarray, np.ndarray], environment: str | None, labels: Labels
    ) -> None:
        """Nothing is left to do."""


class FileSink(Tally):
    """Writes a file in our format, which appears whole or not at all."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._written = path, 0
        self._replacing = replacing(path)
        self._file: Any = None
        self._lacking: list[str] | None = None  # the columns that are to be written; known from the first rows on

    def __enter__(self) -> "FileSink":
        self._temporary = self._replacing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        self._replacing.__exit__(kind, error, trace)

    def adopt(self, begun: Path) -> None:
        """Go on with a file that holds some columns already, all their rows in order."""
        begun.replace(self._temporary)
        self._file = _opened(self._temporary, "r+")

    def write(self, rows: Rows, total: int) -> None:
        """Some of `total` rows; columns that are there already stay."""
        self.count(rows)
        if self._file is None:
            self._file = _opened(self._temporary, "w")
        if self._lacking is None:
            self._lacking = [key for key in rows if key not in self._file]
            for key in self._lacking:
                create_column(self._file, key, rows[key], total)
        for key in self._lacking:
            self._file[key][self._written : self._written + len(rows[key])] = rows[key]
        self._written += len(rows["rewards"])

    def finish(
        self, recipe: Mapping[str, Any], bounds: tuple[np.ndarray, np.ndarray], environment: str | None, labels: Labels
    ) -> None:
        """What the file says of itself."""
        metadata = self._file.create_group("metadata")
        metadata["environment"] = environment or "none"
        metadata["action_low"], metadata["action_high"] = bounds
        metadata["recipe"] = json.dumps({**recipe, "versions": {"score-rl": version_of("score-rl")}}, indent=1)
        write_labels(metadata, labels)


def create_column(file: Any, key: str, like: np.ndarray, total: int) -> None:
    """Room for `total` rows such as these, in one piece that has its place in the file from now on."""
    import h5py

    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)  # all of it is written
    shape = (total, *like.shape[1:])
    h5py.h5d.create(
        file.id, key.encode(), h5py.h5t.py_create(like.dtype, logical=True), h5py.h5s.create_simple(shape), plan
    )


def _opened(path: Path, mode: str) -> Any:
    import h5py

    return h5py.File(path, mode)
