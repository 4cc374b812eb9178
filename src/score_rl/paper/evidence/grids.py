"""Stored grids of SCORE's settings: the scores of every run, and what they choose for each data set."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

from score_rl.paper.experiments.choice import USUAL, Setting, best, ending
from score_rl.report.results import Curve

TABLE = "scores.csv"
COMMON = USUAL


def curves(table: Path) -> dict[tuple[str, Setting, int], Curve]:
    """The scores of every run, by data set, setting and seed."""
    found: dict[tuple[str, Setting, int], list[tuple[int, float]]] = defaultdict(list)
    with table.open() as file:
        for row in csv.DictReader(file):
            run = (row["dataset"], Setting(float(row["beta"]), float(row["bc_decay"])), int(row["seed"]))
            found[run].append((int(row["step"]), float(row["score"])))
    return {run: Curve(*map(np.array, zip(*sorted(points), strict=True))) for run, points in found.items()}


def ended(table: Path) -> dict[tuple[str, Setting, int], Curve]:
    """The runs of settings of which every run ended. A run that diverged is not judged any more, so it ends early."""
    found = curves(table)
    end = {dataset: max(c.steps[-1] for (d, _, _), c in found.items() if d == dataset) for dataset, _, _ in found}
    early = {(dataset, setting) for (dataset, setting, _), c in found.items() if c.steps[-1] < end[dataset]}
    return {run: curve for run, curve in found.items() if run[:2] not in early}


def judged(table: Path) -> dict[str, dict[Setting, float]]:
    """For each data set and setting the mean over seeds and the end of training; none where a run did not end."""
    seen: dict[str, dict[Setting, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (dataset, setting, _), curve in ended(table).items():
        seen[dataset][setting].append(ending(curve))
    return {d: {setting: float(np.mean(mine)) for setting, mine in settings.items()} for d, settings in seen.items()}


def choices(table: Path) -> dict[str, Setting]:
    found = {dataset: best(settings) for dataset, settings in judged(table).items()}
    return {dataset: setting for dataset, setting in found.items() if setting is not None}
