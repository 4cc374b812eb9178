"""Record OGBench's data, train the methods of docs/ogbench.md on them, and store the results.

    python -m benchmarks.training.ogbench --out runs/ogbench --seconds 560
    python -m benchmarks.training.ogbench --out runs/ogbench --families scene puzzle-3x3 --seeds 3 --steps 300000
    python -m benchmarks.training.ogbench --out runs/field --protocol field

Data are recorded on all cores, one family after the other. A family's jobs begin when its data are there; those of
earlier families first. Each job is a process, and several use the device at once. After `--seconds` what trains is
stopped, and stored as the shorter training it is. Called again, everything goes on where it stands.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import tyro

from benchmarks.training.ogbench_jobs import (
    BASELINES,
    FAMILY_NAMES,
    FIELD,
    Length,
    OGBenchJob,
    baseline_job,
    chosen_job,
    dataset_name,
    grid_job,
    results_folder,
)
from score_rl.data.sources.ogbench import FAMILIES

SECONDS_TO_STOP = 50  # in which a training ends its evaluations and writes its checkpoint
SECONDS_TO_STORE = 10  # what was reached then
CORES_EACH = {"score-grid": 9}  # of a training: its own, and others for the processes that judge
MOST_CORES = 5  # of all others
NICENESS = 19  # of recording while something trains
GRID, CHOSEN = "score-grid", "score-chosen"


@dataclass(frozen=True)
class Arguments:
    out: Path
    """Folder for runs and data; results go to OUT/results/JOB."""
    families: tuple[str, ...] = FAMILY_NAMES
    """In the order in which they are trained."""
    methods: tuple[str, ...] = (*BASELINES, GRID, CHOSEN)
    """Methods of the table; score-chosen begins when score-grid has ended."""
    protocol: Literal["own", "field"] = "own"
    """field: 1 M updates, 8 seeds, 50 episodes every 100,000 updates, whatever the next five say."""
    seeds: int = 2
    """Runs of each method on each task."""
    steps: int = 200_000
    """Updates."""
    grid_steps: int = 100_000
    """Updates of SCORE's grid, which has one seed."""
    evaluations: int = 4
    """Along each curve."""
    episodes: int = 25
    """Of each evaluation."""
    seconds: float = float("inf")
    """Stop everything after so long."""
    at_once: int = 8
    """Trainings that share the device."""
    transitions: int | None = None
    """Rows of each data set; the published number unless given."""
    record_only: bool = False
    """Record the data and train nothing."""
    only: str | None = None
    """Used by the command itself: do one thing, record:FAMILY or train:FAMILY:METHOD."""

    @property
    def length(self) -> Length:
        if self.protocol == "field":
            return FIELD
        return Length(self.steps, self.evaluations, self.episodes, tuple(range(self.seeds)))

    @property
    def grid_length(self) -> Length:
        return Length(self.grid_steps, self.evaluations, self.episodes, (0,))


# -- one thing, in a process of its own ------------------------------------------------------------------------------


def record(asked: Arguments, family: str) -> None:
    from score_rl.data.catalogue import load_dataset

    load_dataset(dataset_name(family, FAMILIES[family].default_task), transitions=asked.transitions)


def job_of(asked: Arguments, family: str, method: str) -> OGBenchJob:
    if method == GRID:
        return grid_job(family, asked.grid_length)
    if method == CHOSEN:
        from score_rl.report.stored_results import read_stored

        return chosen_job(family, asked.length, read_stored(results_folder(asked.out, grid_job(family, asked.length))))
    return baseline_job(family, method, asked.length)


def train(asked: Arguments, job: OGBenchJob) -> bool:
    """Train the job, or go on with it, and store it; whether it came to its end."""
    from benchmarks.training.storing import described, store, trained
    from score_rl.errors import Stopped

    folder, results = asked.out / job.folder, results_folder(asked.out, job)
    try:
        experiment = trained(
            folder,
            job.datasets,
            steps=job.length.steps,
            evaluations=job.length.evaluations,
            eval_episodes=job.length.episodes,
            transitions=asked.transitions,
            checkpoint_minutes=2.0,
            tensorboard=False,
            **job.options,
        )
    except Stopped:
        return False
    print(f"{job.folder}: {described(store(experiment, results, about=job.about))}", flush=True)
    return True


def store_reached(asked: Arguments, family: str, method: str) -> None:
    """Store a stopped training as the shorter one it is, up to where all its runs were judged."""
    import score_rl
    from benchmarks.training.storing import described, store_what_was_reached

    job = job_of(asked, family, method)
    folder = asked.out / job.folder
    if (folder / "experiment.json").exists():
        runs = store_what_was_reached(score_rl.load(folder), results_folder(asked.out, job), about=job.about)
        print(f"{job.folder}, stopped at {runs[0].steps if runs else 0}: {described(runs)}", flush=True)


