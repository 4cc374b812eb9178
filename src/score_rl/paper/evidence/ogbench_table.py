"""The table of docs/ogbench.md: success on five tasks of each environment, beside what the FQL paper prints.

A cell is the mean over an environment's five tasks and over the last three evaluations, ± the deviation over seeds. In
the field's protocol these are the evaluations at 800,000, 900,000 and 1 M updates.
"""

import csv
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from score_rl.paper.evidence.cells import NOTHING, link, spaced, spread, table
from score_rl.paper.evidence.records import Evidence
from score_rl.report.published import Printed
from score_rl.report.results import SCORE, RunResult, algorithm_title
from score_rl.report.stored_results import SUMMARY, read_stored

RESULTS = Path("benchmarks", "results")
ENVIRONMENTS = ("cube-single", "cube-double", "scene", "puzzle-3x3", "puzzle-4x4")
TASKS = 5
LAST = 3  # evaluations
CHOSEN = "score-chosen"  # SCORE with settings chosen on the default task, with a penalty and without
FOLDERS = {"bc": "BC", "iql": "IQL", "rebrac": "ReBRAC", "fql": "FQL", "td3-bc": "TD3-BC", "score": "SCORE"}
LINES = (*FOLDERS.values(), "SCORE, chosen with β > 0", "SCORE, chosen with β = 0")


class Cell(NamedTuple):
    """A method on the tasks of an environment."""

    successes: Sequence[float]  # one for each seed that finished all tasks
    updates: int
    file: Path


def ogbench(evidence: Evidence, base: Path) -> str:
    """A line for each method, ours and the paper's side by side; what is not measured yet is a dash."""
    cells, printed = measured(evidence.checkout), published()
    headings = ["method", *(f"{environment}{who}" for environment in ENVIRONMENTS for who in ("", ", FQL paper"))]
    rows = []
    for line in LINES:
        row = [line]
        for environment in ENVIRONMENTS:
            cell, theirs = cells.get((environment, line)), printed.get((environment, line))
            row.append(NOTHING if cell is None else in_words(cell, base))
            row.append(NOTHING if theirs is None else f"{theirs.mean:g} ± {theirs.std:g}")
        rows.append(row)
    said = "" if cells else "\n\nOurs is not measured yet."
    return table(headings, rows, range(1, len(headings))) + said


def in_words(cell: Cell, base: Path) -> str:
    """The mean over seeds, with a link and with how long it trained."""
    length = spaced(length_in_words(cell.updates))
    return f"{link(spread(cell.successes), [cell.file], base)} ({length} × {len(cell.successes)})"


def measured(checkout: Path) -> dict[tuple[str, str], Cell]:
    """What is stored, by environment and line."""
    found = {}
    for environment in ENVIRONMENTS:
        for name in (*FOLDERS, CHOSEN):
            folder = checkout / RESULTS / f"ogbench-{environment}-{name}"
            if not (folder / SUMMARY).exists():
                continue
            for line, runs in by_line(name, read_stored(folder)).items():
                successes = by_seed(runs)
                if successes:
                    found[environment, line] = Cell(successes, runs[0].steps, folder / SUMMARY)
    return found


def by_line(name: str, runs: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """The runs of a folder, by the line of the table that they belong to."""
    lines: dict[str, list[RunResult]] = {}
    for run in runs:
        sign = ">" if float(run.config.get("beta", 0)) > 0 else "="
        lines.setdefault(FOLDERS.get(name, f"SCORE, chosen with β {sign} 0"), []).append(run)
    return lines


def by_seed(runs: Sequence[RunResult]) -> list[float]:
    """For each seed the mean success over all tasks; seeds that did not finish all of them are left out."""
    late: dict[int, dict[str, float]] = {}
    for run in runs:
        success = run.late(SCORE, LAST)
        if run.finished and success is not None:
            late.setdefault(run.seed, {})[run.dataset] = success
    return [float(np.mean(list(tasks.values()))) for tasks in late.values() if len(tasks) == TASKS]


def trials(evidence: Evidence, base: Path) -> str:
    """A line for each method and data set of short trials, which are in no table of scores."""
    rows = []
    for file in sorted((evidence.checkout / RESULTS).glob(f"ogbench-*-trial/{SUMMARY}")):
        cells: dict[tuple[str, str], list[RunResult]] = {}
        for run in read_stored(file.parent):
            if run.finished and run.late(SCORE, LAST) is not None:
                cells.setdefault((run.dataset, run.algorithm), []).append(run)
        rows += [_trial_row(dataset, mine, file, base) for (dataset, _), mine in cells.items()]
    headings = ["data set", "rows", "method", "hidden layers", "updates × seeds", "on", "success in percent"]
    return table(headings, rows, (1, 6)) if rows else "None is stored."


def _trial_row(dataset: str, runs: Sequence[RunResult], file: Path, base: Path) -> list[str]:
    first, device = runs[0], runs[0].provenance.get("device", {})
    number = first.provenance.get("cores")
    cores = f"{number} CPU core{'' if number == 1 else 's'}"
    on = cores if device.get("platform") == "cpu" else str(device.get("kind"))
    success = spread([late for run in runs if (late := run.late(SCORE, LAST)) is not None])
    return [
        dataset.removeprefix("ogbench:"), f"{first.data['rows']:,}", algorithm_title(first.algorithm),
        " × ".join(map(str, first.config["hidden"])), f"{spaced(length_in_words(first.steps))} × {len(runs)}", on,
        link(success, [file], base),
    ]  # fmt: skip


def length_in_words(updates: int) -> str:
    return f"{updates / 1e6:g}M" if updates >= 1_000_000 else f"{updates / 1e3:g}k"


def published() -> Mapping[tuple[str, str], Printed]:
    """Averages over five tasks as the FQL paper prints them (table 2; 1 M updates, 8 seeds), on the published files."""
    text = (resources.files("score_rl.report") / "published_ogbench.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(row["environment"], row["method"]): Printed(float(row["mean"]), float(row["std"])) for row in rows}
