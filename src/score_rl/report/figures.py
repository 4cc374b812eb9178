"""The figures of a report: each function takes numbers and returns a matplotlib Figure.

They are drawn in one ink on nothing. `save` writes SVG and PDF, the same bytes for the same numbers; `inline_svg`
gives the SVG for a web page, where the ink is the page's text colour: light and dark alike.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from score_rl.errors import InputError
from score_rl.report import drawing
from score_rl.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from score_rl.report.results import FINISHED, GOING, Curve, Group
from score_rl.report.statistics import Estimate, MeanCurve, Profile, mean_curve

INK, FAINT = "#1A1B1C", "#8C8D8E"  # in a web page: the colour of text, and of text beside it
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK, GREY)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
WIDTH, HEIGHT = 4.3, 3.0  # inches of a panel: legible at 340 pixels, and two beside each other at 700
AGGREGATE_TITLES = {"median": "Median", "iqm": "Interquartile mean", "mean": "Mean", "optimality_gap": "Optimality gap"}
STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "axes.titlecolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "svg.hashsalt": "score-rl",
}

P = ParamSpec("P")
T = TypeVar("T")


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """For functions that draw: everything inside has this look, matplotlib's own settings stay as they are."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        with drawing.require_matplotlib().rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """`name`.svg and `name`.pdf in `folder`, the same bytes for the same figure."""
    return drawing.save_figure(figure, folder, name)


