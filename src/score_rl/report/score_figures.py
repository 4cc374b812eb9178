"""Figures of what runs reached: scores, aggregates, profiles. Each function returns a matplotlib Figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from score_rl.report import drawing
from score_rl.report.drawing import BLUE, ORANGE
from score_rl.report.figure_style import (
    COLOURS,
    FAINT,
    HEIGHT,
    INK,
    WIDTH,
    light_grid,
    line_styles,
    plain,
    shared_legend,
    styled,
)
from score_rl.report.statistics import Estimate, Profile

AGGREGATE_TITLES = {"median": "Median", "iqm": "Interquartile mean", "mean": "Mean", "optimality_gap": "Optimality gap"}


class SettingGrid(NamedTuple):
    """What pairs of settings reached on one data set, and which of them was chosen."""

    title: str
    values: Mapping[Any, float]  # by (row, column); one that is missing did not end well
    chosen: tuple[float, ...]


@styled
def setting_grids(
    grids: Sequence[SettingGrid], rows: Sequence[float], columns: Sequence[float], names: tuple[str, str]
) -> Any:
    """A table of numbers for each, dark where they are high, the chosen one framed."""
    from matplotlib.patches import Rectangle

    across = min(max(len(grids), 1), 4)
    size = (3.4, 3.0) if across == 1 else (2.3, 2.3)
    figure, axes = drawing.new_figure(-(-max(len(grids), 1) // across), across, *size)
    for axis in axes.ravel()[len(grids) :]:
        axis.set_visible(False)
    for axis, grid in zip(axes.ravel(), grids, strict=False):
        values = np.array([[grid.values.get((row, column), np.nan) for column in columns] for row in rows])
        highest = float(np.nanmax(values))
        axis.imshow(values, cmap="Blues", vmin=0, vmax=max(1.0, 1.25 * highest), aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            text = "diverged" if np.isnan(value) else f"{value:.1f}"
            colour = "white" if value > 0.75 * max(highest, 0.8) else INK
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
        place = (list(columns).index(grid.chosen[1]) - 0.47, list(rows).index(grid.chosen[0]) - 0.47)
        axis.add_patch(Rectangle(place, 0.94, 0.94, fill=False, edgecolor=ORANGE, linewidth=2))
        axis.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
        axis.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
        axis.set(ylabel=names[0], xlabel=names[1])
        axis.set_title(plain(grid.title), fontsize=8, loc="left")
        axis.grid(visible=False)
        axis.tick_params(length=0)
    return figure


@styled
def score_bars(
    scores: Mapping[str, Mapping[str, Estimate]],
    paper: Mapping[str, Mapping[str, float]] | None = None,
    quantity: str = "normalised score (%)",
    names: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    seeds: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> Any:
    """{method: {data set: score}} as dots with 95 % intervals, a block for each data set; the paper's as diamonds.

    Where there is no interval, the `seeds` of (data set, method) stand instead of their mean.

    The dots decide what is seen: an interval that would widen the picture to more than twice leaves it. `labels`
    names the data sets, and orders them. Where there are more methods than colours, each dot has its method's name
    beside it.
    """
    datasets = list(labels or dict.fromkeys(dataset for mine in scores.values() for dataset in mine))
    chosen = line_styles(names or list(scores))
    lines: dict[tuple[str, str], int] = {}  # a line for each dot, and an empty one after each block
    named = len(scores) > len(COLOURS)
    for block, dataset in enumerate(datasets):
        for method in (method for method, mine in scores.items() if dataset in mine):
            lines[method, dataset] = len(lines) + block
    height = len(lines) + len(datasets)
    lines = {
        key: lines[key] for key in sorted(lines, key=lambda key: list(scores).index(key[0]))
    }  # as the legend has it
    beside = {method: "\n".join(textwrap.wrap(plain(method), 26)) for method in scores}
    tallest = max(name.count("\n") for name in beside.values()) if named else 0
    figure, ((axis,),) = drawing.new_figure(1, 1, WIDTH, 0.9 + (0.17 + 0.11 * tallest) * height)
    for (method, dataset), line in lines.items():
        colour, label = (BLUE, "") if named else (chosen[method][0], plain(method))
        alone = [] if seeds is None or scores[method][dataset].has_interval else seeds.get((dataset, method), [])
        if alone:
            axis.plot(alone, [line] * len(alone), marker="o", markersize=4.5, color=colour, markerfacecolor="none",
                      linestyle="none", label=label)  # fmt: skip
        else:
            _interval(axis, scores[method][dataset], line, colour, label)
    for (method, dataset), line in lines.items():
        printed = (paper or {}).get(method, {}).get(dataset)
        if printed is not None:
            axis.plot(printed, line, marker="D", markersize=5, color=FAINT, markerfacecolor="none", linestyle="none",
                      label="paper")  # fmt: skip
    blocks = {dataset: [line for (_, of), line in lines.items() if of == dataset] for dataset in datasets}
    shown = {dataset: plain((labels or {}).get(dataset, dataset)) for dataset in datasets}
    if named:
        axis.set_yticks(list(lines.values()), [beside[method] for method, _ in lines], fontsize=7.5)
        for dataset, mine in blocks.items():
            axis.annotate(shown[dataset].replace("\n", ", "), (0, min(mine) - 1), (2, 0), ("axes fraction", "data"),
                          "offset points", va="center", fontweight="bold")  # fmt: skip
    else:
        axis.set_yticks([float(np.mean(mine)) for mine in blocks.values()], list(shown.values()))
    axis.set_ylim(height - 1.2, -1.8 if named else -0.8)
    dots = [estimate.value for mine in scores.values() for estimate in mine.values()]
    dots += [value for mine in (paper or {}).values() for value in mine.values()]
    dots += [value for mine in (seeds or {}).values() for value in mine]
    low, high = min(dots), max(dots)
    intervals = [each for mine in scores.values() for each in mine.values() if each.has_interval]
    ends = [end for each in intervals for end in (each.low, each.high)]
    if max([high, *ends]) - min([low, *ends]) <= 2 * (high - low):
        low, high = min([low, *ends]), max([high, *ends])
    room = 0.08 * (high - low) or 1.0
    axis.set_xlim(low - room, high + room)
    axis.tick_params(axis="y", length=0)
    light_grid(axis)
    drawing.name_axes(axis, quantity, "")
    shared_legend(figure, [axis], 1)
    return figure


@styled
def aggregate_intervals(
    found: Mapping[str, Mapping[str, Estimate]],
    columns: int = 4,
    names: Sequence[str] | None = None,
    *,
    width: float = 2.6,
) -> Any:
    """Median, interquartile mean, mean and optimality gap of each method, with 95 % intervals."""
    rows = math.ceil(len(AGGREGATE_TITLES) / columns)
    beside = max(map(len, found), default=0) <= 14  # longer names go below, or they leave no room for the picture
    # Room for a title above, and for two methods at the least: with less a picture of few collapses.
    figure, axes = drawing.new_figure(rows, columns, width, 1.0 + 0.24 * max(2, len(found)) + (0 if beside else 0.2))
    chosen = line_styles(names or list(found))
    for number, (axis, (name, title)) in enumerate(zip(axes.ravel(), AGGREGATE_TITLES.items(), strict=True)):
        for place, (method, mine) in enumerate(found.items()):
            _interval(axis, mine[name], place, chosen[method][0], plain(method), thick=7)
        axis.set_yticks(range(len(found)))
        axis.set_yticklabels([plain(method) for method in found] if beside and number % columns == 0 else [])
        axis.set_ylim(len(found) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.set_title(title + (" (low is good)" if name == "optimality_gap" else ""), loc="left")
        light_grid(axis)
        if number // columns == rows - 1:
            axis.set_xlabel("normalised score (%)")
    if not beside:
        shared_legend(figure, axes.ravel(), columns * width / WIDTH)
    return figure


def _interval(axis: Any, estimate: Estimate, place: float, colour: str, label: str | None, thick: float = 4) -> None:
    """A point on its interval; a hollow one where there is none."""
    if estimate.has_interval:
        axis.plot([estimate.low, estimate.high], [place, place], color=colour, linewidth=thick, alpha=0.35,
                  solid_capstyle="butt")  # fmt: skip
    face = colour if estimate.has_interval else "none"
    axis.plot(estimate.value, place, marker="o", markersize=4.5, color=colour, markerfacecolor=face,
              linestyle="none", label=label)  # fmt: skip


@styled
def performance_profiles(
    found: Mapping[str, Profile], names: Sequence[str] | None = None, *, width: float = WIDTH
) -> Any:
    """The share of runs above each score, with 95 % bands."""
    figure, ((axis,),) = drawing.new_figure(1, 1, width, HEIGHT)
    chosen = line_styles(names or list(found))
    for method, profile in found.items():
        colour, dash = chosen[method]
        axis.plot(profile.thresholds, profile.share, color=colour, linestyle=dash, linewidth=1.6, label=plain(method))
        axis.fill_between(profile.thresholds, profile.low, profile.high, color=colour, alpha=0.2, linewidth=0)
    axis.set_ylim(-0.02, 1.02)
    axis.grid(visible=True, color=FAINT, alpha=0.25, linewidth=0.6)
    drawing.name_axes(axis, "normalised score τ (%)", "share of runs above τ")
    shared_legend(figure, [axis], 1)
    return figure
