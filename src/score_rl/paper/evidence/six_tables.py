"""The tables of docs/six-sets.md."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from score_rl.algorithms.registry import get_algorithm
from score_rl.paper.evidence.cells import NOTHING, link, spread, table
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.six_sets import ALL, SIX, UPDATES, Cell, Measure, SixSets, paper_mean
from score_rl.paper.evidence.six_verdicts import order, strongest, why_order, why_strongest
from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.published import SEEDS as PAPER_SEEDS
from score_rl.report.published import printed
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import agreement

MEASURES: dict[Measure, str] = {"last": "last policies, 100 episodes", "five": "last five evaluations"}


def overview(evidence: Evidence, base: Path) -> str:
    """A line for each method: its six cells, their mean, and the paper's mean of the same."""
    six = evidence.six
    rows = [_overview_row(six, algorithm, base) for algorithm in ALL]
    headings = ["method", *SIX, "mean of six", "paper's mean"]
    return table(headings, rows, right=range(1, len(headings)))


def _overview_row(six: SixSets, algorithm: str, base: Path) -> list[str]:
    cells = [six.cells.get((algorithm, dataset)) for dataset in SIX]
    means = six.by_seed(algorithm, "last")
    theirs = f"{paper_mean(algorithm):.1f}" if algorithm in METHODS else NOTHING
    shown = [_scores(cell, "last", base) for cell in cells]
    return [algorithm_title(algorithm), *shown, NOTHING if means is None else spread(means), theirs]


def _scores(cell: Cell | None, measure: Measure, base: Path) -> str:
    if cell is None:
        return NOTHING
    text = link(spread(cell.values(measure)), cell.files[:1], base) if cell.sound else NOTHING
    return text + (f" ({cell.diverged} diverged)" if cell.diverged else "")


def every_cell(evidence: Evidence, base: Path) -> str:
    """Each cell beside the paper's."""
    rows = []
    for dataset in SIX:
        for algorithm in ALL:
            cell = evidence.six.cells.get((algorithm, dataset))
            if cell is not None:
                rows.append([dataset, algorithm_title(algorithm), *_beside_paper(cell, base)])
    headings = ["data set", "method", "100 episodes", "last five", "paper", "difference", "overlap"]
    return table(headings, rows, right=(2, 3, 4, 5)) if rows else "Nothing is stored yet."


def _beside_paper(cell: Cell, base: Path) -> list[str]:
    paper = printed(cell.algorithm, cell.dataset)
    shown = [_scores(cell, "last", base), _scores(cell, "five", base)]
    if paper is None or not cell.sound:
        return [*shown, NOTHING if paper is None else str(paper), NOTHING, NOTHING]
    values = cell.values("last")
    return [*shown, str(paper), f"{np.mean(values) - paper.mean:+.1f}", agreement(values, *paper, PAPER_SEEDS)]


def ruined(evidence: Evidence, base: Path) -> str:
    """How often a last policy is worse than the policies before it."""
    rows = []
    for algorithm in ALL:
        counts = [cell.ruined for cell in evidence.six.of(algorithm)]
        number, asked = sum(count.number for count in counts), sum(count.of for count in counts)
        share = f"{100 * number / asked:.0f} %" if asked else NOTHING
        where = [
            link(f"{cell.dataset} {cell.ruined.number} of {cell.ruined.of}", cell.files[:1], base)
            for cell in evidence.six.of(algorithm)
            if cell.ruined.number
        ]
        rows.append([algorithm_title(algorithm), f"{number} of {asked}", share, ", ".join(where) or NOTHING])
    return table(["method", "ruined", "share", "where"], rows, right=(1, 2))


def verdicts(evidence: Evidence, base: Path) -> str:
    rows = []
    for title, judge, why in (
        ("SCORE is strongest on data of low and medium quality", strongest, why_strongest),
        ("The order of the ten methods is the paper's", order, why_order),
    ):
        for measure, by in MEASURES.items():
            word = judge(evidence.six, measure)
            shown = f"**{word}**" if measure == "last" else f"({word})"
            rows.append([title if measure == "last" else "", by, shown, why(evidence.six, measure)])
    return table(["the paper says", "by", "here", "numbers"], rows)


def cost(evidence: Evidence, base: Path) -> str:
    """What each method took of a GPU, and what the 18 runs of the table take at that speed."""
    rows = []
    for algorithm in ALL:
        mine = [
            line
            for line in evidence.six.account
            if line["method"] == algorithm and line["device"] not in ("cpu", "none")
        ]
        seconds = sum(float(line["gpu_seconds"]) for line in mine)
        done = sum((int(line["updates_after"]) - int(line["updates_before"])) * int(line["runs"]) for line in mine)
        cells = [cell for cell in evidence.six.of(algorithm) if cell.full]
        rate = done / seconds if seconds else 0.0
        runs = len(SIX) * 3
        each = get_algorithm(algorithm).counts_as
        unit = "" if each == 1 else f" (iterations × {each:,})"
        rows.append([
            algorithm_title(algorithm), f"{len(cells)} of {len(SIX)}", f"{seconds / 60:.1f}" if mine else NOTHING,
            f"{done / 1e6:.2f} M{unit}" if done else NOTHING, f"{rate:,.0f}" if rate else NOTHING,
            f"{runs * UPDATES / rate / 60:.1f}" if rate else NOTHING,
        ])  # fmt: skip
    headings = ["method", "full cells", "GPU minutes", "updates of all runs", "a second", "minutes for 18 runs"]
    return table(headings, rows, right=range(1, len(headings)))


SIX_TABLES: dict[str, Callable[[Evidence, Path], str]] = {
    "six": overview,
    "six_cells": every_cell,
    "six_ruined": ruined,
    "six_verdicts": verdicts,
    "six_cost": cost,
}
