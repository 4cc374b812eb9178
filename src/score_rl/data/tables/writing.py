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
        low, high = rows["actions"].min(axis=0), rows["actions"].max(axis=0)
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

    def __enter__(self) -> "FileSink":
        import h5py

        self._file = h5py.File(self._replacing.__enter__(), "w")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._replacing.__exit__(kind, error, trace)

    def write(self, rows: Rows, total: int) -> None:
        """Some of `total` rows."""
        self.count(rows)
        for key, values in rows.items():
            if key not in self._file:
                self._file.create_dataset(key, (total, *values.shape[1:]), values.dtype)
            self._file[key][self._written : self._written + len(values)] = values
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
