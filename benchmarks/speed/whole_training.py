"""Whole trainings with their evaluations: how much of its speed training keeps, and how long 75 runs would take."""

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.registry import get_algorithm
from score_rl.data.catalogue import load_dataset
from score_rl.engine.runs import Run, group_fleets
from score_rl.errors import Stopped
from score_rl.run.checkpoint_writer import FleetCheckpoint
from score_rl.run.context import TrainingContext
from score_rl.run.expansion import expand_runs
from score_rl.run.messages import Announcer
from score_rl.run.precision import choose_precision
from score_rl.run.schedule import Schedule
from score_rl.run.signals import StopRequest
from score_rl.run.status import StatusKeeper
from score_rl.run.training import FleetTrainer, StartedCall, Workers
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row
from score_rl.store.records import ExperimentRecord
from score_rl.store.request import AlgorithmRequest, ExperimentSpec, default_log_every

from .arguments import Arguments, say
from .timing import Clock, Results

EPISODES = 10


class TimedTrainer(FleetTrainer):
    """Notes how long it trains, and how long until the last judgement is stored as well."""

    began, training_seconds, seconds, updates = 0.0, 0.0, 0.0, 0

    def _follow(self, schedule: Schedule, start: FleetCheckpoint, workers: Workers) -> None:
        jax.block_until_ready(start.state)
        self.began = time.perf_counter()
        try:
            super()._follow(schedule, start, workers)
        finally:
            self.seconds = time.perf_counter() - self.began

    def _save(self, checkpoint: FleetCheckpoint, started: StartedCall, workers: Workers) -> None:
        self.updates = checkpoint.step
        if started.call.ends_training:
            self._wait_for(started, workers)
            self.training_seconds = time.perf_counter() - self.began
        super()._save(checkpoint, started, workers)


def score_runs(
    datasets: Sequence[Any],
    seeds: int,
    steps: int,
    eval_every: int,
    environment: str | None = None,
    precision: str = "auto",
) -> tuple[list[Run], ExperimentSpec]:
    asked = AlgorithmRequest("score", precision=choose_precision(get_algorithm("score"), precision))
    spec = ExperimentSpec(
        algorithms=(asked,), datasets=tuple(d.name for d in datasets), seeds=tuple(range(seeds)), steps=steps,
        eval_every=eval_every, eval_episodes=EPISODES,
        log_every=default_log_every(1_000_000, eval_every, 2) if eval_every > 2 else 2, environment=environment,
    )  # fmt: skip
    return expand_runs(spec, datasets), spec


def _train(number: int, fleet: Sequence[Run], spec: ExperimentSpec, stop_after: float | None = None) -> dict[str, Any]:
    """A real training in a folder of its own; compiled before the clock starts."""
    place = Path(tempfile.mkdtemp(prefix="score-speed-"))
    folder, stop = Folder.create(place / "run", ExperimentRecord(spec, {}, {}, ())), StopRequest()
    writer = MetricsWriter(folder.path)
    timer = threading.Timer(stop_after or 0.0, lambda: setattr(stop, "asked", True))
    try:
        announcer, status = Announcer(quiet=True), StatusKeeper(folder)
        trainer = TimedTrainer(number, fleet, TrainingContext(spec, folder, writer, status, announcer, stop))
        trainer.program.compile(spec.log_every)
        policies = jax.device_get(trainer.program.policies(trainer.program.init()))
        writer.write([Row(fleet[0].id, 0, "speed/warm", 0.0)])  # imports what writing needs
        if trainer.actor.can_judge:
            zeros = jax.tree.map(np.zeros_like, policies)
            trainer.actor.judge(zeros, 0, {run.id for run in fleet})  # compiles acting
        if stop_after is not None:
            timer.start()
        with contextlib.suppress(Stopped):
            trainer.train()
        judged = sum(row.name == "evaluation/return" for row in folder.metrics())
        times = {"training_seconds": trainer.training_seconds or trainer.seconds, "seconds": trainer.seconds}
        return {"runs": len(fleet), "updates": trainer.updates, **times, "judged": judged}
    finally:
        timer.cancel()
        writer.close()
        shutil.rmtree(place, ignore_errors=True)


def measure_overlap(asked: Arguments, results: Results, clock: Clock) -> None:
    datasets = [load_dataset(name, transitions=asked.transitions) for name in asked.datasets]
    measured: dict[str, list[dict[str, Any]]] = {"without": [], "with": []}
    for number in range(asked.rounds):
        longest = max((m["seconds"] for rows in measured.values() for m in rows), default=0.0)
        if number and clock.left() < 2.5 * longest:
            break
        for name, environment in (("without", "none"), ("with", None)):
            fleet, spec = score_runs(
                datasets, asked.seeds, asked.updates, asked.eval_every, environment, asked.precision
            )
            if len(group_fleets(fleet)) > 1:
                say("overlap is about one fleet: give data sets of one shape")
                return
            measured[name].append(_train(0, fleet, spec))
            say(f"{name} evaluation: {measured[name][-1]}")
        pairs = zip(measured["without"], measured["with"], strict=True)
        kept = [without["training_seconds"] / judged["training_seconds"] for without, judged in pairs]
        figures = {
            "what": "FleetTrainer on SCORE, 10 episodes of every run at each evaluation, against no evaluation; "
            "until the last update, the last judgements not counted",
            "datasets": list(asked.datasets),
            "precision": spec.of("score").precision,
            "runs": measured["with"][0]["runs"],
            "eval_every": asked.eval_every,
            "updates": asked.updates,
            "share_of_speed_kept": float(np.median(kept)),
            "rounds": measured,
        }
        results.keep("overlap", figures, "+".join(sorted({str(data.environment) for data in datasets})))
        say(f"kept {figures['share_of_speed_kept']:.1%} of the speed")


def measure_stretch(asked: Arguments, results: Results, clock: Clock) -> None:
    datasets = [load_dataset(name, transitions=asked.transitions) for name in asked.datasets]
    runs, spec = score_runs(datasets, asked.seeds, asked.steps, asked.eval_every, None, asked.precision)
    fleets = group_fleets(runs)
    measured: list[dict[str, Any]] = []
    for number, fleet in enumerate(fleets):
        if clock.over():
            say(f"no time left for the fleet of {len(fleet)} runs: the figure is of the others alone")
            break
        seconds = 60 * asked.minutes * len(fleet) / len(runs)
        one = _train(number, fleet, spec, stop_after=seconds)
        one["tasks"] = sorted({run.dataset.environment or "none" for run in fleet})
        one["run_steps_per_second"] = one["runs"] * one["updates"] / one["seconds"]
        one["seconds_for_all"] = asked.steps * one["seconds"] / one["updates"]
        measured.append(one)
        figures = {
            "what": f"{len(runs)} SCORE runs with 10 episodes each every {asked.eval_every:,} updates, each shape for "
            f"its share of {asked.minutes:g} minutes, continued to {asked.steps:,} updates",
            "datasets": list(asked.datasets),
            "precision": spec.of("score").precision,
            "complete": len(measured) == len(fleets),
            "fleets": measured,
            "minutes_for_all": sum(m["seconds_for_all"] for m in measured) / 60,
        }
        results.keep("stretch", figures)
        say(
            f"{one['tasks']}, {one['runs']} runs: {one['updates']:,} updates in {one['seconds']:.0f} s, "
            f"{one['run_steps_per_second']:,.0f} run-steps/s, {one['judged']} judgements"
        )
    if measured:
        say(f"{asked.steps:,} updates of all runs would take {figures['minutes_for_all']:.1f} minutes")
