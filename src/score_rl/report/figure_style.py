"""How the figures of a report look: one ink on nothing, and the same colour for the same method everywhere.

A web page shows the ink in the colour of its text, in light and in dark alike (`inline_svg`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from score_rl.report import drawing
from score_rl.report.drawing import BLUE, BROWN, GREEN, GREY, INDIGO, ORANGE, PURPLE, SKY, VERMILION

INK, FAINT = "#1A1B1C", "#8C8D8E"  # in a web page: the colour of text, and of text beside it
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK, GREY, BROWN, INDIGO)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
WIDTH, HEIGHT = 4.3, 3.0  # inches of a panel: legible at 340 pixels, and two beside each other at 700
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


def plain(text: str) -> str:
    """Names from outside, so that no part of them is taken for a formula."""
    return text.replace("$", r"\$")


def line_styles(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """A colour and a dash for each name, in their order: the same in every figure that is given the same names."""
    pairs = [(colour, dash) for dash, colour in itertools.product(DASHES, COLOURS)]
    return {name: pairs[place % len(pairs)] for place, name in enumerate(names)}


def shared_legend(figure: Any, axes: Any, columns: float) -> None:
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


def light_grid(axis: Any) -> None:
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x", color=FAINT, alpha=0.25, linewidth=0.6)