# -- all of it -------------------------------------------------------------------------------------------------------


@dataclass
class Task:
    """Something to do in a process of its own, and the process when it runs."""

    name: str  # as `--only` takes it
    needs: tuple[str, ...] = ()  # other tasks, which come first
    process: "subprocess.Popen[bytes] | None" = None
    before: bool = False  # whether it ended in an earlier call

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ended(self) -> bool:
        return self.before or (self.process is not None and self.process.poll() == 0)

    @property
    def trains(self) -> bool:
        return self.name.startswith("train:")


def tasks_of(asked: Arguments) -> list[Task]:
    """Everything that is asked for, in order."""
    tasks: list[Task] = []
    for family in asked.families:
        before = tuple(task.name for task in tasks if not task.trains)
        tasks.append(Task(f"record:{family}", before[-1:]))  # all cores record one family at a time
        for method in () if asked.record_only else asked.methods:
            grid = (f"train:{family}:{GRID}",) if method == CHOSEN else ()
            tasks.append(Task(f"train:{family}:{method}", (f"record:{family}", *grid)))
    return tasks


def main(asked: Arguments) -> None:
    if asked.only is not None:
        what, family, *method = asked.only.split(":")
        if what == "record":
            record(asked, family)
        elif not train(asked, job_of(asked, family, method[0])):
            sys.exit(1)
        mark(asked.out, asked.only).touch()
        return
    began = time.monotonic()
    asked.out.mkdir(parents=True, exist_ok=True)
    tasks = tasks_of(asked)
    for task in tasks:
        task.before = mark(asked.out, task.name).exists()
    with ending(tasks):
        while time.monotonic() - began < asked.seconds - SECONDS_TO_STOP - SECONDS_TO_STORE:
            start_what_is_ready(asked, tasks)
            if not any(task.running for task in tasks):
                break
            time.sleep(0.5)
    os.environ["JAX_PLATFORMS"] = "cpu"
    for task in tasks:
        if task.trains and task.process is not None and not task.ended:
            store_reached(asked, *task.name.split(":")[1:])
    failed = [task.name for task in tasks if task.process is not None and not task.ended]
    print(f"{time.monotonic() - began:.0f} s; not ended: {', '.join(failed) or 'nothing that began'}", flush=True)


def mark(out: Path, name: str) -> Path:
    """The file that says that a task has ended."""
    return out / f"{name.replace(':', '-')}.ended"


def start_what_is_ready(asked: Arguments, tasks: Sequence[Task]) -> None:
    ended = {task.name for task in tasks if task.ended}
    for task in tasks:
        training = [other for other in tasks if other.trains and other.running]
        if (
            task.process is None
            and not task.before
            and ended.issuperset(task.needs)
            and (not task.trains or len(training) < asked.at_once)
        ):
            task.process = start(asked, task.name, len(training) if task.trains else None)


def start(asked: Arguments, name: str, place: int | None) -> "subprocess.Popen[bytes]":
    """Start a process for a task. Trainings get cores by their place among those that run; recording gets all."""
    told = replace(asked, out=asked.out.absolute(), only=name)
    command = [sys.executable, "-m", "benchmarks.training.ogbench", *flags_of(told)]
    cores = sorted(os.sched_getaffinity(0))

    def settle() -> None:
        if place is None:
            os.nice(NICENESS)
        else:
            number = CORES_EACH.get(name.split(":")[-1], MOST_CORES)
            os.sched_setaffinity(0, {cores[(2 * place + n) % len(cores)] for n in range(number)})

    with (asked.out / f"{name.replace(':', '-')}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=settle)


def flags_of(asked: Arguments) -> Iterator[str]:
    """The command line that gives these arguments."""
    for name, value in vars(asked).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield flag if value else f"--no-{flag[2:]}"
        elif isinstance(value, tuple):
            yield from (flag, *map(str, value))
        elif value is not None:
            yield from (flag, str(value))


@contextmanager
def ending(tasks: Sequence[Task]) -> Iterator[None]:
    """End what still runs afterwards: trainings write checkpoints."""
    try:
        yield
    finally:
        deadline = time.monotonic() + SECONDS_TO_STOP
        for task in tasks:
            if task.process is not None and task.running:
                task.process.send_signal(signal.SIGTERM)
        for task in tasks:
            if task.process is not None:
                try:
                    task.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    task.process.kill()
                    task.process.wait()


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
