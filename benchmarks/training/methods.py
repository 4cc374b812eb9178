"""Train methods on the paper's data sets, and store their results.

    python -m benchmarks.training.methods --sources FOLDER --out FOLDER \\
      --jobs td3-bc:1000000:5:medium iql:200000:2:hopper-medium
    python -m benchmarks.training.methods --sources FOLDER --out FOLDER --jobs score:1000000:5:table

A job is METHOD:UPDATES:SEEDS:DATA, as `jobs.py` says. Its results are stored as soon as it ends, and again when its
last policies have been judged in fresh episodes. Data of later jobs are collected while the first one trains. An
interrupted job goes on when this is called again; until then its results are stored as those of a shorter run.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

import score_rl
from score_rl.errors import Stopped
from score_rl.report.published import printed

from .jobs import DataFolder, Job
from .keep import draw, keep, summarise, trained


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


def paper_cells(method: str, datasets: Iterable[str]) -> dict[str, float]:
    """The paper's mean for each of them, where it has one."""
    found = {name: printed(method, name) for name in datasets}
    return {name: cell.mean for name, cell in found.items() if cell is not None}


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
            try:
                experiment, seconds = run(asked, job)
            except Stopped as stopped:
                keep_what_was_reached(asked, job)
                raise SystemExit(f"{job.text}: {stopped}") from None
            for episodes in dict.fromkeys((0, asked.episodes)):
                summary = kept(asked, job, experiment, episodes, seconds)
            shown = {k: (v["mean"], v["std"]) for k, v in summary["results"].items()}
            print(f"{job.text}: {json.dumps(shown)} in {seconds:.0f} s", flush=True)


def keep_what_was_reached(asked: Arguments, job: Job) -> None:
    """Until it goes on, an interrupted job is a shorter one: all runs up to where each of them was judged."""
    experiment = score_rl.load(asked.out / job.folder)
    metrics = experiment.metrics
    running = [run for run in experiment if run.status.state != "diverged"]
    judged = [metrics.of(run.id).curve("evaluation/score")[0] for run in running]
    reached = min((int(steps[-1]) if len(steps) else 0 for steps in judged), default=0)
    if reached:
        kept(asked, job, experiment, 0, None, reached)


def kept(
    asked: Arguments,
    job: Job,
    experiment: score_rl.Experiment,
    episodes: int,
    seconds: float | None,
    reached: int | None = None,
) -> dict[str, Any]:
    method = experiment[0].algorithm
    cells = paper_cells(method.name, experiment.record.datasets)
    summary = summarise(experiment, episodes, reached) | {
        "what": f"{method.title}, last policy, normalised score in percent",
        "paper": cells,
        "seconds_of_the_last_call": seconds,
    }
    folder = asked.out / "results" / job.folder
    names = ("evaluation/score", *(f"train/{name}" for name in method.headline))
    keep(experiment, summary, folder, names, reached)
    draw(folder, method.title, tuple((n, n.split("/")[1]) for n in names), cells)
    return summary


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
