"""The stages before a fleet's training: run epoch by epoch, stored, resumed, and kept for the next experiment.

fleet-N/stage-NAME/step-*.safetensors   where a stage stands, until training has begun
CACHE/stages/KEY.safetensors            what a stage came to, for one run

A result is filed under everything that decides it: the algorithm, the stage and its settings, the data's checksum and
the seed. What a run takes from the cache is settled when its stage begins and stored with it, so that resuming
gives the same run whatever happens to the cache in between.
"""

import dataclasses
import hashlib
import json
import shutil
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console

from score_rl.algorithms.algorithm import Metrics, Stage
from score_rl.disk import ANOTHER_CACHE, cache_folder
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.stage_program import EpochProgress, StageProgram
from score_rl.errors import InputError, Stopped, as_read
from score_rl.run.progress import TrainingProgress
from score_rl.store.checkpoints import (
    CUT,
    DamagedError,
    checkpoints,
    from_arrays,
    load_checkpoint,
    prefixed,
    save_checkpoint,
    to_arrays,
    write_arrays,
)
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row
from score_rl.store.records import RunStatus, StatusRecord
from score_rl.store.request import ExperimentSpec

if TYPE_CHECKING:
    from score_rl.run.training import StopRequest

FORMAT = 1  # to be raised whenever a stage would come to something else from the same settings
DONE = "done"  # how many updates, in a checkpoint that cuts an epoch


@dataclasses.dataclass(frozen=True)
class Cut:
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

    @property
    def place(self) -> str:
        return f"{self.done:,} of {self.updates:,}"


def cache_key(run: Run, stage: Stage) -> str:
    """What decides the result of a stage, as a file name."""
    settings = {name: getattr(run.config, name) for name in sorted(stage.settings)}
    about = [FORMAT, run.algorithm.name, stage.name, settings, run.dataset.checksum, run.seed]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]


def cache_path(run: Run, stage: Stage) -> Path:
    return cache_folder() / "stages" / f"{run.algorithm.name}-{stage.name}-{cache_key(run, stage)}.safetensors"


