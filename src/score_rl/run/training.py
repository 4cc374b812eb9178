"""Training a fleet from wherever it stands to its end: windows, judgements, checkpoints, interruptions."""

import dataclasses
import math
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np
from rich.console import Console

from score_rl.engine.memory import as_size, footprint
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.errors import InputError, Stopped, as_read
from score_rl.rollout.acting import FleetActor
from score_rl.run.plausibility import value_range
from score_rl.run.progress import TrainingProgress, duration
from score_rl.run.stages import FleetStages
from score_rl.store.checkpoints import (
    CUT,
    DamagedError,
    checkpoints,
    from_arrays,
    load_checkpoint,
    prefixed,
    save_checkpoint,
    to_arrays,
)
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row
from score_rl.store.records import RunStatus, StatusRecord
from score_rl.store.request import ExperimentSpec

PENDING_JUDGEMENTS = 2  # more would let training run away from its evaluation
WORTH_SAYING = 60.0  # seconds after which a user is told that training waits for evaluation
SHARE_WORTH_SAYING = 0.2  # of them spent waiting
DOUBTS_SAID = 5  # runs that are named when their values are impossible; status.json has all
UPDATES = "updates of each piece"


class StopRequest:
    """Ctrl-C or SIGTERM: the first asks for an orderly end, the second ends at once."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def listening(self, console: Console) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals reach only the main thread
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True
            console.print("Stopping in a moment, with a checkpoint. Once more to stop at once.")

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclasses.dataclass(frozen=True)
class Piece:
    """What one call of the program left behind: means over its updates, one for each run."""

    updates: int
    metrics: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Window:
    """What was done since the last row of metrics, to be dealt with while training goes on."""

    step: int
    pieces: tuple[Piece, ...]
    policies: Any | None = None  # set where a judgement is due
    whole: bool = True  # else a row of metrics is not due yet

    def means(self) -> dict[str, np.ndarray]:
        """Over all updates, one for each run; in float64, so that it hardly matters how they were cut."""
        pieces = [Piece(piece.updates, jax.device_get(piece.metrics)) for piece in self.pieces]
        updates = [piece.updates for piece in pieces]
        return {
            name: np.average([np.asarray(piece.metrics[name], np.float64) for piece in pieces], axis=0, weights=updates)
            for name in (pieces[0].metrics if pieces else ())
        }


class FleetTrainer:
    def __init__(
        self,
        number: int,
        runs: Sequence[Run],
        spec: ExperimentSpec,
        folder: Folder,
        writer: MetricsWriter,
        status: StatusRecord,
        console: Console,
        stop: StopRequest,
        *,
        quiet: bool = False,
    ) -> None:
        self.number, self.runs, self.spec = number, list(runs), spec
        self.folder, self.writer, self.status = folder, writer, status
        self.console, self.stop, self.quiet = console, stop, quiet
        self.program = FleetProgram(runs, precision=spec.precision)
        self.actor = FleetActor(self.program, spec)
        self.headline = self.program.algorithm.headline
        self.stages = FleetStages(self.program, number, spec, folder, writer, status, console, stop, quiet=quiet)
        self.piece = spec.log_every  # updates in one call of the program; found when it is compiled
        treatments = jax.device_get(self.program.inputs.treatment)
        self._possible = [
            value_range(run, jax.tree.map(lambda leaf, place=place: leaf[place], treatments))
            for place, run in enumerate(self.runs)
        ]
        self._judgements: deque[tuple[int, Future[list[Row]]]] = deque()
        self._said_what_judging_costs = False
        self._doubted: set[str] = set()  # runs whose values were impossible at some time
        self._waited = 0.0  # seconds in which training stood still for a judgement
        self._writing: Future[Path] | None = None  # the checkpoint on its way to the disk

    # -- where to start ------------------------------------------------------------------------------------------

    def start(self) -> tuple[int, Any, tuple[Piece, ...]]:
        """The newest checkpoint that is whole, else the beginning; with the window that a stop has cut."""
        damaged = False
        for path in checkpoints(self.folder.fleet(self.number)):
            try:
                step, arrays, _ = load_checkpoint(path)
                state = self.program.put(from_arrays(prefixed(arrays, "state."), self.program.state_shapes()))
            except DamagedError as error:
                self.say(f"{path.name} is damaged ({error}); falling back to the checkpoint before it.")
                path.unlink()
                damaged = True
                continue
            return step, state, _from_columns(prefixed(arrays, CUT))
        if damaged:
            self.say("No checkpoint is whole: it begins again from the start.")
        if not self.program.algorithm.stages:
            return 0, self.program.init(), ()
        state = self.stages.run(self.program.init())
        save_checkpoint(*self._checkpoint(0, state, ()))
        self.stages.clear()
        return 0, state, ()

    # -- the loop ------------------------------------------------------------------------------------------------

    def train(self) -> None:
        step, state, begun = self.start()
        ids = [run.id for run in self.runs]
        measured = self.folder.rewind_metrics(ids, step, lambda name: not self.stages.measures(name))
        self.writer.reopen()
        judged = {row.run for row in measured if row.step == step and row.name == "evaluation/return"}
        for run in self.runs:
            entry = self.status.runs.setdefault(run.id, RunStatus("training"))
            if entry.diverged_at is not None and entry.diverged_at > step:
                entry.state, entry.diverged_at = "training", None
            if entry.state == "finished" and step < self.spec.steps:
                entry.state = "training"
            entry.step = step
        self.folder.write_status(self.status)
        self._say_what_it_takes(step)
        title = f"fleet {self.number}" if self.number or len(self.runs) > 1 else self.runs[0].id
        with (
            TrainingProgress(
                self.console, title, self.spec.steps, step, len(self.runs), quiet=self.quiet
            ) as self.progress,
            ThreadPoolExecutor(self.actor.judgements_at_once, thread_name_prefix="judge") as self._judge,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint") as self._disk,
        ):
            if self.actor.threads_because is not None:
                self.progress.note(
                    f"{self.program.algorithm.title}'s policies are judged by threads, slower on many cores than by "
                    f"processes: there is no instruction for {self.actor.threads_because} (rollout/instructions.py)."
                )
            try:
                if step and step % self.spec.eval_every == 0 and not judged.issuperset(self._alive()):
                    self._submit(Window(step, (), self.program.policies(state)))
                self._loop(step, state, begun)
            except BaseException:
                self.actor.cancel()  # the judge's thread must not outlive a failure
                raise
            finally:
                self._judge.shutdown()
                self.actor.close()

    def _loop(self, step: int, state: Any, begun: tuple[Piece, ...]) -> None:
        window: Window | None = None
        saved_at, first = time.monotonic(), step
        while step < self.spec.steps:
            if self.actor.training_waits and window is not None and window.policies is not None:
                self._finish(window)
                self._drain()
                window = None
            began = time.perf_counter()
            # A window that was cut elsewhere is gone on with in pieces that end where it does.
            length = math.gcd(self.piece, self.spec.log_every - step % self.spec.log_every)
            state, metrics = self.program.advance(state, step, length)
            step += length
            begun = (*begun, Piece(length, metrics))
            whole = step % self.spec.log_every == 0
            due = step % self.spec.eval_every == 0 or step == self.spec.steps
            policies = self.program.policies(state) if due and self.actor.can_judge else None
            if window is not None:
                self._finish(window)
            window = Window(step, begun, policies, whole)
            if whole:
                begun = ()
            if not self.runs_ahead or step == first + length:
                self._wait_for(window)
            if step == first + length:
                self._say_how_long(time.perf_counter() - began, length, step)
            last, stopping = step == self.spec.steps, self.stop.asked
            waited, busy = (time.monotonic() - saved_at) / 60, self._is_writing()
            if last or stopping or waited >= self.spec.checkpoint_minutes:
                urgent = last or stopping
                if busy and not urgent:
                    continue  # a slow disk: fewer checkpoints, and training does not wait for it
                # Judgements of earlier steps need policies that no checkpoint will hold: they come first.
                if self._judgements and not urgent and waited < 2 * self.spec.checkpoint_minutes:
                    continue
                self._wait_for(window)
                self._drain()
                self._finish(window)
                window = None
                if last:
                    self._drain()
                self._save(step, state, begun)
                if urgent:
                    self._written()
                saved_at = time.monotonic()
            if stopping and not last:
                self.actor.cancel()
                raise Stopped(f"stopped at update {step:,} with a checkpoint; go on with `resume={self.folder.path}`")
        if window is not None:
            self._finish(window)
        self._drain()
        for run in self._alive():
            self.status.runs[run].state = "finished"
        self.folder.write_status(self.status)
        self._say_doubts()

    @property
    def runs_ahead(self) -> bool:
        """Whether the next window is begun before this one is known to be done: an accelerator would stand still until
        the host has noticed and dealt with it. On a CPU that takes no time worth a later stop."""
        return self.program.devices.first.platform != "cpu"

    def _finish(self, window: Window) -> None:
        self._wait_for(window)
        if window.whole:
            self._deal_with(window)

    def _wait_for(self, window: Window) -> None:
        """Until it is done; meanwhile judgements are collected and signals are heard."""
        leaves = jax.tree.leaves(window.pieces[-1].metrics)
        while not all(leaf.is_ready() for leaf in leaves):
            self._collect()
            time.sleep(0.002)
        self._collect()
        self.progress.advance(window.step)

    def _deal_with(self, window: Window) -> None:
        """Store a window's metrics, mark the runs that diverged, hand its policies to the judge."""
        metrics = window.means()
        rows = []
        for place, run in enumerate(self.runs):
            entry = self.status.runs[run.id]
            if entry.state == "diverged":
                continue
            values = {name: float(column[place]) for name, column in metrics.items()}
            bad = [name for name, value in values.items() if not np.isfinite(value)]
            if bad:
                entry.state, entry.diverged_at = "diverged", window.step
                self.folder.write_status(self.status)
                self.progress.note(
                    f"{run.id} diverged by update {window.step:,} ({bad[0]} is not finite); others go on."
                )
                continue
            entry.step = window.step
            self._doubt(place, entry, values)
            rows += [Row(run.id, window.step, f"train/{name}", value) for name, value in values.items()]
        rows += [Row(run, window.step, "speed/updates_per_second", self.progress.rate) for run in self._alive()]
        self.writer.write(rows)
        for name in self.headline:
            shown = [row.value for row in rows if row.name == f"train/{name}"]
            if shown:
                self.progress.say({name: f"{np.mean(shown):.3g}"})
        if window.policies is not None:
            self._submit(window)

    def _doubt(self, place: int, entry: RunStatus, values: Mapping[str, float]) -> None:
        """Keep in the status, for as long as it is so, that a run's values are impossible; say it the first time."""
        possible = self._possible[place]
        found = None
        if possible is not None and "q" in values:
            found = possible.doubt(values["q"], values.get("temperature", 0.0))
        entry.warning = found
        if found is None:
            return
        run = self.runs[place].id
        if run not in self._doubted:
            self._doubted.add(run)
            if len(self._doubted) <= DOUBTS_SAID:
                self.progress.note(f"Warning, {run} by update {entry.step:,}: {found}")

    def _say_doubts(self) -> None:
        doubted = [run for run in self._alive() if self.status.runs[run].warning is not None]
        if doubted:
            shown = ", ".join(doubted[:DOUBTS_SAID]) + (", ..." if len(doubted) > DOUBTS_SAID else "")
            self.progress.note(
                f"Warning: {len(doubted)} of {len(self.runs)} runs ended with values that their rewards cannot add up "
                f"to ({shown}); status.json has what they are."
            )

    # -- judging -------------------------------------------------------------------------------------------------

    def _alive(self) -> list[str]:
        return [run.id for run in self.runs if self.status.runs[run.id].state != "diverged"]

    def _submit(self, window: Window) -> None:
        if not self.actor.can_judge:
            return
        began = time.monotonic()
        while len(self._judgements) >= max(PENDING_JUDGEMENTS, self.actor.judgements_at_once):
            self._collect(wait=True)
        self._waited += time.monotonic() - began
        self._say_what_judging_costs()
        policies = jax.device_get(window.policies)
        self._judgements.append(
            (window.step, self._judge.submit(self.actor.judge, policies, window.step, set(self._alive())))
        )

    def _say_what_judging_costs(self) -> None:
        """Once, where a user may want fewer evaluations."""
        passed = self.progress.seconds
        if self._said_what_judging_costs or passed < WORTH_SAYING or self._waited < SHARE_WORTH_SAYING * passed:
            return
        self._said_what_judging_costs = True
        self.progress.note(
            f"Training waits for evaluation {self._waited / passed:.0%} of the time. "
            f"Fewer evaluations (`eval_every`, now {self.spec.eval_every:,}) or fewer episodes (`eval_episodes`, now "
            f"{self.spec.eval_episodes}) would make it faster."
        )

    def _collect(self, wait: bool = False) -> None:
        """Store the judgements that are done; with `wait`, the oldest first."""
        while self._judgements and (wait or self._judgements[0][1].done()):
            wait = False
            _, future = self._judgements.popleft()
            while True:
                try:
                    rows = future.result(timeout=0.1)  # in slices, so that Ctrl-C is heard
                    break
                except TimeoutError:
                    continue
            self.writer.write(rows)
            scores = [row.value for row in rows if row.name == "evaluation/score"]
            returns = [row.value for row in rows if row.name == "evaluation/return"]
            if scores:
                self.progress.say({"score": f"{np.mean(scores):.1f}"})
            elif returns:
                self.progress.say({"return": f"{np.mean(returns):.1f}"})

    def _drain(self) -> None:
        while self._judgements:
            self._collect(wait=True)

    # -- storing -------------------------------------------------------------------------------------------------

    def _checkpoint(
        self, step: int, state: Any, begun: tuple[Piece, ...]
    ) -> tuple[Path, int, dict[str, np.ndarray], dict[str, Any]]:
        """On the host: where it goes, and what is in it."""
        arrays = to_arrays({"state": state, "treatment": self.program.inputs.treatment})
        arrays |= {CUT + name: column for name, column in _to_columns(begun).items()}
        about = {"runs": [run.id for run in self.runs], "algorithm": self.program.algorithm.name}
        return self.folder.fleet(self.number), step, arrays, about

    def _save(self, step: int, state: Any, begun: tuple[Piece, ...]) -> None:
        """Take a copy of the state now and write it while training goes on."""
        self._written()
        self._writing = self._disk.submit(save_checkpoint, *self._checkpoint(step, state, begun))
        for run in self._alive():
            self.status.runs[run].step = step
        self.folder.write_status(self.status)

    def _is_writing(self) -> bool:
        if self._writing is not None and self._writing.done():
            self._written()
        return self._writing is not None

    def _written(self) -> None:
        """Wait until the last checkpoint is on the disk; what went wrong there is raised here."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    # -- telling -------------------------------------------------------------------------------------------------

    def say(self, message: str) -> None:
        if not self.quiet:
            self.console.print(as_read(message), highlight=False)

    def _say_what_it_takes(self, step: int) -> None:
        """Memory, disk and time, before the long part begins; refuse what cannot fit."""
        if step >= self.spec.steps:
            return
        began = time.perf_counter()
        self.say(f"Compiling one program for {_count(len(self.runs), 'run')} ...")
        self.piece = self.program.updates_per_call(self.spec.log_every)
        takes = footprint(self.program, self.piece)
        compiled = time.perf_counter() - began
        device = self.program.devices.first
        if not takes.fits:
            do = "train fewer runs at once" if len(self.runs) > 1 else "give a smaller batch or smaller networks"
            raise InputError(
                f"fleet {self.number} ({_count(len(self.runs), 'run')}) needs {as_size(takes.program)} on "
                f"{device.device_kind}, which has {as_size(takes.available or 0)}; {do}."
            )
        state = takes.checkpoint
        free = shutil.disk_usage(self.folder.path).free
        if 3 * state > free:  # two are kept while a third is written
            raise InputError(
                f"checkpoints need {as_size(3 * state)} and {self.folder.path} has {as_size(free)} free; "
                "free some space or give another `out`."
            )
        several = f" (each of {self.program.devices.number})" if self.program.devices.number > 1 else ""
        self.say(
            f"Compiled in {compiled:.0f} s. Memory: {as_size(takes.program)} on {device.device_kind}{several}. "
            f"A checkpoint: {as_size(state)}."
        )

    def _say_how_long(self, passed: float, updates: int, step: int) -> None:
        """The first call is the trial from which the rest is told."""
        if step < self.spec.steps:
            seconds = passed * (self.spec.steps - step) / updates
            self.progress.note(
                f"The first {_count(updates, 'update')} took {passed:.1f} s: the other {self.spec.steps - step:,} "
                f"will take about {duration(seconds)}, evaluation not counted."
            )


def _to_columns(pieces: tuple[Piece, ...]) -> dict[str, np.ndarray]:
    if not pieces:
        return {}
    columns = {name: np.stack([jax.device_get(piece.metrics[name]) for piece in pieces]) for name in pieces[0].metrics}
    return columns | {UPDATES: np.array([piece.updates for piece in pieces], np.int64)}


def _from_columns(columns: dict[str, np.ndarray]) -> tuple[Piece, ...]:
    numbers = columns.pop(UPDATES, np.array([], np.int64))
    return tuple(
        Piece(int(number), {name: column[place] for name, column in columns.items()})
        for place, number in enumerate(numbers)
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
