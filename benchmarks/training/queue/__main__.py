"""Work off what is wanted and not stored yet, the most valuable first, several fleets side by side on the GPU.

    python -m benchmarks.training.queue --minutes 28
    python -m benchmarks.training.queue --dry-run

Data are collected where they are missing. Results are stored after each job. Called again, on this machine or with WORK
copied to another, it goes on where it stopped. `wanted.csv` beside this file says what is wanted.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.console import Console

from score_rl.disk import cache_folder
from score_rl.envs import available_cores
from score_rl.errors import InputError

from .account import ACCOUNT
from .conditions import MEASURED, RESULTS, WORK, Conditions
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
        return Room(60 * self.minutes, self.slots, self.memory_share, tuple(sorted(cores)), self.only_what_ends)


def planned(asked: Arguments) -> tuple[list[Planned], Speeds]:
    """All jobs, in their order."""
    speeds = measured_speeds(MEASURED, asked.results / ACCOUNT)
    wanted = missing(read_table(asked.table), stored_runs(asked.results), asked.fresh_episodes)
    begun = begun_jobs(asked.conditions.jobs)
    jobs = form_jobs(wanted, speeds.seconds, LONGEST * 60 * asked.minutes, begun)
    return ordered(jobs, begun, speeds), speeds


def main(asked: Arguments) -> int:
    """The exit code: 1 where a job failed."""
    console = Console()
    plan, speeds = planned(asked)
    if asked.dry_run:
        show(plan, speeds, asked.minutes, console)
        return 0
    if not plan:
        console.print("Nothing is missing.")
        return 0
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
