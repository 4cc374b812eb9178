"""Where a stage before training stands, and its checkpoints.

fleet-N/stage-NAME/step-EPOCH.safetensors    until training has begun
    stage.*   the state of the stage, all runs stacked
    given.*   results that came from the cache
    active    which runs are trained: those without a result from the cache
    cut.*     within an epoch: how it began, with the sums of its metrics
    done      within an epoch: its updates that are done

What a run takes from the cache is settled when its stage begins and stored with it. A resumed stage gives the same
results whatever happens to the cache in between.
"""

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from score_rl.engine.stage_program import EpochProgress, StageProgram
from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.run.stage_cache import find_result, stage_cache
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

UPDATES_DONE = "done"  # in a checkpoint within an epoch


@dataclasses.dataclass(frozen=True)
class OpenEpoch:
    """An epoch of which some updates are done."""

    done: int  # updates
    begun: EpochProgress

    @cached_property
    def updates(self) -> int:
        """Of the run that has most in this epoch."""
        return int(jax.device_get(self.begun.updates).max())

    @property
    def share(self) -> float:
        return self.done / self.updates

    def __str__(self) -> str:
        return f"{self.done:,} of {self.updates:,}"


@dataclasses.dataclass
class StagePosition:
    """Where a stage stands. It changes while the stage is trained."""

    epoch: int  # epochs done
    open_epoch: OpenEpoch | None  # the next one, if some of its updates are done
    state: Any  # on the devices
    given: Any  # results from the cache, on the host
    active: np.ndarray  # the runs that are trained

    @property
    def epochs(self) -> float:
        """Done, with the part of the next one."""
        return self.epoch + self.open_epoch.share if self.open_epoch else self.epoch

    def save(self, folder: Path, about: dict[str, Any]) -> None:
        arrays = to_arrays({"stage": self.state, "given": self.given, "active": self.active})
        if self.open_epoch:
            arrays |= {CUT + name: array for name, array in to_arrays(self.open_epoch.begun).items()}
            arrays[UPDATES_DONE] = np.array(self.open_epoch.done, np.int64)
        save_checkpoint(folder, self.epoch, arrays, about)


def load_newest_position(folder: Path, program: StageProgram, announcer: Announcer) -> StagePosition | None:
    """From the newest checkpoint that is whole; None where there is none."""
    for path in checkpoints(folder):
        try:
            return _load_position(path, program)
        except DamagedError as error:
            announcer.say(messages.damaged_checkpoint(path, error))
            remove_checkpoint(path)
    return None


def _load_position(path: Path, program: StageProgram) -> StagePosition:
    epoch, arrays, _ = load_checkpoint(path)
    state = from_arrays(prefixed(arrays, "stage."), program.state_shapes())
    given = from_arrays(prefixed(arrays, "given."), program.result_shapes())
    open_epoch = None
    if UPDATES_DONE in arrays:
        begun = from_arrays(prefixed(arrays, CUT), program.progress_shapes())
        open_epoch = OpenEpoch(int(arrays[UPDATES_DONE]), program.program.put(begun))
    if "active" not in arrays:
        raise DamagedError("active is missing")
    return StagePosition(epoch, open_epoch, program.program.put(state), given, arrays["active"])


def first_position(program: StageProgram, announcer: Announcer) -> StagePosition:
    """The beginning, with the results that the cache has."""
    fleet, stage, shapes = program.program, program.stage, program.result_shapes()
    given = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    active = np.ones(fleet.devices.width, bool)
    found = {run.id: find_result(run, stage, shapes, announcer) for run in fleet.runs}
    for row, run in enumerate(fleet.devices.filled(fleet.runs)):
        result = found[run.id]
        if result is not None:
            active[row] = False
            given = jax.tree.map(lambda whole, mine, row=row: _with_row(whole, row, mine), given, result)
    reused = sum(result is not None for result in found.values())
    if reused:
        announcer.say(messages.stage_reused(stage.name, reused, len(fleet.runs), stage_cache()))
    return StagePosition(0, None, program.init(), given, active)


def _with_row(whole: np.ndarray, row: int, values: np.ndarray) -> np.ndarray:
    whole[row] = values
    return whole
