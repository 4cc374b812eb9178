"""The learning curves of a page: a figure for each data set and metric."""

import dataclasses
from collections.abc import Sequence

from score_rl.report.curve_figures import crowded, learning_curves, panel_of, uneven
from score_rl.report.grouping import by_dataset
from score_rl.report.page_files import Drawn, PageFiles
from score_rl.report.page_text import QUANTITIES
from score_rl.report.published import printed
from score_rl.report.results import RETURN, SCORE, UNCERTAINTY, Group


def curve_figures(groups: Sequence[Group], metric: str, methods: Sequence[str], files: PageFiles) -> list[Drawn]:
    """A figure for each data set on which this was measured."""
    drawn = []
    for dataset, mine in by_dataset(groups).items():
        if metric == RETURN and any(group.measured(SCORE) for group in mine):
            continue  # the score is the return in other units
        panel = panel_of(dataset, QUANTITIES[metric], mine, metric, lines=_known_values(mine, metric))
        if panel is None:
            continue
        if metric == UNCERTAINTY and uneven(panel):
            panel = dataclasses.replace(panel, logarithmic=True)
        apart = [series.label for series in panel.series if series.mean is None and len(series.runs)]
        notes = [f"The runs of {label} were not measured at the same updates: no mean." for label in apart]
        if crowded(panel):
            notes.append("Too many lines to show their seeds and intervals; the table has intervals of the ends.")
        name = f"{metric.rpartition('/')[2]}-{dataset}"
        drawn.append(files.draw(learning_curves([panel], 1, methods), name, dataset, notes))
    return drawn


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
