"""The stages before a fleet's training, such as fitting a dynamics model: epoch by epoch, stored and resumed."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.algorithm import Stage
from score_rl.engine.program import FleetMetrics, FleetProgram
from score_rl.engine.stage_program import StageProgram
from score_rl.errors import Stopped
from score_rl.run import messages
from score_rl.run.context import TrainingContext
from score_rl.run.progress import TrainingProgress
from score_rl.run.stage_cache import keep_result
from score_rl.run.stage_position import OpenEpoch, StagePosition, first_position, load_newest_position
from score_rl.store.history import rewind_metrics
from score_rl.store.metrics import Row


class FleetStages:
    """Takes a fleet through all stages of its algorithm."""

    def __init__(self, program: FleetProgram, number: int, context: TrainingContext) -> None:
        self.program, self.number, self.context = program, number, context

    def measures(self, metric: str) -> bool:
        """Whether a metric is a stage's, counted in its epochs."""
        return metric.partition("/")[0] in {stage.name for stage in self.program.algorithm.stages}

    def run(self, state: Any) -> Any:
        """The state that training starts from."""
        for number in range(len(self.program.algorithm.stages)):
            stage = StageProgram(self.program, number)
            trainer = StageTrainer(stage, self._folder(stage.stage), self._title(stage.stage), self.context)
            state = stage.absorb(state, trainer.train())
        return state

    def clear(self) -> None:
        """Remove what the stages stored, once training has a checkpoint of its own."""
        for stage in self.program.algorithm.stages:
            shutil.rmtree(self._folder(stage), ignore_errors=True)

    def _folder(self, stage: Stage) -> Path:
        return self.context.folder.fleet(self.number) / f"stage-{stage.name}"

    def _title(self, stage: Stage) -> str:
        runs = self.program.runs
        return f"{stage.name} of {runs[0].id if len(runs) == 1 else f'fleet {self.number}'}"


class StageTrainer:
    """Takes all runs of a fleet through one stage."""

    def __init__(self, program: StageProgram, folder: Path, title: str, context: TrainingContext) -> None:
        self.program, self.stage = program, program.stage
        self.runs = program.program.runs
        self.folder, self.title, self.context = folder, title, context
        self.most_epochs = self.stage.epochs(self.runs[0].config)

    def train(self) -> Any:
        """What the stage came to, for every run."""
        context, stage = self.context, self.stage
        position = load_newest_position(self.folder, self.program, context.announcer)
        if position is None:
            position = first_position(self.program, context.announcer)
            if position.active.any():
                self._save(position)
        runs = [run.id for run in self.runs]
        rewind_metrics(context.folder.path, runs, position.epoch, lambda name: name.startswith(f"{stage.name}/"))
        context.metrics.reopen()
        if position.active.any():
            with TrainingProgress(
                context.announcer, self.title, self.most_epochs, position.epochs, runs=len(self.runs), unit="epochs"
            ) as progress:
                self._train_epochs(position, progress)
        return self.program.program.put(self._results(position))

    def _results(self, position: StagePosition) -> Any:
        """Of the runs that were trained, which are kept for later, and of those from the cache."""
        active = position.active
        results = jax.tree.map(
            lambda new, old: np.where(active.reshape(-1, *(1,) * (new.ndim - 1)), new, old),
            jax.device_get(self.program.result(position.state)),
            position.given,
        )
        for row, run in enumerate(self.runs):
            if active[row] and not self.context.status.has_diverged(run.id):
                mine = jax.tree.map(lambda leaf, row=row: leaf[row], results)
                keep_result(run, self.stage, mine, self.context.announcer)
        return results

    def _train_epochs(self, position: StagePosition, progress: TrainingProgress) -> None:
        """Until every run is done, or has had as many epochs as it may."""
        saved_at = time.monotonic()
        while position.epoch < self.most_epochs:
            metrics = self._advance(position)
            last = False
            if position.open_epoch is None:
                measured = jax.device_get(metrics)
                working, done = measured.pop("working"), measured.pop("done")
                self._store_metrics(position.epoch, measured, working, progress)
                last = bool(done.all()) or position.epoch == self.most_epochs
            progress.show({"update": str(position.open_epoch or "")})
            progress.advance(position.epochs)
            minutes = (time.monotonic() - saved_at) / 60
            if last or self.context.stop.asked or minutes >= self.context.spec.checkpoint_minutes:
                self._save(position)
                saved_at = time.monotonic()
            if last:
                return
            if self.context.stop.asked:
                raise Stopped(messages.stopped(self._where(position), self.context.folder.path))

    def _advance(self, position: StagePosition) -> FleetMetrics:
        """An epoch, or the part of one that is the next call; its metrics once it is complete."""
        if position.open_epoch is None and self.program.updates_per_call is None:
            position.state, metrics = self.program.epoch(position.state, position.active, position.epoch)
        else:
            metrics = self._advance_within_epoch(position)
        _wait_for(metrics)
        if position.open_epoch is None:
            position.epoch += 1
        return metrics

    def _advance_within_epoch(self, position: StagePosition) -> FleetMetrics:
        epoch = position.open_epoch or OpenEpoch(0, self.program.begin(position.state, position.active))
        end = min(epoch.done + (self.program.updates_per_call or epoch.updates), epoch.updates)
        state, begun = self.program.part(position.state, epoch.begun, position.epoch, epoch.done, end)
        _wait_for(begun.sums)
        if end < epoch.updates:
            position.state, position.open_epoch = state, OpenEpoch(end, begun)
            return {}
        position.state, metrics = self.program.end(state, begun, position.active)
        position.open_epoch = None
        return metrics

    def _where(self, position: StagePosition) -> str:
        epoch = position.open_epoch
        where = f"at update {epoch} in epoch {position.epoch + 1}" if epoch else f"after epoch {position.epoch}"
        return f"{where} of the stage {self.stage.name!r}"

    def _save(self, position: StagePosition) -> None:
        about = {"runs": [run.id for run in self.runs], "stage": self.stage.name}
        self.context.folder.presence.write(lambda: position.save(self.folder, about))
        self.context.status.save()

    def _store_metrics(
        self, epoch: int, metrics: Mapping[str, np.ndarray], working: np.ndarray, progress: TrainingProgress
    ) -> None:
        """Of the runs that were trained in this epoch; those whose metrics are not finite are marked."""
        name, status = self.stage.name, self.context.status
        rows = []
        for row, run in enumerate(self.runs):
            if not working[row]:
                continue
            values = {metric: float(column[row]) for metric, column in metrics.items()}
            broken = [metric for metric, value in values.items() if not np.isfinite(value)]
            if broken:
                if not status.has_diverged(run.id):
                    status.set_diverged(run.id, 0)
                    self.context.announcer.say(messages.stage_diverged(run.id, name, broken[0]))
                continue
            rows += [Row(run.id, epoch, f"{name}/{metric}", value) for metric, value in values.items()]
        self.context.metrics.write(rows)
        for metric in metrics:
            shown = [row.value for row in rows if row.name == f"{name}/{metric}"]
            if shown:
                progress.show({metric: f"{np.mean(shown):.3g}"})


def _wait_for(measured: Any) -> None:
    while not all(leaf.is_ready() for leaf in jax.tree.leaves(measured)):
        time.sleep(0.002)  # in slices, so that Ctrl-C is heard
