"""The table of wanted results, and which of its runs are not stored yet.

    weight,method,settings,datasets,updates,seeds
    1,cql,,six,300000,3                               the six data sets of docs/six-sets.md, seeds 0, 1 and 2
    3,score,batch_size=100,hopper-medium,300000,3     with a setting that is not the authors'

`datasets` is six, medium, random, table (all fifteen), or names with + between them. Between settings stand spaces.
Updates of MOReL are a thousand to each of its iterations. A run of weight 3 is worth three of weight 1.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training.jobs import TASKS, dataset_names, setting_values, stored_name
from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.sources.replica import replica_names
from score_rl.errors import InputError, unknown_name
from score_rl.paper.experiments.scales import scheduled
from score_rl.report.results import RunResult
from score_rl.report.stored_results import SUMMARY, read_stored
from score_rl.store.records import config_json

TABLE = Path(__file__).with_name("wanted.csv")
COLUMNS = ("weight", "method", "settings", "datasets", "updates", "seeds")
KINDS = {"six": ("medium", "random"), "medium": ("medium",), "random": ("random",)}


@dataclass(frozen=True)
class Wanted:
    """A line of the table: runs of one method with one choice of settings."""

    method: str
    settings: str  # as the table has them
    datasets: tuple[str, ...]  # by the paper's names
    updates: int
    seeds: int
    weight: float = 1.0

    @property
    def algorithm(self) -> Algorithm:
        return get_algorithm(self.method)

    @property
    def steps(self) -> int:
        """What the method counts: for most, updates."""
        return self.updates // self.algorithm.counts_as

    def given(self) -> dict[str, Any]:
        """What training is given: schedules of this length, and over them the settings of the table."""
        return scheduled(self.algorithm.Config(), self.updates) | setting_values(self.settings.split())

    def config(self, dataset: str) -> Any:
        """All settings on a data set, with those that the authors chose for it."""
        return make_config(self.algorithm, preset(self.method, dataset) | self.given())


@dataclass(frozen=True)
class WantedRun:
    """One run that is wanted."""

    line: Wanted
    dataset: str
    seed: int


def read_table(path: Path) -> list[Wanted]:
    """The lines of a table; refused where one names what does not exist."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and tuple(rows[0]) != COLUMNS:
        raise InputError(f"{path} has the columns {', '.join(rows[0])}; they must be {', '.join(COLUMNS)}.")
    return [_line(path, number, row) for number, row in enumerate(rows, 2)]


def _line(path: Path, number: int, row: Mapping[str, str]) -> Wanted:
    datasets = tuple(_datasets(row["datasets"]))
    for name in datasets:
        if name not in replica_names():
            raise unknown_name("data set", name, replica_names())
    try:
        updates, seeds, weight = int(row["updates"]), int(row["seeds"]), float(row["weight"])
    except ValueError as error:
        raise InputError(f"{path}, line {number}: {error}; updates and seeds are whole numbers.") from None
    if min(updates, seeds, weight) <= 0:
        raise InputError(f"{path}, line {number}: updates, seeds and weight must be more than 0.")
    line = Wanted(row["method"], row["settings"], datasets, updates, seeds, weight)
    if updates % line.algorithm.counts_as:
        each = line.algorithm.counts_as
        raise InputError(f"{path}, line {number}: {updates} updates are no whole number of iterations of {each} each.")
    line.config(datasets[0])  # refuses settings that the method does not have
    return line


def _datasets(text: str) -> list[str]:
    if text in KINDS:
        return [f"{task}-{kind}" for kind in KINDS[text] for task in TASKS]
    return dataset_names(text)


def wanted_runs(lines: Iterable[Wanted]) -> Iterator[WantedRun]:
    """Every run of the table."""
    for line in lines:
        for dataset in line.datasets:
            yield from (WantedRun(line, dataset, seed) for seed in range(line.seeds))


def stored_runs(results: Path) -> list[RunResult]:
    """What the queue has stored: a folder for each job. Jobs that were interrupted lie one level deeper."""
    return [run for file in sorted(results.glob(f"*/{SUMMARY}")) for run in read_stored(file.parent)]


def missing(lines: Iterable[Wanted], stored: Iterable[RunResult], fresh: int) -> list[WantedRun]:
    """The wanted runs that are not stored with their last policies judged in so many fresh episodes."""
    done: dict[tuple[str, str, int, int], list[RunResult]] = {}
    for run in stored:
        if run.status == "diverged" or (run.finished and fresh in run.fresh_scores) or (run.finished and not fresh):
            done.setdefault((run.algorithm, run.dataset, run.seed, run.steps), []).append(run)
    return [
        run for run in wanted_runs(lines) if not any(_same_settings(run, other) for other in done.get(_key(run), []))
    ]


def _key(run: WantedRun) -> tuple[str, str, int, int]:
    return (run.line.method, stored_name(run.dataset), run.seed, run.line.steps)


def _same_settings(wanted: WantedRun, stored: RunResult) -> bool:
    """Settings that came into being after the run was stored had their defaults in it."""
    mine = config_json(wanted.line.config(wanted.dataset))
    return all(mine[name] == value for name, value in stored.config.items() if name in mine)