class FleetStages:
    """Takes a fleet through the stages of its algorithm."""

    def __init__(
        self,
        program: FleetProgram,
        number: int,
        spec: ExperimentSpec,
        folder: Folder,
        writer: MetricsWriter,
        status: StatusRecord,
        console: Console,
        stop: "StopRequest",
        *,
        quiet: bool = False,
    ) -> None:
        self.program, self.number, self.spec, self.quiet = program, number, spec, quiet
        self.folder, self.writer, self.status = folder, writer, status
        self.console, self.stop = console, stop

    def measures(self, name: str) -> bool:
        """Whether a metric is a stage's, counted in its epochs."""
        return name.partition("/")[0] in {stage.name for stage in self.program.algorithm.stages}

    def place(self, stage: Stage) -> Path:
        return self.folder.fleet(self.number) / f"stage-{stage.name}"

    def clear(self) -> None:
        """Once training has a checkpoint of its own."""
        for stage in self.program.algorithm.stages:
            shutil.rmtree(self.place(stage), ignore_errors=True)

    def run(self, state: Any) -> Any:
        """The state that training starts from."""
        for number in range(len(self.program.algorithm.stages)):
            stage = StageProgram(self.program, number)
            state = stage.absorb(state, self._train(stage))
        return state

    # -- one stage -----------------------------------------------------------------------------------------------

    def _train(self, program: StageProgram) -> Any:
        """What the stage came to, for every run."""
        stage, runs = program.stage, self.program.runs
        epoch, cut, state, given, active = self._start(program)
        ids = [run.id for run in runs]
        self.folder.rewind_metrics(ids, epoch, lambda name: name.startswith(f"{stage.name}/"))
        self.writer.reopen()
        most = stage.epochs(runs[0].config)
        if active.any():
            title = f"{stage.name} of {runs[0].id if len(runs) == 1 else f'fleet {self.number}'}"
            begun = epoch + cut.share if cut else epoch
            with TrainingProgress(
                self.console, title, most, begun, len(runs), quiet=self.quiet, unit="epochs"
            ) as progress:
                state = self._epochs(program, progress, epoch, cut, state, given, active)
        result = jax.tree.map(
            lambda new, old: np.where(active.reshape(-1, *(1,) * (new.ndim - 1)), new, old),
            jax.device_get(program.result(state)),
            given,
        )
        for place, run in enumerate(runs):
            if active[place] and self.status.of(run.id).state != "diverged":
                self._keep(run, stage, jax.tree.map(lambda leaf, place=place: leaf[place], result))
        return self.program.put(result)

    def _epochs(
        self,
        program: StageProgram,
        progress: TrainingProgress,
        epoch: int,
        cut: Cut | None,
        state: Any,
        given: Any,
        active: np.ndarray,
    ) -> Any:
        stage, most, saved_at = program.stage, program.stage.epochs(self.program.runs[0].config), time.monotonic()
        while epoch < most:
            if cut is None and program.updates_per_call is None:
                state, metrics = program.epoch(state, active, epoch)
            else:
                state, cut, metrics = self._part(program, epoch, cut, state, active)
            _wait_for(metrics)
            last = False
            if cut is None:
                epoch += 1
                measured = jax.device_get(metrics)
                working, done = measured.pop("working"), measured.pop("done")
                self._write(stage, epoch, measured, working, progress)
                last = bool(done.all()) or epoch == most
            progress.say({"update": cut.place if cut else ""})
            progress.advance(epoch + cut.share if cut else epoch)
            waited = (time.monotonic() - saved_at) / 60
            if last or self.stop.asked or waited >= self.spec.checkpoint_minutes:
                self._save(stage, epoch, cut, state, given, active)
                saved_at = time.monotonic()
            if last:
                break
            if self.stop.asked:
                where = f"at update {cut.place} in epoch {epoch + 1}" if cut else f"after epoch {epoch}"
                raise Stopped(
                    f"stopped {where} of the stage {stage.name!r} with a checkpoint; go on with "
                    f"`resume={self.folder.path}`"
                )
        return state

    def _part(
        self, program: StageProgram, epoch: int, cut: Cut | None, state: Any, active: np.ndarray
    ) -> tuple[Any, Cut | None, Metrics]:
        """The next piece of an epoch; after the last one, what the whole came to."""
        cut = cut or Cut(0, program.begin(state, active))
        until = min(cut.done + (program.updates_per_call or cut.updates), cut.updates)
        state, begun = program.part(state, cut.begun, epoch, cut.done, until)
        _wait_for(begun.sums)
        if until < cut.updates:
            return state, Cut(until, begun), {}
        state, metrics = program.end(state, begun, active)
        return state, None, metrics

    def _write(
        self, stage: Stage, epoch: int, metrics: dict[str, Any], working: np.ndarray, progress: TrainingProgress
    ) -> None:
        rows = []
        for place, run in enumerate(self.program.runs):
            if not working[place]:
                continue
            values = {name: float(column[place]) for name, column in metrics.items()}
            bad = [name for name, value in values.items() if not np.isfinite(value)]
            if bad and self.status.of(run.id).state != "diverged":
                self.status.runs[run.id] = RunStatus("diverged", diverged_at=0)
                progress.note(f"{run.id} diverged in its stage {stage.name!r} ({bad[0]} is not finite); others go on.")
            if bad:
                continue
            rows += [Row(run.id, epoch, f"{stage.name}/{name}", value) for name, value in values.items()]
        self.writer.write(rows)
        for name in metrics:
            shown = [row.value for row in rows if row.name == f"{stage.name}/{name}"]
            if shown:
                progress.say({name: f"{np.mean(shown):.3g}"})

    # -- where it stands -----------------------------------------------------------------------------------------

    def _start(self, program: StageProgram) -> tuple[int, Cut | None, Any, Any, np.ndarray]:
        """Epochs done, a part of the next, state, what the cache gave, who is trained: from a checkpoint, or anew."""
        stage, shapes = program.stage, (program.state_shapes(), program.result_shapes())
        for path in checkpoints(self.place(stage)):
            try:
                epoch, arrays, _ = load_checkpoint(path)
                state, given = (
                    from_arrays(prefixed(arrays, prefix), shape)
                    for prefix, shape in zip(("stage.", "given."), shapes, strict=True)
                )
                cut = None
                if DONE in arrays:
                    begun = from_arrays(prefixed(arrays, CUT), program.progress_shapes())
                    cut = Cut(int(arrays[DONE]), self.program.put(begun))
                return epoch, cut, self.program.put(state), given, arrays["active"]
            except DamagedError as error:
                self._say(f"{path.name} is damaged ({error}); falling back to the checkpoint before it.")
                path.unlink()
        given = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes[1])
        active = np.ones(self.program.devices.width, bool)
        found = {run.id: self._find(run, stage, shapes[1]) for run in self.program.runs}
        for place, run in enumerate(self.program.devices.filled(self.program.runs)):
            stored = found[run.id]
            if stored is not None:
                active[place] = False
                given = jax.tree.map(lambda whole, mine, place=place: _with(whole, place, mine), given, stored)
        reused = len([run for run in self.program.runs if found[run.id] is not None])
        if reused:
            whose = "" if len(self.program.runs) == 1 else f" of {reused} of {len(self.program.runs)} runs"
            self._say(
                f"The stage {stage.name!r}{whose} was trained before on this data with these settings: "
                f"reused from {cache_folder() / 'stages'}."
            )
        state = program.init()
        if active.any():
            self._save(stage, 0, None, state, given, active)
        return 0, None, state, given, active

    def _save(self, stage: Stage, epoch: int, cut: Cut | None, state: Any, given: Any, active: np.ndarray) -> None:
        arrays = to_arrays({"stage": state, "given": given, "active": active})
        if cut:
            arrays |= {CUT + name: array for name, array in to_arrays(cut.begun).items()}
            arrays[DONE] = np.array(cut.done, np.int64)
        about = {"runs": [run.id for run in self.program.runs], "stage": stage.name}
        save_checkpoint(self.place(stage), epoch, arrays, about)
        self.folder.write_status(self.status)

    # -- the cache -----------------------------------------------------------------------------------------------

    def _find(self, run: Run, stage: Stage, shapes: Any) -> Any | None:
        path = cache_path(run, stage)
        if not path.exists():
            return None
        alone = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), shapes)
        try:
            return from_arrays(load_checkpoint(path)[1], alone)
        except DamagedError as error:
            self._say(f"{path} is damaged ({error}); the stage is trained again.")
            return None

    def _keep(self, run: Run, stage: Stage, result: Any) -> None:
        path, arrays = cache_path(run, stage), to_arrays(result)
        about = {"run": run.id, "dataset": run.dataset.name, "checksum": run.dataset.checksum, "seed": run.seed}
        try:
            write_arrays(path, 0, arrays, about, if_full=ANOTHER_CACHE)
        except InputError as error:  # training needs no cache
            self._say(f"{stage.name} is not kept for later: {error}")

    def _say(self, message: str) -> None:
        if not self.quiet:
            self.console.print(as_read(message), highlight=False)


def _wait_for(measured: Any) -> None:
    while not all(leaf.is_ready() for leaf in jax.tree.leaves(measured)):
        time.sleep(0.002)  # in slices, so that Ctrl-C is heard


def _with(whole: np.ndarray, place: int, mine: np.ndarray) -> np.ndarray:
    whole[place] = mine
    return whole
