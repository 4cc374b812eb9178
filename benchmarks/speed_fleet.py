"""The parts of `speed.py` about whole fleets: how they scale, what judging them costs, how fast they start."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console
from timing import Clock, Engine, Results, compiled

from score_rl.algorithms.registry import get_algorithm
from score_rl.data.catalogue import load_dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run, group_fleets
from score_rl.envs import TASKS, available_cores
from score_rl.errors import Stopped
from score_rl.rollout import episodes as rollouts
from score_rl.rollout.acting import FleetActor
from score_rl.run.expansion import expand_runs
from score_rl.run.launch import choose_precision
from score_rl.run.training import FleetTrainer, Piece, StopRequest
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row
from score_rl.store.records import ExperimentRecord, StatusRecord
from score_rl.store.request import ExperimentSpec, default_log_every

if TYPE_CHECKING:
    from speed import Arguments

EPISODES = 10
RUNS, CRITICS, BATCHES, WIDTHS = (1, 5, 15, 25, 50, 75), (5, 10, 20, 50), (100, 256, 512, 1024), (256, 512, 1024)


def _say(message: str) -> None:
    Console(highlight=False).print(message, soft_wrap=True)


# -- scale -----------------------------------------------------------------------------------------------------------


def scale_points(base_runs: int, most_runs: int) -> list[dict[str, int]]:
    """One thing grows at a time."""
    base = {"runs": base_runs, "critics": 5, "batch": 256, "width": 256}
    grown = [
        *({**base, "runs": runs} for runs in RUNS if runs <= most_runs),
        *({**base, "critics": critics} for critics in CRITICS),
        *({**base, "batch": batch} for batch in BATCHES),
        *({**base, "width": width} for width in WIDTHS),
    ]
    return [point for number, point in enumerate(grown) if point not in grown[:number]]


def measure_scale(asked: "Arguments", results: Results, clock: Clock) -> None:
    points: list[dict[str, Any]] = []
    wanted = scale_points(asked.base_runs, asked.most_runs)
    makers = [
        partial(
            Engine,
            "score",
            point["runs"],
            asked.seconds / 2,
            {"critics": point["critics"], "batch_size": point["batch"], "hidden": (point["width"],) * 2},
            precision=asked.precision,
        )
        for point in wanted
    ]
    for point, fleet in zip(wanted, compiled(makers, clock.over), strict=False):
        rate = float(np.median([fleet.turn() for _ in range(2)]))
        memory = {"bytes": fleet.bytes, "data_bytes": fleet.program.rows.nbytes}
        points.append({**point, "run_steps_per_second": rate, **memory})
        about = "SCORE on 200,000 rows of halfcheetah's shape; bytes are the compiler's, the data included"
        results.keep(
            "scale", {"what": about, "precision": fleet.precision, "base_runs": asked.base_runs, "points": points}
        )
        _say(f"{point}: {rate:,.0f} run-steps/s, {points[-1]['bytes'] / 2**20:,.0f} MiB")
    for point in wanted[len(points) :]:
        _say(f"no time left for {point}")


# -- judging ---------------------------------------------------------------------------------------------------------


def measure_evaluation(asked: "Arguments", results: Results, clock: Clock) -> None:
    """Untrained policies: halfcheetah's episodes have 1,000 steps all the same, the others' are short."""
    for task in TASKS:
        data = load_dataset(f"replica:{task}-medium", transitions=min(asked.transitions, 20_000))
        for runs in (3 * asked.seeds, 15 * asked.seeds):
            if clock.over():
                _say(f"no time left for {runs} runs on {task}")
                continue
            fleet, spec = _runs([data], runs, 2, 2)
            program = FleetProgram(fleet)
            policies = jax.device_get(program.policies(program.init()))
            actor = FleetActor(program, spec)
            ids = {run.id for run in fleet}
            actor.judge(jax.tree.map(np.zeros_like, policies), 0, ids)  # compiles
            wall, cpu = time.perf_counter(), _cpu_seconds(actor)
            rows = actor.judge(policies, 0, ids)
            wall, cpu = time.perf_counter() - wall, _cpu_seconds(actor) - cpu
            groups = len(actor.pids) or len(rollouts.policy_groups(runs, EPISODES, available_cores()))
            steps = EPISODES * sum(row.value for row in rows if row.name == "evaluation/episode_length")
            figures = {
                "what": "10 episodes of every run, untrained SCORE policies",
                "task": task,
                "runs": runs,
                "cores": available_cores(),
                "groups": groups,
                "processes": len(actor.pids),
                "environment_steps": steps,
                "seconds": wall,
                "cpu_seconds": cpu,
                "environment_steps_per_second": steps / wall,
                "policy_cpu_seconds": _seconds_of_acting(actor, policies, runs) * steps / (runs * EPISODES),
            }
            results.keep("evaluation", figures, f"{task}-{runs}")
            _say(
                f"{task}, {runs} × {EPISODES} episodes: {steps:,.0f} steps in {wall:.2f} s ({cpu:.2f} s of cores), "
                f"{steps / wall:,.0f} steps/s; of it acting {figures['policy_cpu_seconds']:.2f} s; {groups} groups"
            )
            actor.close()


def _cpu_seconds(actor: FleetActor) -> float:
    """Of this process and those that judge for it."""
    ticks = 0
    for pid in actor.pids:
        with contextlib.suppress(FileNotFoundError):  # Linux alone says so of another process
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + (ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0)


def _seconds_of_acting(actor: FleetActor, policies: Any, runs: int) -> float:
    """One action of every episode, on one core."""
    config, treatment = actor._fixed
    width = treatment.observation_mean.shape[-1]
    observations = np.zeros((runs, EPISODES, width), np.float32)
    np.asarray(actor._act(config, treatment, policies, observations))
    began = time.process_time()
    for _ in range(50):
        np.asarray(actor._act(config, treatment, policies, observations))
    return (time.process_time() - began) / 50


# -- training while judging ------------------------------------------------------------------------------------------


class TimedTrainer(FleetTrainer):
    """Notes how long it trains, and how long until the last judgement is stored as well."""

    began, training_seconds, seconds = 0.0, 0.0, 0.0

    def _loop(self, step: int, state: Any, begun: tuple[Piece, ...]) -> None:
        jax.block_until_ready(state)
        self.began = time.perf_counter()
        try:
            super()._loop(step, state, begun)
        finally:
            self.seconds = time.perf_counter() - self.began

    def _drain(self) -> None:
        if not self.training_seconds and self.progress.done >= self.spec.steps:
            self.training_seconds = time.perf_counter() - self.began
        super()._drain()


def _runs(
    datasets: Sequence[Any],
    seeds: int,
    steps: int,
    eval_every: int,
    environment: str | None = None,
    precision: str = "auto",
) -> tuple[list[Run], ExperimentSpec]:
    algorithm = get_algorithm("score")
    spec = ExperimentSpec(
        algorithm="score", datasets=tuple(d.name for d in datasets), seeds=tuple(range(seeds)), settings={},
        steps=steps, eval_every=eval_every, eval_episodes=EPISODES,
        log_every=default_log_every(1_000_000, eval_every, 2) if eval_every > 2 else 2, environment=environment,
        precision=choose_precision(algorithm, precision),
    )  # fmt: skip
    return expand_runs(spec, algorithm, datasets), spec


def _train(number: int, fleet: Sequence[Run], spec: ExperimentSpec, stop_after: float | None = None) -> dict[str, Any]:
    """A real training in a folder of its own; compiled before the clock starts."""
    place = Path(tempfile.mkdtemp(prefix="score-speed-"))
    folder, stop = Folder.create(place / "run", ExperimentRecord(spec, {}, {}, ())), StopRequest()
    writer = MetricsWriter(folder.path)
    timer = threading.Timer(stop_after or 0.0, lambda: setattr(stop, "asked", True))
    try:
        status = StatusRecord()
        trainer = TimedTrainer(number, fleet, spec, folder, writer, status, Console(stderr=True), stop, quiet=True)
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
        done = trainer.progress.done
        judged = sum(row.name == "evaluation/return" for row in folder.metrics())
        times = {"training_seconds": trainer.training_seconds or trainer.seconds, "seconds": trainer.seconds}
        return {"runs": len(fleet), "updates": done, **times, "judged": judged}
    finally:
        timer.cancel()
        writer.close()
        shutil.rmtree(place, ignore_errors=True)


def measure_overlap(asked: "Arguments", results: Results, clock: Clock) -> None:
    datasets = [load_dataset(name, transitions=asked.transitions) for name in asked.datasets]
    measured: dict[str, list[dict[str, Any]]] = {"without": [], "with": []}
    for number in range(asked.rounds):
        longest = max((m["seconds"] for rows in measured.values() for m in rows), default=0.0)
        if number and clock.left() < 2.5 * longest:
            break
        for name, environment in (("without", "none"), ("with", None)):
            fleet, spec = _runs(datasets, asked.seeds, asked.updates, asked.eval_every, environment, asked.precision)
            if len(group_fleets(fleet)) > 1:
                _say("overlap is about one fleet: give data sets of one shape")
                return
            measured[name].append(_train(0, fleet, spec))
            _say(f"{name} evaluation: {measured[name][-1]}")
        pairs = zip(measured["without"], measured["with"], strict=True)
        kept = [without["training_seconds"] / judged["training_seconds"] for without, judged in pairs]
        figures = {
            "what": "FleetTrainer on SCORE, 10 episodes of every run at each evaluation, against no evaluation; "
            "until the last update, the last judgements not counted",
            "datasets": list(asked.datasets),
            "precision": spec.precision,
            "runs": measured["with"][0]["runs"],
            "eval_every": asked.eval_every,
            "updates": asked.updates,
            "share_of_speed_kept": float(np.median(kept)),
            "rounds": measured,
        }
        results.keep("overlap", figures, "+".join(sorted({str(data.environment) for data in datasets})))
        _say(f"kept {figures['share_of_speed_kept']:.1%} of the speed")


def measure_stretch(asked: "Arguments", results: Results, clock: Clock) -> None:
    datasets = [load_dataset(name, transitions=asked.transitions) for name in asked.datasets]
    runs, spec = _runs(datasets, asked.seeds, asked.steps, asked.eval_every, None, asked.precision)
    fleets = group_fleets(runs)
    measured: list[dict[str, Any]] = []
    for number, fleet in enumerate(fleets):
        if clock.over():
            _say(f"no time left for the fleet of {len(fleet)} runs: the figure is of the others alone")
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
            "precision": spec.precision,
            "complete": len(measured) == len(fleets),
            "fleets": measured,
            "minutes_for_all": sum(m["seconds_for_all"] for m in measured) / 60,
        }
        results.keep("stretch", figures)
        _say(
            f"{one['tasks']}, {one['runs']} runs: {one['updates']:,} updates in {one['seconds']:.0f} s, "
            f"{one['run_steps_per_second']:,.0f} run-steps/s, {one['judged']} judgements"
        )
    if measured:
        _say(f"{asked.steps:,} updates of all runs would take {figures['minutes_for_all']:.1f} minutes")


# -- starting --------------------------------------------------------------------------------------------------------


def _process(arguments: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    code = "from score_rl.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _seconds_of_help() -> float:
    began = time.perf_counter()
    if _process(["--help"], {}).wait() != 0:
        raise RuntimeError("score --help failed")
    return time.perf_counter() - began


def _seconds_to_first_update(place: Path, environment: Mapping[str, str]) -> float:
    """From starting the command to the first stored metrics, which come after two updates here."""
    options = (
        "--dataset replica:hopper-medium --transitions 20000 --steps 2 --eval-every 2 --log-every 2 --environment none "
        f"--no-tensorboard --quiet --out {place}"
    )
    began = time.perf_counter()
    process = _process(["train", *options.split()], environment)
    metrics = place / "metrics.csv"
    while not (metrics.exists() and "train/" in metrics.read_text()):
        if process.poll() not in (None, 0):
            raise RuntimeError(f"score train ended with {process.returncode}")
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    process.wait()
    return seconds


def measure_startup(asked: "Arguments", results: Results, clock: Clock) -> None:
    with tempfile.TemporaryDirectory(prefix="score-speed-") as folder:
        place = Path(folder)
        helps = [_seconds_of_help() for _ in range(3)]
        environment = {"SCORE_RL_CACHE": str(place / "cache")}
        if jax.default_backend() != "cpu":
            # This process holds most of the device's memory; the ones it starts must do with the rest.
            environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        # Collects the data; its own compiled programs are forgotten again.
        _seconds_to_first_update(place / "collected", environment)
        shutil.rmtree(place / "cache" / "compiled", ignore_errors=True)
        cold = _seconds_to_first_update(place / "cold", environment)
        warm = [_seconds_to_first_update(place / f"warm-{n}", environment) for n in range(2)]
    figures = {
        "what": "from starting the process; first update of one SCORE run, data already collected",
        "help_seconds": min(helps),
        "first_update_cold_seconds": cold,
        "first_update_warm_seconds": min(warm),
    }
    results.keep("startup", figures)
    _say(f"score --help {min(helps):.2f} s; first update {cold:.1f} s, with a warm cache {min(warm):.1f} s")
