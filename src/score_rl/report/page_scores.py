"""What a page says of scores: a line for each group, tables, aggregates and profiles."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.report.figure_style import line_styles
from score_rl.report.grouping import paper_cell
from score_rl.report.page_charts import Dot, dots_json, profiles_json
from score_rl.report.page_files import Drawn, PageFiles
from score_rl.report.page_text import aggregates_as_text, quantity_of
from score_rl.report.results import GOING, RETURN, SCORE, Group, RunResult
from score_rl.report.score_figures import AGGREGATE_TITLES, aggregate_intervals, performance_profiles, score_bars
from score_rl.report.statistics import FEWEST_SEEDS, REPETITIONS, Estimate, Profile, aggregates, comparable, profiles
from score_rl.report.tables import ScoreTable, mean_and_std, score_table, to_csv, to_latex


@dataclasses.dataclass(frozen=True)
class TableSection:
    """A table in the page and its files."""

    table: ScoreTable
    quantity: str
    files: Sequence[tuple[str, str]]
    notes: Sequence[str]
    figure: Drawn | None

    @property
    def methods_down(self) -> bool:
        """Whether methods are rows: there are many, and a page is easier to scroll down than across."""
        return len(self.table.methods) > max(6, len(self.table.datasets))

    @property
    def columns(self) -> int:
        """How many columns of numbers the page shows."""
        if not self.methods_down:
            return len(self.table.methods)
        return len(self.table.datasets) + bool(self.table.overall)


def headline(group: Group) -> dict[str, Any]:
    """A group in one line of the summary."""
    metric = SCORE if group.measured(SCORE) else RETURN
    values = group.final(metric)
    so_far = [value for value in (run.last(metric) for run in group.runs if run.status in GOING) if value is not None]
    data = group.runs[0].data
    scored = metric == SCORE or (not group.measured(RETURN) and "behaviour_score" in data)
    return {
        "group": group,
        "unit": "" if metric == SCORE else "return",
        "result": mean_and_std(values.mean(), values.std() if len(values) > 1 else None) if len(values) else None,
        "late": mean_and_std(group.late(metric).mean(), None) if len(values) else None,
        "so_far": mean_and_std(float(np.mean(so_far)), None) if so_far and not len(values) else None,
        "judged": group.measured(metric),
        "behaviour": data.get("behaviour_score" if scored else "behaviour_return") if group.measured(metric) else None,
        "behaviour_unit": "" if scored else "return",
        "paper": paper_cell(group) if metric == SCORE else None,
        "step": min(run.step for run in group.runs),
        "steps": group.runs[0].steps,
    }


def table_sections(groups: Sequence[Group], methods: Sequence[str], files: PageFiles) -> list[TableSection]:
    """Scores; returns for whatever has neither a reference score nor a success."""
    shown = []
    for metric, name in ((SCORE, "scores"), (RETURN, "returns")):
        chosen = [
            group for group in groups if group.measured(metric) and (metric == SCORE or not group.measured(SCORE))
        ]
        if chosen:
            table = score_table(chosen, metric)
            written = files.write_table(name, to_csv(table), to_latex(table))
            picture = _as_picture(table, chosen, methods, files)
            shown.append(TableSection(table, quantity_of(metric, chosen), written, unequal_training(chosen), picture))
    return shown


def _as_picture(table: ScoreTable, groups: Sequence[Group], methods: Sequence[str], files: PageFiles) -> Drawn | None:
    """The table as a figure; a single cell needs none."""
    if len(table.cells) < 2:
        return None
    ends = {(group.dataset, group.method): group.final(table.metric).tolist() for group in groups}
    blocks: dict[str, list[Dot]] = {}
    scores: dict[str, dict[str, Estimate]] = {}
    for dataset, method in itertools.product(table.datasets, table.methods):
        cell, printed = table.cells.get((dataset, method)), table.paper.get((dataset, method))
        if cell is None or cell.interval is None:
            continue
        paper = None if printed is None else printed.mean
        blocks.setdefault(dataset, []).append(Dot(method, cell.interval, ends[dataset, method], paper))
        scores.setdefault(method, {})[dataset] = cell.interval
    ordered = {method: scores[method] for method in table.methods if method in scores}
    paper_means = {
        method: {d: cell.mean for (d, of), cell in table.paper.items() if of == method} for method in ordered
    }
    quantity = quantity_of(table.metric, groups)
    figure = score_bars(ordered, paper_means, quantity, methods, seeds=ends)
    title = "Means, 95 % intervals and seeds" if table.has_intervals else "Each seed"
    title += ", and the paper's (diamonds)" if table.paper else ""
    return _with_dots(
        files.draw(figure, "scores" if table.metric == SCORE else "returns", title), quantity, blocks, methods
    )


def _with_dots(still: Drawn, quantity: str, blocks: Mapping[str, Sequence[Dot]], methods: Sequence[str]) -> Drawn:
    from markupsafe import Markup

    colours = {method: colour for method, (colour, _) in line_styles(methods).items()}
    return dataclasses.replace(still, curves=Markup(dots_json(still.title, quantity, blocks, colours)))  # it escapes


def aggregate_section(groups: Sequence[Group], methods: Sequence[str], files: PageFiles) -> dict[str, Any]:
    """Aggregates and profiles of the methods that can be compared, and why others cannot."""
    scores: dict[str, dict[str, Sequence[float]]] = {}
    for group in groups:
        if group.measured(SCORE):
            scores.setdefault(group.method, {})[group.dataset] = list(group.final(SCORE))
    found, shared, notes = comparable(scores)
    matrices = {method: matrix for method, matrix in found.items() if len(matrix) >= FEWEST_SEEDS}
    shown: dict[str, Any] = {"notes": notes, "shared": shared, "repetitions": REPETITIONS, "aggregates": None}
    if not matrices or len(shared) < 2:  # one data set is no suite
        return shown
    few = [method for method in found if method not in matrices]
    if few:
        notes.append(f"Left out, with fewer than {FEWEST_SEEDS} seeds: {_first_few(few)}.")
    measured = aggregates(matrices)
    intervals = aggregate_intervals(measured, columns=2, width=2.6, names=methods)
    return shown | {
        "aggregates": measured,
        "seeds": {method: len(matrix) for method, matrix in matrices.items()},
        "aggregate_titles": AGGREGATE_TITLES,
        "aggregate_files": files.write_table("aggregates", *aggregates_as_text(measured)),
        "aggregate_figure": _with_dots(
            files.draw(intervals, "aggregates", "Aggregates with 95 % intervals"),
            quantity_of(SCORE, groups),
            {
                title + (" (low is good)" if name == "optimality_gap" else ""): [
                    Dot(method, mine[name]) for method, mine in measured.items()
                ]
                for name, title in AGGREGATE_TITLES.items()
            },
            methods,
        ),
        "profile_figure": _profile_figure(profiles(matrices), quantity_of(SCORE, groups), methods, files),
    }


def _profile_figure(found: Mapping[str, Profile], quantity: str, methods: Sequence[str], files: PageFiles) -> Drawn:
    from markupsafe import Markup

    still = files.draw(performance_profiles(found, names=methods), "profiles", "Performance profiles")
    data = profiles_json(still.title, quantity, found, line_styles(methods))
    return dataclasses.replace(still, curves=Markup(data))  # it escapes


def unequal_training(groups: Sequence[Group]) -> list[str]:
    """A sentence where methods of one table were not trained or judged alike: they can hardly be compared."""
    alike: Mapping[str, Callable[[RunResult], str]] = {
        "trained for different numbers of updates": lambda run: f"{run.steps:,}",
        "judged under different physics": lambda run: run.request.get("physics", "d4rl"),
    }
    notes = []
    for what, value_of in alike.items():
        methods: dict[str, list[str]] = {}
        for group in groups:
            for run in group.runs:
                if group.method not in methods.setdefault(value_of(run), []):
                    methods[value_of(run)].append(group.method)
        if len(methods) > 1:
            shown = "; ".join(f"{value}: {_first_few(names)}" for value, names in methods.items())
            notes.append(f"Careful, these were {what} ({shown}).")
    return notes


def _first_few(names: Sequence[str], most: int = 4) -> str:
    """The first few, and how many there are beside them."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"
