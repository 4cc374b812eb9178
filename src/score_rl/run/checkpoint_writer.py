"""The checkpoints of a fleet: its state after some updates, and what the window that is not complete has measured.

state.*       the state of all runs, stacked
treatment.*   how their data were treated
history       a copy of `metrics.csv` (`store/history.py`)
cut.*         where a window is not complete: the metrics of its calls (`windows.py`), none elsewhere
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from score_rl.engine.program import FleetProgram
from score_rl.errors import InputError
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.run.windows import WindowMetrics
from score_rl.store.checkpoints import (
    CUT,
    DamagedError,
    checkpoints,
    from_arrays,
    load_checkpoint,
    prefixed,
    remove_checkpoint,
    save_checkpoint,
    to_arrays,
)
from score_rl.store.history import pack_history, unpack_history
from score_rl.store.metrics import Row
from score_rl.store.presence import Presence

HISTORY = "history"


class FleetCheckpoint(NamedTuple):
    """Where a fleet's training stands, on its devices."""

    step: int
    state: Any
    window: WindowMetrics
    history: Sequence[Row] = ()  # what was measured until then; empty in checkpoints of earlier versions


def load_newest(folder: Path, program: FleetProgram, announcer: Announcer) -> FleetCheckpoint | None:
    """The newest checkpoint that is whole; damaged ones before it are removed. None where there is no whole one."""
    damaged = False
    for path in checkpoints(folder):
        if path.is_dir():
            raise InputError(f"{path} is a folder where a checkpoint belongs, and none can be written there: move it.")
        try:
            step, arrays, _ = load_checkpoint(path)
            state = program.put(from_arrays(prefixed(arrays, "state."), program.state_shapes()))
            history = unpack_history(arrays[HISTORY]) if HISTORY in arrays else []
            window = WindowMetrics.from_arrays(prefixed(arrays, CUT))
        except DamagedError as error:
            announcer.say(messages.damaged_checkpoint(path, error))
            remove_checkpoint(path)
            damaged = True
            continue
        return FleetCheckpoint(step, state, window, history)
    if damaged:
        announcer.say(messages.no_whole_checkpoint())
    return None


class CheckpointWriter:
    """Takes a copy of the state at once and writes it while training goes on. Use it as a context."""

    def __init__(self, folder: Path, program: FleetProgram, presence: Presence) -> None:
        self._folder, self._program, self._presence = folder, program, presence
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._writing: Future[Path] | None = None

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.shutdown()

    def save(self, checkpoint: FleetCheckpoint) -> None:
        """Waits for the one before, takes the copy, and returns while that is written."""
        self.wait()
        about = {"runs": [run.id for run in self._program.runs], "algorithm": self._program.algorithm.name}
        arrays = self._arrays(checkpoint)
        self._writing = self._worker.submit(self._write, checkpoint.step, arrays, about)

    def _write(self, step: int, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Path:
        def written() -> Path:
            history = {HISTORY: pack_history(self._folder.parent)}
            return save_checkpoint(self._folder, step, arrays | history, about)

        return self._presence.write(written)

    def _arrays(self, checkpoint: FleetCheckpoint) -> dict[str, np.ndarray]:
        arrays = to_arrays({"state": checkpoint.state, "treatment": self._program.inputs.treatment})
        return arrays | {CUT + name: column for name, column in checkpoint.window.to_arrays().items()}

    @property
    def is_writing(self) -> bool:
        if self._writing is not None and self._writing.done():
            self.wait()
        return self._writing is not None

    def wait(self) -> None:
        """Until the last checkpoint is on the disk; what went wrong there is raised here."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()
