"""Learning curves: each function takes numbers and returns a matplotlib Figure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.errors import InputError
from score_rl.report import drawing
from score_rl.report.figure_style import (
    COLOURS,
    DASHES,
    FAINT,
    HEIGHT,
    WIDTH,
    line_styles,
    plain,
    shared_legend,
    styled,
)
from score_rl.report.results import FINISHED, GOING, Curve, Group
from score_rl.report.statistics import FEWEST_SEEDS, MeanCurve, mean_curve


@dataclasses.dataclass(frozen=True)
class Series:
    """One method in a panel: its mean over seeds, and the seeds themselves."""

    label: str
    mean: MeanCurve | None  # None: its runs cannot be averaged
    runs: Sequence[Curve] = ()
    broken: Sequence[Curve] = ()  # runs outside the mean: diverged, failed


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    quantity: str
    series: Sequence[Series]
    lines: Mapping[str, float] = dataclasses.field(default_factory=dict)  # horizontal: what else is known
    logarithmic: bool = False


def series_of(group: Group, metric: str) -> Series | None:
    """A group along training: the mean over the runs that finished or still train, beside it those that broke.

    Two seeds have no mean worth a line: they are drawn themselves. None where the metric was never measured.
    """
    sound = [run.curves[metric] for run in group.runs if metric in run.curves and run.status in (FINISHED, *GOING)]
    broken = [run.curves[metric] for run in group.runs if metric in run.curves and run.status not in (FINISHED, *GOING)]
    if not sound and not broken:
        return None
    try:
        mean = None if 1 < len(sound) < FEWEST_SEEDS else mean_curve(sound)
    except InputError:  # all broke, or they share no update: the runs themselves are drawn
        mean = None
    return Series(group.method, mean, sound, broken)


def panel_of(title: str, quantity: str, groups: Sequence[Group], metric: str, **options: Any) -> Panel | None:
    """The groups of a data set in one panel; None where none of them measured this."""
    series = [found for found in (series_of(group, metric) for group in groups) if found is not None]
    return Panel(title, quantity, series, **options) if series else None


@styled
def learning_curves(
    panels: Sequence[Panel], columns: int = 2, names: Sequence[str] | None = None, *, width: float = WIDTH
) -> Any:
    """Mean and 95 % interval over seeds along training, every seed as a thin line behind them.

    `names` fixes which method has which colour; runs outside the mean end with a cross.
    """
    columns = max(1, min(columns, len(panels)))
    rows = math.ceil(len(panels) / columns)
    labels = list(dict.fromkeys(series.label for panel in panels for series in panel.series))
    chosen = line_styles(names or labels)
    figure, axes = drawing.new_figure(rows, columns, width, HEIGHT)
    unit = step_unit(max((last_step(series) for panel in panels for series in panel.series), default=0))
    for axis, panel in zip(axes.ravel(), panels, strict=False):
        for series in panel.series:
            colour, dash = chosen[series.label]
            _draw_series(axis, series, colour, dash, unit[0], seeds=not crowded(panel))
        for place, (label, value) in enumerate(panel.lines.items()):
            axis.axhline(value, color=FAINT, linewidth=1.2, linestyle=DASHES[1 + place % 3], label=plain(label))
        if panel.logarithmic:
            axis.set_yscale("log")
        elif _explodes(panel):
            axis.set_yscale("symlog", linthresh=10)
        # The lines set the limits of the axis: the interval of two seeds can be twenty times as wide as their distance.
        low, high = axis.get_ylim()
        for series in () if crowded(panel) else panel.series:
            _draw_band(axis, series, chosen[series.label][0], unit[0])
        axis.set_ylim(low, high)
        drawing.name_axes(axis, unit[1], panel.quantity)
        axis.set_title(plain(panel.title), loc="left")
        axis.grid(visible=True, color=FAINT, alpha=0.25, linewidth=0.6)
        axis.margins(x=0.02)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_visible(False)
    shared_legend(figure, axes.ravel()[: len(panels)], columns)
    return figure


def uneven(panel: Panel) -> bool:
    """Whether one method's values would flatten all others to a line."""
    largest = _largest(panel)
    return len(largest) > 1 and max(largest) > 50 * float(np.median(largest))


def _explodes(panel: Panel) -> bool:
    return uneven(panel) and max(_largest(panel)) > 1_000


def _largest(panel: Panel) -> list[float]:
    drawn = [
        [series.mean.mean] if series.mean is not None else [run.values for run in series.runs]
        for series in panel.series
    ]
    return [float(np.abs(np.concatenate(values)).max()) for values in drawn if sum(map(len, values))]


def crowded(panel: Panel) -> bool:
    """Whether there are more methods than colours: seeds and intervals would hide the means."""
    return len(panel.series) > len(COLOURS)


def _draw_series(axis: Any, series: Series, colour: str, dash: Any, unit: float, *, seeds: bool) -> None:
    if (seeds and len(series.runs) > 1) or series.mean is None:
        for run in series.runs:
            thin = {"linewidth": 0.5, "alpha": 0.35} if series.mean is not None else {"linewidth": 1.2}
            axis.plot(run.steps / unit, run.values, color=colour, linestyle=dash, **thin)
    for run in series.broken:
        axis.plot(run.steps / unit, run.values, color=colour, linewidth=0.8, alpha=0.6)
        axis.plot(run.steps[-1:] / unit, run.values[-1:], color=colour, marker="x", markersize=5, linestyle="none")
    mean = series.mean
    if mean is None:
        axis.plot([], [], color=colour, linestyle=dash, label=plain(series.label))
        return
    marker = "o" if len(mean.steps) == 1 else None  # a single point draws no line
    axis.plot(
        mean.steps / unit, mean.mean, color=colour, linestyle=dash, linewidth=1.6, label=plain(series.label),
        marker=marker, markersize=4,
    )  # fmt: skip


def _draw_band(axis: Any, series: Series, colour: str, unit: float) -> None:
    mean = series.mean
    if mean is not None:
        axis.fill_between(mean.steps / unit, mean.low, mean.high, color=colour, alpha=0.2, linewidth=0)


def last_step(series: Series) -> int:
    return max((int(run.steps[-1]) for run in (*series.runs, *series.broken) if len(run.steps)), default=0)


def step_unit(last: int) -> tuple[float, str]:
    if last >= 1_000_000:
        return 1e6, "million updates"
    return (1e3, "thousand updates") if last >= 5_000 else (1.0, "updates")
