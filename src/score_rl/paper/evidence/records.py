"""What tables and claims are made of: results, choices of a grid, endings of trainings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from score_rl.paper.evidence.six_sets import SixSets
from score_rl.paper.experiments.protocols import Protocol
from score_rl.report.published import PAPER_STEPS, paper_datasets
from score_rl.report.results import Curve

COLLAPSE = 0.5  # a run has collapsed if its last evaluations are below this share of its best one


@dataclass(frozen=True)
class Result:
    """What a method reached on one of the paper's data sets: the last policies of its seeds."""

    algorithm: str
    dataset: str  # by the paper's name
    data: str  # what the data are
    rows: int | None
    protocol: Protocol
    scores: Sequence[float]  # one for each seed
    fresh: Sequence[float] | None = None  # the same policies in 100 fresh episodes
    late: Sequence[float] = ()  # means of each seed's last six evaluations
    files: tuple[Path, ...] = ()
    precision: str = "float32"
    unusual: str = ""  # settings that are not its authors'
    curves: tuple[Curve, ...] = ()  # the score along training, one for each seed
    behaviour: float | None = None  # what the policy that recorded the data scores


@dataclass(frozen=True)
class Choice:
    """What SCORE's grid chose for a data set, and what that setting reached on the reported seeds."""

    dataset: str  # by the paper's name
    beta: float
    bc_decay: float
    seeds: tuple[int, ...]  # that chose
    chosen: float  # the mean score by which it was chosen
    common: float | None  # the same mean of the common setting; None if one of its runs diverged
    file: Path
    result: Result | None = None  # on the reported seeds
    means: Mapping[Any, float] = field(default_factory=dict)  # of each (β, γ_bc), as `chosen`


class Ending(NamedTuple):
    """How a training of SCORE in the paper's length ended, and how high it had been."""

    dataset: str  # by the paper's name
    beta: float
    bc_decay: float
    best: float  # evaluation
    last: float  # mean of the last evaluations
    file: Path

    @property
    def collapsed(self) -> bool:
        return self.last < COLLAPSE * self.best


class WantedResult(NamedTuple):
    """A line of the table of what the comparison is to hold."""

    what: str  # scores or grid
    algorithm: str
    dataset: str  # by the paper's name
    updates: int
    seeds: int


@dataclass(frozen=True)
class Evidence:
    """Everything that tables and claims are made of."""

    results: Mapping[tuple[str, str], Result]  # (algorithm, data set)
    others: Sequence[Result] = ()  # of protocols that are further from the paper's
    experiments: Mapping[str, tuple[Path, Mapping[str, Any]]] = field(default_factory=dict)  # result.json by name
    speeds: Mapping[Path, Mapping[str, Any]] = field(default_factory=dict)  # files of benchmarks/results/speed
    choices: Sequence[Choice] = ()  # of SCORE's grids
    variants: Sequence[Result] = ()  # with settings that are not the authors', and in no experiment
    endings: Sequence[Ending] = ()  # of every training of SCORE in the paper's length
    wanted: Sequence[WantedResult] = ()  # what the comparison is to hold
    six: SixSets = field(default_factory=SixSets)  # fourteen methods on the data sets that need no stand-in
    checkout: Path = Path()  # where the documents and the figures lie

    def in_full(self, algorithm: str) -> dict[str, Result]:
        """Its data sets with the paper's number of updates and at least two seeds, in the paper's order."""
        mine = {dataset: self.results.get((algorithm, dataset)) for dataset in paper_datasets()}
        return {
            dataset: result
            for dataset, result in mine.items()
            if result is not None and result.protocol.updates >= PAPER_STEPS and result.protocol.seeds > 1
        }

    @property
    def chosen(self) -> dict[str, Result]:
        """SCORE on the data sets for which a grid chose a setting that was then reported in full."""
        found = {choice.dataset: choice.result for choice in self.choices}
        return {d: result for d, result in found.items() if result is not None and not result.protocol.shorter}

    def with_choices(self) -> dict[str, Result]:
        """SCORE with the chosen setting where there is one, else with the common one; empty if nothing was chosen."""
        common = self.in_full("score")
        return {d: self.chosen.get(d, result) for d, result in common.items()} if self.chosen else {}


def read_experiments(folder: Path) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """result.json of every stored experiment."""
    return {path.parent.name: (path, json.loads(path.read_text())) for path in sorted(folder.glob("*/result.json"))}
