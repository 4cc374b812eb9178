"""What the calls of the compiled program measured since the last row of metrics."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from score_rl.store.checkpoints import DamagedError

STORED_UPDATES = "updates of each piece"  # what version 0.1.0 called the updates of each call in a checkpoint


@dataclasses.dataclass(frozen=True)
class CallMetrics:
    """Means over the updates of one call, one number for each run."""

    updates: int
    means: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class WindowMetrics:
    """The calls of a window so far."""

    calls: tuple[CallMetrics, ...] = ()

    def after(self, updates: int, means: Mapping[str, Any]) -> "WindowMetrics":
        """With one call more."""
        return WindowMetrics((*self.calls, CallMetrics(updates, means)))

    @property
    def is_ready(self) -> bool:
        """Whether the device is done with the last call."""
        return not self.calls or all(leaf.is_ready() for leaf in jax.tree.leaves(self.calls[-1].means))

    def means(self) -> dict[str, np.ndarray]:
        """Over all updates, one for each run. In float64: into which calls a window was cut then hardly matters."""
        if not self.calls:
            return {}
        updates = [call.updates for call in self.calls]
        measured = [jax.device_get(call.means) for call in self.calls]
        return {
            name: np.average([np.asarray(means[name], np.float64) for means in measured], axis=0, weights=updates)
            for name in measured[0]
        }

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a checkpoint: one row for each call."""
        if not self.calls:
            return {}
        measured = [jax.device_get(call.means) for call in self.calls]
        columns = {name: np.stack([means[name] for means in measured]) for name in measured[0]}
        return columns | {STORED_UPDATES: np.array([call.updates for call in self.calls], np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "WindowMetrics":
        updates = arrays.get(STORED_UPDATES, np.array([], np.int64))
        if updates.ndim != 1 or updates.dtype != np.int64 or (updates < 1).any():
            raise DamagedError("the updates of its window are no counts")
        columns = {name: column for name, column in arrays.items() if name != STORED_UPDATES}
        for name, column in columns.items():
            if column.ndim != 2 or len(column) != len(updates) or column.dtype.kind != "f":
                raise DamagedError(f"{name} of its window is {column.dtype}{column.shape}")
        return cls(
            tuple(
                CallMetrics(int(number), {name: column[row] for name, column in columns.items()})
                for row, number in enumerate(updates)
            )
        )
