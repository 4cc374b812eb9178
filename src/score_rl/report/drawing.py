"""How figures look everywhere: one palette, one way to make and to save them, no global plotting state."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.disk import write_file
from score_rl.errors import not_installed

# Okabe and Ito's colours and two more, told apart with any colour vision; markers and dashes differ as well.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, GREY, BROWN, INDIGO = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#777777",
    "#8C510A",
    "#5E4FA2",
)
GRID = "#DDDDDD"


def require_matplotlib(extra: str = "report") -> Any:
    """matplotlib, or a sentence on how to get it with an extra."""
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        raise not_installed("the figures need matplotlib", extra) from missing
    return matplotlib


def new_figure(rows: int, columns: int, width: float = 4.2, height: float = 3.3) -> tuple[Any, np.ndarray]:
    """A figure with rows × columns axes, as an object array of that shape."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def save_figure(figure: Any, out: Path, name: str) -> list[Path]:
    """`name`.svg and `name`.pdf in `out`, the same bytes for the same figure."""
    matplotlib = require_matplotlib()
    svg, pdf = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "score-rl", "pdf.fonttype": 42}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.set_layout_engine("none")  # what is where has been decided; each time anew takes longer than drawing
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    files = [out / f"{name}.svg", out / f"{name}.pdf"]
    for file, content in zip(files, (svg, pdf), strict=True):
        write_file(file, content.getvalue())
    return files


def line(axis: Any, x: Any, y: Any, label: str | None, colour: str, **style: Any) -> None:
    """A line with markers."""
    style = {"marker": "o", "markersize": 3.5, "linewidth": 1.5, **style}
    axis.plot(x, y, label=label, color=colour, **style)


def band(axis: Any, x: Any, runs: np.ndarray, label: str, colour: str, **style: Any) -> None:
    """The mean over the first axis of `runs`, and one standard deviation around it."""
    mean, spread = runs.mean(0), runs.std(0)
    axis.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    line(axis, x, mean, label, colour, **style)


def cumulative(axis: Any, values: np.ndarray, label: str, colour: str, **style: Any) -> None:
    """The share of values at or below x, as steps."""
    values = np.sort(values)
    axis.step(values, np.arange(1, len(values) + 1) / len(values), where="post", label=label, color=colour, **style)


def legend(axis: Any, **options: Any) -> None:
    """A small legend with a light frame, so that lines behind it do not read as part of it."""
    axis.legend(fontsize=8, framealpha=0.9, edgecolor=GRID, **options)


def legend_below(axis: Any, columns: int = 2) -> None:
    """A legend under the axes, where lines fill the space inside them."""
    axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)


def name_axes(axis: Any, x: str, y: str, title: str = "") -> None:
    """Labels in the paper's symbols."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if title:
        axis.set_title(title, fontsize=10, loc="left")


def log_axes(axis: Any, which: Sequence[str] = ("x", "y")) -> None:
    """Logarithmic axes."""
    if "x" in which:
        axis.set_xscale("log")
    if "y" in which:
        axis.set_yscale("log")
