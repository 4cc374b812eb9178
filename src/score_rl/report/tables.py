"""Score tables: methods × data sets, mean ± std over seeds, beside the paper's; as CSV and LaTeX too.

Only runs that finished count. A cell says how many of how many seeds it holds, so that a mean over fewer is seen.
"""

import csv
import dataclasses
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from score_rl.report.grouping import paper_cell
from score_rl.report.published import (
    OVERALL,
    SEEDS,
    Printed,
    data_kind,
    paper_dataset,
    paper_datasets,
    paper_method,
    paper_table,
)
from score_rl.report.results import SCORE, Group, method_label
from score_rl.report.statistics import Estimate, agreement, mean_over_seeds, overlap

Key = TypeVar("Key")
SMALL = 0.5  # below it one decimal shows too little
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "\n": " ",
}  # fmt: skip
COLUMNS = (
    "dataset", "method", "mean", "std", "last_5_mean", "low_95", "high_95", "seeds", "asked", "best",
    "paper_mean", "paper_std", "data", "updates", "difference", "overlap",
)  # fmt: skip


def mean_and_std(mean: float, std: float | None) -> str:
    digits = digits_of(mean, std or 0.0)
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"


def digits_of(*numbers: float) -> int:
    """How many decimals show scores and returns: one, and more of returns from rewards of the order of 0.001."""
    largest = max(map(abs, numbers))
    return 1 if not 0 < largest < SMALL else 2 - math.floor(math.log10(largest))


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a method reached on a data set, or overall."""

    mean: float
    std: float | None  # over seeds, with n below the line as in the paper's tables; one seed has none
    interval: Estimate | None
    seeds: int  # that finished and count
    asked: int  # that were to be trained
    best: bool = False
    data: str = ""  # the data set by its own name, where the row has the paper's
    updates: int | None = None
    late: float | None = None  # the mean of the last evaluations, which is less of a draw than the last policy
    agrees: str = ""  # whether its interval and that of the paper's overlap, where the paper has one

    def __str__(self) -> str:
        return mean_and_std(self.mean, self.std)

    @property
    def whole(self) -> bool:
        return self.seeds == self.asked


@dataclasses.dataclass(frozen=True)
class ScoreTable:
    metric: str
    datasets: Sequence[str]
    methods: Sequence[str]
    cells: dict[tuple[str, str], Cell]  # (data set, method)
    unfinished: dict[tuple[str, str], int]  # cells without a single finished run, and how many were asked for
    overall: dict[str, Cell]  # only methods that finished on every data set
    paper: dict[tuple[str, str], Printed]
    paper_overall: dict[str, Printed]  # only where the table has all fifteen data sets
    called: dict[str, str]  # methods without remarks on how these runs were measured
    labels_of: dict[str, str] = dataclasses.field(default_factory=dict)  # methods with all their settings

    @property
    def labels(self) -> dict[str, str]:
        """The data sets with scores; rows under the paper's names say what their data are."""
        kinds: dict[str, dict[str, None]] = {}
        for dataset in self.datasets:
            for (row, _), cell in self.cells.items():
                if row == dataset:
                    kinds.setdefault(dataset, {})[data_kind(cell.data)] = None
        return {
            dataset: f"{dataset} ({', '.join(mine)})" if paper_dataset(dataset) == dataset else dataset
            for dataset, mine in kinds.items()
        }

    @property
    def has_paper(self) -> bool:
        return bool(self.paper)

    @property
    def has_intervals(self) -> bool:
        """Whether any cell has seeds enough for an interval."""
        return any(cell.interval is not None and cell.interval.has_interval for cell in self.cells.values())

    @property
    def has_best(self) -> bool:
        """Whether any cell is marked as the best of its data set."""
        return any(cell.best for cell in self.cells.values())

    @property
    def has_deviations(self) -> bool:
        """Whether any cell has more than one seed."""
        return any(cell.seeds > 1 for cell in self.cells.values())


