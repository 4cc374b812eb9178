"""Work off what is wanted and not stored yet, the most valuable first, several fleets side by side on the GPU.

    python -m benchmarks.training.queue --minutes 28
    python -m benchmarks.training.queue --dry-run

Data are collected where they are missing. Results are stored after each job. Called again, on this machine or with WORK
copied to another, it goes on where it stopped. What this checkout's results hold is not trained again, wherever new
results go. `wanted.csv` beside this file says what is wanted.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.console import Console

from benchmarks.training.jobs import DataFolder
from benchmarks.training.sharing import end_when_told, refuse_nameless_code
from score_rl.disk import cache_folder
from score_rl.envs import available_cores
from score_rl.errors import InputError

from .account import ACCOUNT
from .conditions import MEASURED, RESULTS, WORK, Conditions
from .data import file_of
from .fleets import begun_jobs, form_jobs
from .packing import Packing, Room
from .plan import Planned, ordered, show
from .speeds import Speeds, measured_speeds
from .wanted import TABLE, missing, read_table, stored_runs

LONGEST = 0.35  # a job is estimated at no more than this share of the time


def _sources() -> Path:
    chosen = os.environ.get("SCORE_RL_D4RL_SAMPLES")
    return Path(chosen) if chosen else cache_folder() / "d4rl"


@dataclass(frozen=True)
class Arguments:
    minutes: float = 28.0
    """How long to work. All is stored and stopped within that time."""
    dry_run: bool = False
    """Show what would be trained, in which order, and train nothing."""
    sources: Path = field(default_factory=_sources)
    """Where halfcheetah_medium-v2.hdf5, hopper_medium-v2.hdf5 and walker2d_medium-v2.hdf5 are, whole or as excerpts."""
    work: Path = WORK
    """Unfinished jobs, data and logs."""
    results: Path = RESULTS
    """Where results are stored, a folder for each job."""
    table: Path = TABLE
    """What is wanted."""
    slots: int = 8
    """Jobs side by side."""
    memory_share: float = 0.3
    """Of the GPU's memory, for each job at most."""
    only_what_ends: bool = False
    """Begin no job that will probably be interrupted: for machines from which no checkpoint can be taken along."""
    beside: Path | None = None
    """A file that says how many other trainings use the GPU, for the account: OUT/trainings of
    benchmarks.training.ogbench."""
    transitions: int | None = None
    """Rows of each data set; D4RL's number unless given."""
    evaluate_every: int = 25_000
    """Updates between evaluations."""
    evaluation_episodes: int = 10
    fresh_episodes: int = 100
    """Episodes that last policies are judged in at the end."""

    @property
    def conditions(self) -> Conditions:
        return Conditions(
            self.sources, self.work, self.results, self.transitions,
            self.evaluate_every, self.evaluation_episodes, self.fresh_episodes,
        )  # fmt: skip

    @property
    def room(self) -> Room:
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(available_cores())
        return Room(
            60 * self.minutes, self.slots, self.memory_share, tuple(sorted(cores)), self.only_what_ends, self.beside
        )


def planned(asked: Arguments) -> tuple[list[Planned], Speeds]:
    """All jobs, in their order."""
    folders = list(dict.fromkeys((asked.results.resolve(), RESULTS)))
    speeds = measured_speeds(MEASURED, [folder / ACCOUNT for folder in folders])
    stored = [run for folder in folders for run in stored_runs(folder)]
    wanted = missing(read_table(asked.table), stored, asked.fresh_episodes)
    begun = [job for job in begun_jobs(asked.conditions.jobs) if any(job.holds(run) for run in wanted)]
    jobs = form_jobs(wanted, speeds.seconds, LONGEST * 60 * asked.minutes, begun)
    return ordered(jobs, begun, speeds), speeds


def refuse_missing_sources(data: DataFolder, names: Iterable[str]) -> None:
    """Half of the six sets are recorded with policies in D4RL's files: say so before a GPU waits for them."""
    wanted = [name for name in sorted(names) if name.endswith("-medium") and not file_of(data, name).exists()]
    absent = [path.name for name in wanted if not (path := data.recorded(name)).exists()]
    if absent:
        raise InputError(
            f"{data.sources} lacks {', '.join(absent)}, whose policies record the medium sets: name the folder "
            "that has them with --sources."
        )


def refuse_to_mix(asked: Arguments) -> None:
    """The tables of this checkout are of whole data sets."""
    if asked.transitions is not None and asked.results.resolve() == RESULTS:
        raise InputError(
            "trials on fewer rows must not lie among the results of this checkout: name a folder with --results."
        )


def main(asked: Arguments) -> int:
    """The exit code: 1 where a job failed."""
    refuse_to_mix(asked)
    console = Console()
    plan, speeds = planned(asked)
    if asked.dry_run:
        show(plan, speeds, asked.minutes, console)
        return 0
    if not plan:
        console.print("Nothing is missing.")
        return 0
    refuse_nameless_code()
    refuse_missing_sources(asked.conditions.data, {name for each in plan for name in each.job.datasets})
    end_when_told()
    asked.conditions.write()
    packing = Packing(plan, asked.conditions, asked.room, console)
    packing.work()
    console.print(f"{len(packing.finished)} jobs finished, {len(packing.failed)} failed.")
    return int(bool(packing.failed))


if __name__ == "__main__":
    try:
        sys.exit(main(tyro.cli(Arguments, description=__doc__)))
    except InputError as mistake:
        sys.exit(str(mistake))
