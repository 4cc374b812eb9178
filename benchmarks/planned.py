"""What the comparison is to hold in the end, and what of it is still to be trained: as jobs for methods.py.

The paper has ten methods on fifteen data sets; this is the part of it that one GPU is asked for first, and the methods
that the paper does not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measured import Result, Stored

from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.report.paper import paper_datasets


@dataclass(frozen=True)
class Cells:
    """A method on some data sets, at least so many updates and seeds, last policies judged in 100 episodes."""

    algorithm: str
    updates: int
    seeds: int
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Job(Cells):
    """Cells that lack the same."""

    lacks: str

    def __str__(self) -> str:
        steps = self.updates // get_algorithm(self.algorithm).counts_as
        data = "table" if self.datasets == tuple(paper_datasets()) else "+".join(self.datasets)
        return f"{self.algorithm}:{steps}:{self.seeds}:{data}"


def _ending(*ends: str) -> tuple[str, ...]:
    return tuple(name for name in paper_datasets() if name.endswith(ends))


PLANNED = (
    Cells("score", 1_000_000, 5, tuple(paper_datasets())),
    Cells("bc", 1_000_000, 5, tuple(paper_datasets())),
    Cells("td3-bc", 1_000_000, 5, tuple(paper_datasets())),
    Cells("cql", 1_000_000, 3, _ending("-medium", "-medium-replay")),
    Cells("pbrl-prior", 1_000_000, 2, ("hopper-medium",)),
    Cells("pbrl-prior", 300_000, 2, ("hopper-medium-replay", "walker2d-medium")),
    *(
        Cells(name, 200_000, 2, ("hopper-medium",))
        for name in ("bcq", "bear", "uwac", "mopo", "morel", "pbrl", "iql", "sac-n", "edac", "rebrac")
    ),
)


def missing(stored: Stored) -> list[Job]:
    """One job for what lacks the same of a method; of equal length, so that it trains as one fleet or few."""
    jobs: dict[tuple[str, int, int, str], list[str]] = {}
    for cells in PLANNED:
        for dataset in cells.datasets:
            lack = lacks(stored.results.get((cells.algorithm, dataset)), cells)
            if lack is not None:
                jobs.setdefault((cells.algorithm, cells.updates, cells.seeds, lack), []).append(dataset)
    return [Job(a, updates, seeds, tuple(mine), lack) for (a, updates, seeds, lack), mine in jobs.items()]


def lacks(result: Result | None, cells: Cells) -> str | None:
    if result is None:
        return "not run"
    if result.protocol.updates < cells.updates or result.protocol.seeds < cells.seeds:
        return f"{result.protocol} so far"
    return "the policies in 100 episodes" if result.fresh is None else None


def without_grid(stored: Stored) -> list[str]:
    """Data sets for which no setting of SCORE has been chosen and reported in full."""
    return [dataset for dataset in paper_datasets() if dataset not in stored.chosen]


def seconds(job: Job, speeds: Mapping[Path, Mapping[str, Any]]) -> dict[str, float]:
    """How long its updates take at most, on each GPU that has timed the method in its usual size: at the speed of five
    runs, and larger fleets are faster. Data and judging are not counted."""
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