def score_table(groups: Sequence[Group], metric: str = SCORE) -> ScoreTable:
    """The table of these groups' last policies. Best is the highest mean of a row, where its interval is apart."""
    datasets = in_order(dict.fromkeys(group.dataset for group in groups))
    methods = list(dict.fromkeys(group.method for group in groups))
    paper = _paper_cells(groups) if metric == SCORE else {}
    cells = _cells(groups, metric, paper)
    overall = _overall(cells, datasets, methods)
    if len(methods) > 1:
        for dataset in datasets:
            cells |= _mark_best({key: cell for key, cell in cells.items() if key[0] == dataset})
    return ScoreTable(
        metric,
        datasets,
        methods,
        cells,
        {_key(group): len(group.runs) for group in groups if _key(group) not in cells},
        overall,
        paper,
        _paper_overall(groups, methods, paper),
        {group.method: method_label(group.algorithm, group.settings) for group in groups},
        {group.method: group.label for group in groups},
    )


def _key(group: Group) -> tuple[str, str]:
    return group.dataset, group.method


def _paper_cells(groups: Sequence[Group]) -> dict[tuple[str, str], Printed]:
    """What the paper prints, once for each algorithm and data set, whatever groups there are of it."""
    cells: dict[tuple[str, str], Printed] = {}
    shown: set[tuple[str, str]] = set()
    for group in groups:
        printed = paper_cell(group)
        if printed is not None and (group.dataset, group.algorithm) not in shown:
            shown.add((group.dataset, group.algorithm))
            cells[_key(group)] = printed
    return cells


def _cells(
    groups: Sequence[Group], metric: str, paper: Mapping[tuple[str, str], Printed]
) -> dict[tuple[str, str], Cell]:
    """What each group reached, where a run of it finished with this metric."""
    cells = {}
    for group in groups:
        key, values, first = _key(group), group.final(metric), group.runs[0]
        if not len(values):
            continue
        cells[key] = Cell(
            mean=float(values.mean()),
            std=float(values.std()) if len(values) > 1 else None,
            interval=mean_over_seeds(values),
            seeds=len(values),
            asked=len(group.runs),
            data=first.dataset,
            updates=first.steps,
            late=float(group.late(metric).mean()),
            agrees=agreement(values.tolist(), *paper[key], SEEDS) if key in paper else "",
        )
    return cells


def _overall(cells: Mapping[tuple[str, str], Cell], datasets: Sequence[str], methods: Sequence[str]) -> dict[str, Cell]:
    """As in the paper: the mean of the means ± the mean of the deviations, of methods that finished everywhere."""
    overall = {}
    for method in methods:
        mine = [cells[dataset, method] for dataset in datasets if (dataset, method) in cells]
        if len(mine) == len(datasets) > 1:
            deviations = [cell.std for cell in mine if cell.std is not None]
            late = [cell.late for cell in mine if cell.late is not None]
            overall[method] = Cell(
                mean=float(np.mean([cell.mean for cell in mine])),
                std=float(np.mean(deviations)) if len(deviations) == len(mine) else None,
                interval=None,
                seeds=sum(cell.seeds for cell in mine),
                asked=sum(cell.asked for cell in mine),
                late=float(np.mean(late)) if len(late) == len(mine) else None,
            )
    return overall


def _paper_overall(
    groups: Sequence[Group], methods: Sequence[str], paper: Mapping[tuple[str, str], Printed]
) -> dict[str, Printed]:
    """The paper's overall row, where the table has all of its data sets."""
    if len({dataset for dataset, _ in paper}) != len(paper_datasets()):
        return {}
    algorithms = {group.method: group.algorithm for group in groups}
    overall = {}
    for method in methods:
        called = paper_method(algorithms[method])
        if called is not None and any(shown == method for _, shown in paper):
            overall[method] = paper_table()[OVERALL, called]
    return overall


def _mark_best(cells: Mapping[Key, Cell]) -> dict[Key, Cell]:
    """The same cells, the highest of them marked where its interval is apart from that of every other."""
    if len(cells) < 2:
        return dict(cells)
    first, *others = sorted(cells, key=lambda key: cells[key].mean, reverse=True)
    highest = cells[first].interval
    apart = [overlap(highest, mine) is False for key in others if highest and (mine := cells[key].interval) is not None]
    if len(apart) < len(others) or not all(apart):
        return dict(cells)
    return {**cells, first: dataclasses.replace(cells[first], best=True)}


