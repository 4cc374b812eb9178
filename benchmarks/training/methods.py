"""Train methods on the paper's data sets, and store their results.

    python -m benchmarks.training.methods --sources FOLDER --out FOLDER \\
      --jobs td3-bc:1000000:5:medium iql:200000:2:hopper-medium
    python -m benchmarks.training.methods --sources FOLDER --out FOLDER --jobs score:1000000:5:table

A job is METHOD:UPDATES:SEEDS:DATA, as `jobs.py` says. Its results are stored as soon as it ends, and again when its
last policies have been judged in fresh episodes. Data of later jobs are collected while the first one trains. An
interrupted job goes on when this is called again; until then its results are stored as those of a shorter run.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

import score_rl
from score_rl.errors import Stopped

from .jobs import DataFolder, Job
from .storing import described, fresh_scores, store, store_what_was_reached, trained


@dataclass(frozen=True)
class Arguments:
    sources: Path
    """Where halfcheetah_medium-v2.hdf5, hopper_medium-v2.hdf5 and walker2d_medium-v2.hdf5 are."""
    out: Path
    """Folder for data and runs; results go to OUT/results/JOB."""
    jobs: tuple[str, ...]
    """METHOD:UPDATES:SEEDS:DATA, DATA being table, medium or names with + between them."""
    transitions: int | None = None
    """Rows of each data set; D4RL's number unless given."""
    evaluations: int = 20
    """How many along each curve."""
    seconds: float = float("inf")
    """Start no job after so long."""
    checkpoint_minutes: float = 1.0
    """Time between checkpoints."""
    episodes: int = 100
    """Fresh ones that the last policies are judged in at the end; 0 leaves that out."""
    collect: bool = False
    """Only collect the data of the jobs."""

    @property
    def data(self) -> DataFolder:
        return DataFolder(self.sources, self.out, self.transitions)


def collect(asked: Arguments) -> None:
    """Have every job's data at hand."""
    asked.data.collect(name for job in asked.jobs for name in Job.parse(job).datasets)


@contextmanager
def collected_ahead(asked: Arguments) -> Iterator[Callable[[], None]]:
    """Collect the first job's data, and then those of the others in another process while the first one trains.

    The function that comes out waits for that process.
    """
    collect(replace(asked, jobs=asked.jobs[:1]))
    if not asked.jobs[1:]:
        yield lambda: None
        return
    command = [sys.executable, "-m", "benchmarks.training.methods"]
    command += ["--sources", str(asked.sources), "--out", str(asked.out), "--collect"]
    command += ["--transitions", str(asked.transitions)] if asked.transitions else []
    process = subprocess.Popen([*command, "--jobs", *asked.jobs[1:]])

    def wait() -> None:
        if process.wait():
            raise SystemExit("the data of the other jobs could not be collected; the messages above say why")

    try:
        yield wait
    finally:
        process.terminate()
        process.wait()


def run(asked: Arguments, job: Job) -> tuple[score_rl.Experiment, float]:
    """The job's experiment, and how long this call took for it."""
    sources = [asked.data.source(name) for name in job.datasets]
    started = time.perf_counter()
    experiment = trained(
        asked.out / job.folder,
        sources,
        steps=job.steps,
        evaluations=asked.evaluations,
        algorithm=job.method,
        config=job.settings,
        seeds=range(job.seeds),
        transitions=asked.transitions,
        checkpoint_minutes=asked.checkpoint_minutes,
    )
    return experiment, time.perf_counter() - started


def main(asked: Arguments) -> None:
    began = time.perf_counter()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.collect:
        collect(asked)
        return
    with collected_ahead(asked) as wait:
        for number, job in enumerate(map(Job.parse, asked.jobs)):
            if time.perf_counter() - began > asked.seconds:
                print(f"no time left for {job.text}", flush=True)
                continue
            if number:
                wait()
            folder = asked.out / "results" / job.folder
            try:
                experiment, seconds = run(asked, job)
            except Stopped as stopped:
                store_what_was_reached(score_rl.load(asked.out / job.folder), folder)
                raise SystemExit(f"{job.text}: {stopped}") from None
            runs = store(experiment, folder)
            if asked.episodes:
                store(experiment, folder, fresh=(asked.episodes, fresh_scores(experiment, asked.episodes)))
            print(f"{job.text}: {described(runs)} in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
