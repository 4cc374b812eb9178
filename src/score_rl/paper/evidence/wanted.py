"""Which results the comparison is to hold, which of them are missing, and the jobs that would make them.

The table of what is wanted is a file, `benchmarks/training/wanted.csv`, with a line for each result:

    what,algorithm,dataset,updates,seeds
    scores,td3-bc,hopper-medium,1000000,5     last policies of so many seeds, each judged in 100 fresh episodes too
    grid,score,hopper-medium,1000000,5        settings that other seeds choose from SCORE's grid, then the same
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.errors import InputError, unknown_name
from score_rl.paper.evidence.records import Evidence, Result, WantedResult
from score_rl.report.published import paper_datasets

WANTED = Path("benchmarks", "training", "wanted.csv")  # in a checkout
KINDS = ("scores", "grid")


@dataclass(frozen=True)
class Job:
    """Wanted results of one method that lack the same; of equal length, so that they train as one fleet or few."""

    algorithm: str
    updates: int
    seeds: int
    datasets: tuple[str, ...]
    lacks: str

    def __str__(self) -> str:
        steps = self.updates // get_algorithm(self.algorithm).counts_as
        data = "table" if self.datasets == tuple(paper_datasets()) else "+".join(self.datasets)
        return f"{self.algorithm}:{steps}:{self.seeds}:{data}"


def read_wanted(path: Path) -> tuple[WantedResult, ...]:
    """The table of wanted results; refused where a line names what does not exist."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 2):
        if row.get("what") not in KINDS:
            raise InputError(f"{path}, line {number}: what is {row.get('what')!r}; it must be {' or '.join(KINDS)}.")
        get_algorithm(row["algorithm"])
        if row["dataset"] not in paper_datasets():
            raise unknown_name("data set", row["dataset"], paper_datasets())
    return tuple(
        WantedResult(row["what"], row["algorithm"], row["dataset"], int(row["updates"]), int(row["seeds"]))
        for row in rows
    )


def missing(evidence: Evidence) -> list[Job]:
    """A job for each set of wanted scores that lack the same, in the order of the table."""
    jobs: dict[tuple[str, int, int, str], list[str]] = {}
    for wanted in evidence.wanted:
        lack = lacks(evidence.results.get((wanted.algorithm, wanted.dataset)), wanted)
        if wanted.what == "scores" and lack is not None:
            jobs.setdefault((wanted.algorithm, wanted.updates, wanted.seeds, lack), []).append(wanted.dataset)
    return [Job(a, updates, seeds, tuple(mine), lack) for (a, updates, seeds, lack), mine in jobs.items()]


def lacks(result: Result | None, wanted: WantedResult) -> str | None:
    """What is not stored of a wanted result; None if nothing is missing."""
    if result is None:
        return "not run"
    if result.protocol.updates < wanted.updates or result.protocol.seeds < wanted.seeds:
        return f"{result.protocol} so far"
    return "the policies in 100 episodes" if result.fresh is None else None


def without_grid(evidence: Evidence) -> list[str]:
    """Data sets for which a choice from SCORE's grid is wanted and has not been reported in full."""
    return [
        wanted.dataset for wanted in evidence.wanted if wanted.what == "grid" and wanted.dataset not in evidence.chosen
    ]


def seconds(job: Job, speeds: Mapping[Path, Mapping[str, Any]]) -> dict[str, float]:
    """How long a job's updates take at most, on each GPU that has timed the method in its usual size.

    The speed is that of up to five runs; larger fleets are faster. Data and judging are not counted.
    """
    found = {}
    if any("critics" in preset(job.algorithm, dataset) for dataset in job.datasets):
        return {}
    runs = job.seeds * len(job.datasets)
    for parts in speeds.values():
        timed = parts.get("methods", {}).get(job.algorithm)
        if timed is None or timed["provenance"]["device"]["platform"] == "cpu":
            continue
        one, five = (timed["rates"].get(number, {}).get("run_steps_per_second") for number in ("1", "5"))
        if one is None:
            continue
        rate = one if five is None else one + (five - one) * (min(runs, 5) - 1) / 4
        steps = job.updates // get_algorithm(job.algorithm).counts_as
        found[str(timed["provenance"]["device"]["kind"])] = runs * steps / rate
    return found
