"""The learning curves of a page: a figure for each data set and metric."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from score_rl.report.curve_figures import Panel, crowded, learning_curves, panel_of, uneven
from score_rl.report.figure_style import line_styles
from score_rl.report.grouping import by_dataset
from score_rl.report.page_charts import chart_json
from score_rl.report.page_files import Drawn, PageFiles
from score_rl.report.page_text import quantity_of
from score_rl.report.published import printed
from score_rl.report.results import RETURN, SCORE, UNCERTAINTY, Group
from score_rl.report.statistics import FEWEST_SEEDS

VALUE = "train/q"


def curve_figures(groups: Sequence[Group], metric: str, methods: Sequence[str], files: PageFiles) -> list[Drawn]:
    """A figure for each data set on which this was measured."""
    drawn = []
    for dataset, mine in by_dataset(groups).items():
        if metric == RETURN and any(group.measured(SCORE) for group in mine):
            continue  # the score is the return in other units
        panel = panel_of(dataset, quantity_of(metric, mine), mine, metric, lines=_known_values(mine, metric))
        if panel is None:
            continue
        if metric == UNCERTAINTY and uneven(panel):
            panel = dataclasses.replace(panel, logarithmic=True)
        apart = [each.label for each in panel.series if each.mean is None and len(each.runs) >= FEWEST_SEEDS]
        notes = [f"The runs of {label} were not measured at the same updates: no mean." for label in apart]
        if crowded(panel):
            notes.append("Many lines: press “seeds” for their seeds and intervals.")
        name = f"{metric.rpartition('/')[2]}-{dataset}"
        still = files.draw(learning_curves([panel], 1, methods), name, f"{dataset}: {panel.quantity}", notes)
        drawn.append(dataclasses.replace(still, curves=_for_script(panel, methods)))
    return drawn


def loss_curves(groups: Sequence[Group], methods: Sequence[str]) -> list[Drawn]:
    """What else was measured while training, for the page's script alone: a figure for each data set and metric."""
    drawn = []
    for dataset, mine in by_dataset(groups).items():
        names = sorted({name for each in mine for run in each.runs for name in run.curves if name.startswith("train/")})
        for name in (name for name in names if name not in (UNCERTAINTY, VALUE)):
            panel = panel_of(dataset, name.removeprefix("train/"), mine, name)
            if panel is not None:
                panel = dataclasses.replace(panel, logarithmic=uneven(panel))
                drawn.append(Drawn(f"{dataset}: {panel.quantity}", None, (), (), _for_script(panel, methods)))
    return drawn


def _for_script(panel: Panel, methods: Sequence[str]) -> Any:
    from markupsafe import Markup

    return Markup(chart_json(panel, line_styles(methods)))  # chart_json escapes


def _known_values(groups: Sequence[Group], metric: str) -> dict[str, float]:
    """What is known of a data set beside the learned policies; the paper's score where there is but one method."""
    lines: dict[str, float] = {}
    key = {SCORE: "behaviour_score", RETURN: "behaviour_return"}.get(metric)
    values = [group.runs[0].data[key] for group in groups if key and key in group.runs[0].data]
    if len(set(values)) == 1:
        lines["behaviour policy"] = values[0]
    algorithms = {group.algorithm for group in groups}
    cell = printed(groups[0].algorithm, groups[0].dataset) if metric == SCORE and len(algorithms) == 1 else None
    if cell is not None:
        lines[f"paper's {groups[0].runs[0].title}"] = cell.mean
    return lines