def inline_svg(figure: Any, name: str, title: str) -> str:
    """The figure as an element of a web page: text stays text, ink takes the page's colour, ids begin with `name`."""
    text = io.StringIO()
    with drawing.require_matplotlib().rc_context({"svg.hashsalt": "score-rl", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(INK, "currentColor", svg, flags=re.IGNORECASE)
    width, height = (float(value) for value in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())  # type: ignore[union-attr]
    head = f'<svg role="img" aria-label="{_attribute(title)}" viewBox="0 0 {width:g} {height:g}" '
    # matplotlib names the old namespace of links, which HTML knows without being told.
    return (
        head + 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"' + svg[svg.index(">") :]
    )


def _attribute(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(text, {'"': "&quot;", "'": "&#39;"})


def plain(text: str) -> str:
    """Names from outside, so that no part of them is taken for a formula."""
    return text.replace("$", r"\$")


def looks(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """A colour and a dash for each name, in their order: the same in every figure that is given the same names."""
    pairs = [(colour, dash) for dash, colour in itertools.product(DASHES, COLOURS)]
    return {name: pairs[place % len(pairs)] for place, name in enumerate(names)}


# -- curves ----------------------------------------------------------------------------------------------------------


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

    None where the metric was never measured.
    """
    sound = [run.curves[metric] for run in group.runs if metric in run.curves and run.status in (FINISHED, *GOING)]
    broken = [run.curves[metric] for run in group.runs if metric in run.curves and run.status not in (FINISHED, *GOING)]
    if not sound and not broken:
        return None
    try:
        mean = mean_curve(sound)
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
    chosen = looks(names or labels)
    figure, axes = drawing.new_figure(rows, columns, width, HEIGHT)
    unit = _step_unit(max((_last_step(series) for panel in panels for series in panel.series), default=0))
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
        # The lines decide what is seen: the interval of two seeds can be twenty times as wide as they are apart.
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
    _shared_legend(figure, axes.ravel()[: len(panels)], columns)
    return figure


def uneven(panel: Panel) -> bool:
    """Whether one method's values would flatten all others to a line."""
    largest = _largest(panel)
    return len(largest) > 1 and max(largest) > 50 * float(np.median(largest))


def _explodes(panel: Panel) -> bool:
    return uneven(panel) and max(_largest(panel)) > 1_000


def _largest(panel: Panel) -> list[float]:
    return [float(np.abs(series.mean.mean).max()) for series in panel.series if series.mean is not None]


def crowded(panel: Panel) -> bool:
    """Whether there are more methods than colours: seeds and intervals would hide the means."""
    return len(panel.series) > len(COLOURS)


def _draw_series(axis: Any, series: Series, colour: str, dash: Any, unit: float, *, seeds: bool) -> None:
    if (seeds and len(series.runs) > 1) or series.mean is None:
        for run in series.runs:
            axis.plot(run.steps / unit, run.values, color=colour, linewidth=0.5, alpha=0.35)
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


def _last_step(series: Series) -> int:
    return max((int(run.steps[-1]) for run in (*series.runs, *series.broken) if len(run.steps)), default=0)


def _step_unit(last: int) -> tuple[float, str]:
    if last >= 1_000_000:
        return 1e6, "million updates"
    return (1e3, "thousand updates") if last >= 5_000 else (1.0, "updates")


def _shared_legend(figure: Any, axes: Any, columns: float) -> None:
    """One legend for all panels, below them."""
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if not handles:
        return
    longest = max(map(len, handles))
    across = max(1, min(len(handles), int(columns * 52 / (longest + 8))))
    width, height = figure.get_size_inches()
    more = max(0, math.ceil(len(handles) / across) - 3)  # lines that the height was not made for
    figure.set_size_inches(width, height + 0.18 * more)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=across, handlelength=2.2)


# -- scores ----------------------------------------------------------------------------------------------------------


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
) -> Any:
    """{method: {data set: score}} as dots with 95 % intervals, a block for each data set; the paper's as diamonds.

    The dots decide what is seen: the interval of two seeds may leave the picture. `labels` names the data sets, and
    orders them. Where there are more methods than colours, each dot has its method's name beside it.
    """
    datasets = list(labels or dict.fromkeys(dataset for mine in scores.values() for dataset in mine))
    chosen = looks(names or list(scores))
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
    room = 0.15 * (max(dots) - min(dots)) or 1.0
    axis.set_xlim(min(dots) - room, max(dots) + room)
    axis.tick_params(axis="y", length=0)
    _light_grid(axis)
    drawing.name_axes(axis, quantity, "")
    _shared_legend(figure, [axis], 1)
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
    chosen = looks(names or list(found))
    for number, (axis, (name, title)) in enumerate(zip(axes.ravel(), AGGREGATE_TITLES.items(), strict=True)):
        for place, (method, mine) in enumerate(found.items()):
            _interval(axis, mine[name], place, chosen[method][0], plain(method), thick=7)
        axis.set_yticks(range(len(found)))
        axis.set_yticklabels([plain(method) for method in found] if beside and number % columns == 0 else [])
        axis.set_ylim(len(found) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.set_title(title + (" (low is good)" if name == "optimality_gap" else ""), loc="left")
        _light_grid(axis)
        if number // columns == rows - 1:
            axis.set_xlabel("normalised score (%)")
    if not beside:
        _shared_legend(figure, axes.ravel(), columns * width / WIDTH)
    return figure


def _interval(axis: Any, estimate: Estimate, place: float, colour: str, label: str | None, thick: float = 4) -> None:
    """A point on its interval; a hollow one where there is none."""
    if estimate.has_interval:
        axis.plot([estimate.low, estimate.high], [place, place], color=colour, linewidth=thick, alpha=0.35,
                  solid_capstyle="butt")  # fmt: skip
    face = colour if estimate.has_interval else "none"
    axis.plot(estimate.value, place, marker="o", markersize=4.5, color=colour, markerfacecolor=face,
              linestyle="none", label=label)  # fmt: skip


def _light_grid(axis: Any) -> None:
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x", color=FAINT, alpha=0.25, linewidth=0.6)


@styled
def performance_profiles(
    found: Mapping[str, Profile], names: Sequence[str] | None = None, *, width: float = WIDTH
) -> Any:
    """The share of runs above each score, with 95 % bands."""
    figure, ((axis,),) = drawing.new_figure(1, 1, width, HEIGHT)
    chosen = looks(names or list(found))
    for method, profile in found.items():
        colour, dash = chosen[method]
        axis.plot(profile.thresholds, profile.share, color=colour, linestyle=dash, linewidth=1.6, label=plain(method))
        axis.fill_between(profile.thresholds, profile.low, profile.high, color=colour, alpha=0.2, linewidth=0)
    axis.set_ylim(-0.02, 1.02)
    axis.grid(visible=True, color=FAINT, alpha=0.25, linewidth=0.6)
    drawing.name_axes(axis, "normalised score τ (%)", "share of runs above τ")
    _shared_legend(figure, [axis], 1)
    return figure


# -- maps ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PointMap:
    """Points of the plane with a value each; `marked` ones are drawn in another colour."""

    title: str
    points: Float[np.ndarray, "points 2"]
    values: Float[np.ndarray, " points"]
    marked: Bool[np.ndarray, " points"]


@styled
def contour_maps(
    maps: Sequence[PointMap], value: str, plain_label: str, marked_label: str, *, levels: int = 12, shown: int = 400
) -> Any:
    """The contour of the values over the plane, and some of the points: white, and red where marked."""
    from matplotlib.tri import Triangulation

    figure, axes = drawing.new_figure(1, len(maps), 3.3, 3.0)
    for axis, chart in zip(axes.ravel(), maps, strict=True):
        triangles = Triangulation(chart.points[:, 0], chart.points[:, 1])
        filled = axis.tricontourf(triangles, chart.values, levels=levels, cmap="viridis")
        figure.colorbar(filled, ax=axis, label=value if axis is axes.ravel()[-1] else None)
        for mask, colour, label in ((~chart.marked, "white", plain_label), (chart.marked, "#D62728", marked_label)):
            some = chart.points[mask]
            some = some[:: max(1, len(some) // shown)]
            axis.scatter(some[:, 0], some[:, 1], s=5, c=colour, linewidths=0.3, edgecolors=INK, label=plain(label))
        axis.set_xticks([])
        axis.set_yticks([])
        axis.grid(visible=False)
        axis.set_title(plain(chart.title), loc="left")
    _shared_legend(figure, axes.ravel(), len(maps))
    return figure
