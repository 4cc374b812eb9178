"""Training a fleet from wherever it stands to its end.

`FleetTrainer` calls the compiled program as the schedule says, and hands what comes out to whoever is in charge:

    schedule.py            what is due when
    windows.py             what the calls of a window measured
    monitor.py             which runs diverged, which have impossible values
    evaluations.py         policies that are evaluated beside training
    checkpoint_writer.py   checkpoints, written beside training
    stages.py              what some algorithms train before
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.errors import Stopped
from score_rl.rollout.acting import FleetActor
from score_rl.run import messages
from score_rl.run.best_policies import BestPolicies
from score_rl.run.checkpoint_writer import CheckpointWriter, FleetCheckpoint, load_newest
from score_rl.run.context import TrainingContext
from score_rl.run.evaluations import EvaluationQueue
from score_rl.run.fleets import refuse_too_large
from score_rl.run.monitor import RunMonitor
from score_rl.run.preparation import compile_fleet
from score_rl.run.progress import TrainingProgress
from score_rl.run.schedule import Call, Schedule, checkpoint_is_due
from score_rl.run.stages import FleetStages
from score_rl.run.windows import WindowMetrics
from score_rl.store.history import rewind_metrics
from score_rl.store.metrics import Row


@dataclasses.dataclass(frozen=True)
class StartedCall:
    """A call of the program that the device works on or has done; the host has not dealt with it yet."""

    call: Call
    window: WindowMetrics  # up to its end
    policies: Any | None  # where they are to be evaluated


class Workers(NamedTuple):
    """Who works beside training, for as long as it lasts."""

    progress: TrainingProgress
    evaluations: EvaluationQueue
    checkpoints: CheckpointWriter


class FleetTrainer:
    """Trains one fleet of an experiment."""

    def __init__(self, number: int, runs: Sequence[Run], context: TrainingContext) -> None:
        self.number, self.runs, self.context = number, list(runs), context
        self.program = FleetProgram(runs, precision=context.spec.of(runs[0].algorithm.name).precision)
        refuse_too_large(self.program)
        self.actor = FleetActor(self.program, context.spec)
        self.stages = FleetStages(self.program, number, context)
        self.monitor = RunMonitor(self.runs, jax.device_get(self.program.inputs.treatment), context)
        # On an accelerator the next call is started before the last one is known to be done: it would stand still
        # until the host has noticed. On a CPU noticing takes no time, and a stop is heard earlier.
        self.starts_ahead = self.program.devices.first.platform != "cpu"

    @property
    def title(self) -> str:
        if len(self.context.spec.algorithms) > 1:
            return f"{self.program.algorithm.title}, fleet {self.number}"
        return f"fleet {self.number}" if self.number or len(self.runs) > 1 else self.runs[0].id

    def train(self) -> None:
        """To the end, or until a stop is asked for."""
        spec, announcer, folder = self.context.spec, self.context.announcer, self.context.folder
        start = self._start()
        evaluated = self._forget_after(start)
        self.context.status.begin(self.monitor.ids, start.step, spec.steps)
        per_call = compile_fleet(self.program, self.number, self.context) if start.step < spec.steps else spec.log_every
        schedule = Schedule(spec.steps, spec.log_every, spec.eval_every, per_call)
        if self.actor.threads_because is not None:
            announcer.say(messages.evaluated_by_threads(self.program.algorithm.title, self.actor.threads_because))
        with (
            TrainingProgress(announcer, self.title, spec.steps, start.step, runs=len(self.runs)) as progress,
            CheckpointWriter(folder.fleet(self.number), self.program, folder.presence) as checkpoints,
            EvaluationQueue(self.actor, self.context, progress, self._best_policies()) as evaluations,
        ):
            workers = Workers(progress, evaluations, checkpoints)
            if schedule.evaluates_at(start.step) and not evaluated.issuperset(self.monitor.sound):
                evaluations.submit(start.step, self.program.policies(start.state), self.monitor.sound)
            self._follow(schedule, start, workers)
            evaluations.drain()
        self.context.status.finish(self.monitor.ids)
        self.monitor.conclude()

    def _best_policies(self) -> BestPolicies | None:
        if not self.context.spec.keep_best:
            return None
        return BestPolicies(self.context.folder.fleet(self.number), self.program)

    # -- where to start ------------------------------------------------------------------------------------------

    def _start(self) -> FleetCheckpoint:
        """The newest whole checkpoint, else the beginning: after the stages, if the algorithm has any."""
        folder = self.context.folder.fleet(self.number)
        found = load_newest(folder, self.program, self.context.announcer)
        if found is not None:
            return found
        state = self.program.init()
        if not self.program.algorithm.stages:
            return FleetCheckpoint(0, state, WindowMetrics())
        start = FleetCheckpoint(0, self.stages.run(state), WindowMetrics())
        with CheckpointWriter(folder, self.program, self.context.folder.presence) as checkpoints:
            checkpoints.save(start)
            checkpoints.wait()
        self.stages.clear()
        return start

    def _forget_after(self, start: FleetCheckpoint) -> set[str]:
        """Remove what was measured after the checkpoint: it is measured again. The runs evaluated just there.

        What the table has lost since then comes back from the checkpoint.
        """
        kept, restored = rewind_metrics(
            self.context.folder.path,
            self.monitor.ids,
            start.step,
            counted=lambda name: not self.stages.measures(name),
            history=start.history,
        )
        self.context.metrics.reopen()
        if restored:
            self.context.announcer.say(messages.metrics_restored(restored, start.step))
        elif start.step and not any(row.run in self.monitor.ids for row in kept):
            self.context.announcer.say(messages.metrics_lost(start.step))
        return {row.run for row in kept if row.step == start.step and row.name == "evaluation/return"}

    # -- the loop ------------------------------------------------------------------------------------------------

    def _follow(self, schedule: Schedule, start: FleetCheckpoint, workers: Workers) -> None:
        """Make all calls that are left. While the device works on one, the host deals with the one before."""
        state, window = start.state, start.window
        before: StartedCall | None = None  # not dealt with yet
        saved_at = time.monotonic()
        for call in schedule.calls(start.step):
            if self.actor.training_waits and before is not None and before.policies is not None:
                self._deal_with(before, workers)
                workers.evaluations.drain()
                before = None
            began = time.perf_counter()
            state, means = self.program.advance(state, call.first, call.updates)
            window = window.after(call.updates, means)
            started = StartedCall(call, window, self._policies(call, state))
            if before is not None:
                self._deal_with(before, workers)
            before = started
            if call.ends_window:
                window = WindowMetrics()
            is_first = call.first == start.step
            if is_first or not self.starts_ahead:
                self._wait_for(started, workers)
            if is_first and not call.ends_training:
                took = time.perf_counter() - began
                self.context.announcer.say(messages.time_needed(call.updates, took, schedule.steps - call.end))
            stopping = self.context.stop.asked
            if self._checkpoint_is_due(saved_at, stopping or call.ends_training, workers):
                self._save(FleetCheckpoint(call.end, state, window), started, workers)
                before, saved_at = None, time.monotonic()
            if call.ends_training or stopping:
                workers.checkpoints.wait()
            if stopping and not call.ends_training:
                raise Stopped(messages.stopped(f"at update {call.end:,}", self.context.folder.path))
        if before is not None:
            self._deal_with(before, workers)

    def _policies(self, call: Call, state: Any) -> Any | None:
        return self.program.policies(state) if call.evaluates and self.actor.can_judge else None

    def _wait_for(self, started: StartedCall, workers: Workers) -> None:
        """Until the device is done with it. Meanwhile evaluations are stored and signals are heard."""
        while not started.window.is_ready:
            workers.evaluations.collect()
            time.sleep(0.002)
        workers.evaluations.collect()
        workers.progress.advance(started.call.end)

    def _deal_with(self, started: StartedCall, workers: Workers) -> None:
        """Wait for it; at the end of a window, store what was measured and have the policies evaluated."""
        self._wait_for(started, workers)
        if not started.call.ends_window:
            return
        step = started.call.end
        rows = self.monitor.inspect(step, started.window.means())
        sound = self.monitor.sound
        self.context.metrics.write(
            [*rows, *(Row(run, step, "speed/updates_per_second", workers.progress.rate) for run in sound)]
        )
        for name in self.program.algorithm.headline:
            values = [row.value for row in rows if row.name == f"train/{name}"]
            if values:
                workers.progress.show({name: f"{np.mean(values):.3g}"})
        if started.policies is not None:
            workers.evaluations.submit(step, started.policies, sound)

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _checkpoint_is_due(self, saved_at: float, urgent: bool, workers: Workers) -> bool:
        return checkpoint_is_due(
            (time.monotonic() - saved_at) / 60,
            self.context.spec.checkpoint_minutes,
            urgent=urgent,
            still_writing=workers.checkpoints.is_writing,
            evaluations_wait=len(workers.evaluations) > 0,
        )

    def _save(self, checkpoint: FleetCheckpoint, started: StartedCall, workers: Workers) -> None:
        """Evaluations of earlier updates are stored first: they need policies that no checkpoint will hold.

        Those of this very update may still be under way: they are repeated if training goes on from here.
        """
        self._wait_for(started, workers)
        workers.evaluations.drain()
        self._deal_with(started, workers)
        if started.call.ends_training:
            workers.evaluations.drain()
        workers.checkpoints.save(checkpoint)
        self.context.status.set_step(self.monitor.sound, checkpoint.step)
        self.context.status.save()
