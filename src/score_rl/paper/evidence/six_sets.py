"""Fourteen methods on the six data sets that need no stand-in, by the rules of docs/six-sets.md."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from score_rl.algorithms.registry import get_algorithm
from score_rl.paper.experiments.protocols import METHODS, ordinary
from score_rl.report.published import paper_dataset, printed
from score_rl.report.results import SCORE, RunResult
from score_rl.report.statistics import welch
from score_rl.report.stored_results import SUMMARY

FOLDER, ACCOUNT = "six-sets", "account.csv"
SIX = tuple(f"{task}-{kind}" for kind in ("medium", "random") for task in ("halfcheetah", "hopper", "walker2d"))
ALL = (*METHODS, "bc", "iql", "rebrac", "edac")
UPDATES, SEEDS = 300_000, (0, 1, 2)
FRESH = 100  # episodes of a last policy
LAST_EVALUATIONS = 5
SHARE, FLOOR = 0.8, 10.0  # a run is ruined below this share of its last evaluations, if those reach the floor
CHANCE = 0.05
A_POINT = 1.0  # closer means of the paper's are not asked for their order

Measure = Literal["last", "five"]


@dataclass(frozen=True)
class Cell:
    """The runs of a method on a data set."""

    algorithm: str
    dataset: str
    runs: tuple[RunResult, ...]

    @property
    def sound(self) -> list[RunResult]:
        return [run for run in self.runs if run.status != "diverged"]

    @property
    def diverged(self) -> int:
        return len(self.runs) - len(self.sound)

    @property
    def full(self) -> bool:
        """All seeds have ended, and none diverged."""
        return tuple(run.seed for run in self.sound) == SEEDS

    def values(self, measure: Measure) -> list[float]:
        """By seed: the last policy in fresh episodes, or the mean of the last evaluations."""
        return [run.fresh_scores[FRESH] if measure == "last" else of_last_evaluations(run) for run in self.sound]

    @property
    def ruined(self) -> "Ruined":
        pairs = list(zip(self.values("last"), self.values("five"), strict=True))
        asked = [(last, five) for last, five in pairs if five >= FLOOR]
        return Ruined(sum(last < SHARE * five for last, five in asked) + self.diverged, len(asked) + self.diverged)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(run.folder / SUMMARY for run in self.runs))


class Ruined(NamedTuple):
    """How many runs ended ruined, of those whose scores let one say so."""

    number: int
    of: int


@dataclass(frozen=True)
class SixSets:
    """All cells that are stored, and what they cost."""

    cells: Mapping[tuple[str, str], Cell] = field(default_factory=dict)
    account: Sequence[Mapping[str, str]] = ()

    def of(self, algorithm: str) -> list[Cell]:
        return [cell for dataset in SIX if (cell := self.cells.get((algorithm, dataset))) is not None]

    def by_seed(self, algorithm: str, measure: Measure) -> list[float] | None:
        """The mean over the six data sets for each seed; None unless all cells are full."""
        cells = self.of(algorithm)
        if len(cells) < len(SIX) or not all(cell.full for cell in cells):
            return None
        return [float(mean) for mean in np.mean([cell.values(measure) for cell in cells], axis=0)]


def of_last_evaluations(run: RunResult) -> float:
    return float(np.mean(run.curves[SCORE].values[-LAST_EVALUATIONS:]))


def read_six_sets(folder: Path, runs: Iterable[RunResult]) -> SixSets:
    """From what is stored below a folder: runs with their authors' settings in the protocol's length."""
    found: dict[tuple[str, str], list[RunResult]] = {}
    for run in runs:
        name = paper_dataset(run.dataset)
        if folder not in run.folder.parents or name not in SIX or run.seed not in SEEDS or not ordinary(run):
            continue
        ended = run.status == "diverged" or (run.finished and FRESH in run.fresh_scores)
        if ended and run.steps * get_algorithm(run.algorithm).counts_as == UPDATES:
            found.setdefault((run.algorithm, name), []).append(run)
    cells = {key: Cell(*key, tuple(sorted(mine, key=lambda run: run.seed))) for key, mine in found.items()}
    account = folder / ACCOUNT
    lines = list(csv.DictReader(account.read_text().splitlines())) if account.exists() else []
    return SixSets(cells, lines)


# -- order -----------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two methods, the first of which has the higher mean in the paper, and what is found here."""

    higher: str
    lower: str
    found: Literal["agrees", "contradicts", "undecided"]


def paper_mean(algorithm: str) -> float:
    """Over the same six cells of the paper's table."""
    cells = [printed(algorithm, dataset) for dataset in SIX]
    return float(np.mean([cell.mean for cell in cells if cell is not None]))


def separated(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether Welch's test tells the two means apart."""
    chance = welch(one, float(np.mean(other)), float(np.std(other)), len(other))
    return float(np.mean(one)) != float(np.mean(other)) if chance is None else chance < CHANCE


def pairs(six: SixSets, measure: Measure) -> list[Pair]:
    """All pairs of the paper's methods that have their means here, and are a point or more apart in the paper."""
    means = {a: mine for a in METHODS if (mine := six.by_seed(a, measure)) is not None}
    found = []
    for one, other in combinations(means, 2):
        higher, lower = sorted((one, other), key=paper_mean, reverse=True)
        if paper_mean(higher) - paper_mean(lower) < A_POINT:
            continue
        if not separated(means[higher], means[lower]):
            found.append(Pair(higher, lower, "undecided"))
        else:
            same = np.mean(means[higher]) > np.mean(means[lower])
            found.append(Pair(higher, lower, "agrees" if same else "contradicts"))
    return found


def ahead_of_score(six: SixSets, measure: Measure) -> list[str]:
    """Methods of the paper with a higher mean than SCORE's that the test tells apart from it."""
    ours = six.by_seed("score", measure)
    if ours is None:
        return []
    means = {a: mine for a in METHODS if a != "score" and (mine := six.by_seed(a, measure)) is not None}
    return [a for a, mine in means.items() if np.mean(mine) > np.mean(ours) and separated(mine, ours)]