def in_order(datasets: Iterable[str]) -> list[str]:
    """The paper's order, then whatever else there is as it came."""
    known = {name: place for place, name in enumerate(paper_datasets())}
    return sorted(datasets, key=lambda name: known.get(paper_dataset(name) or "", len(known)))


# -- as files --------------------------------------------------------------------------------------------------------


def to_csv(table: ScoreTable) -> str:
    """A line for every cell, in full precision."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for dataset in table.datasets:
        for method in table.methods:
            key = (dataset, method)
            if key not in table.cells and key not in table.unfinished:
                continue
            cell = table.cells.get(key)
            about = ("", "") if cell is None else (cell.data, cell.updates)
            paper = table.paper.get(key)
            beside = ("", "") if cell is None or paper is None else (repr(cell.mean - paper.mean), cell.agrees)
            rows.writerow(
                (
                    dataset,
                    table.labels_of.get(method, method),
                    *_numbers(table, key),
                    *(paper or ("", "")),
                    *about,
                    *beside,
                )
            )
    for method, cell in table.overall.items():
        numbers = (*_centre(cell), "", "", cell.seeds, cell.asked, int(cell.best))
        paper = table.paper_overall.get(method)
        apart = "" if paper is None else repr(cell.mean - paper.mean)
        rows.writerow((OVERALL, table.labels_of.get(method, method), *numbers, *(paper or ("", "")), "", "", apart, ""))
    return text.getvalue()


def _numbers(table: ScoreTable, key: tuple[str, str]) -> tuple[object, ...]:
    cell = table.cells.get(key)
    if cell is None:
        return ("", "", "", "", "", 0, table.unfinished[key], 0)
    low, high = ("", "")
    if cell.interval is not None and cell.interval.has_interval:
        low, high = repr(cell.interval.low), repr(cell.interval.high)
    return (*_centre(cell), low, high, cell.seeds, cell.asked, int(cell.best))


def _centre(cell: Cell) -> tuple[str, str, str]:
    """Mean, deviation and mean of the last evaluations; nothing where there is none."""
    return tuple("" if value is None else repr(value) for value in (cell.mean, cell.std, cell.late))  # type: ignore[return-value]


def to_latex(table: ScoreTable) -> str:
    """A tabular without packages: a column for each method and, where there is one, the paper's beside it."""
    beside = [method for method in table.methods if any(key[1] == method for key in table.paper)]
    heads = ["Data set"]
    for method in table.methods:
        name = table.labels_of.get(method, method)
        heads += [name, f"{table.called[method]}, paper"] if method in beside else [name]
    lines = [
        r"\begin{tabular}{l" + "r" * (len(heads) - 1) + "}",
        r"\hline",
        " & ".join(map(escape_latex, heads)) + r" \\",
        r"\hline",
    ]
    for dataset in [*table.datasets, OVERALL] if table.overall else table.datasets:
        if dataset == OVERALL:
            lines.append(r"\hline")
        row = [escape_latex(table.labels.get(dataset, dataset))]
        for method in table.methods:
            cell = table.overall.get(method) if dataset == OVERALL else table.cells.get((dataset, method))
            row.append(_latex_cell(cell))
            if method in beside:
                paper = table.paper_overall.get(method) if dataset == OVERALL else table.paper.get((dataset, method))
                row.append("" if paper is None else f"${paper.mean:.1f} \\pm {paper.std:.1f}$")
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    number = str(cell).replace("±", r"\pm")
    number = f"$\\mathbf{{{number}}}$" if cell.best else f"${number}$"
    return number if cell.whole else f"{number} ({cell.seeds} of {cell.asked} seeds)"


def escape_latex(text: str) -> str:
    """Any text, so that it is printed as it is written."""
    return "".join(LATEX.get(letter, letter) for letter in text)
