"""The picture of false correlation: two data sets with what critics make of them, and every action that was picked."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.paper.experiments.drives import drives, true_value
from score_rl.report.drawing import BLUE, GREEN, GREY, ORANGE, VERMILION, legend_below, name_axes, new_figure
from score_rl.report.figure_style import INK, styled


class Example(NamedTuple):
    """A data set, and its critics on an even grid of actions."""

    number: int
    critics: Float[np.ndarray, "members actions"]


@styled
def draw(grid: Float[np.ndarray, " actions"], examples: Sequence[Example], numbers: Mapping[str, Any]) -> Any:
    """Data sets on the left, picks by method on the right."""
    figure, (axes,) = new_figure(1, len(examples) + 1, 4.6, 4.6)
    for axis, example in zip(axes, examples, strict=False):
        _draw_example(axis, grid, example)
    low = min(axis.get_ylim()[0] for axis in axes[:-1])
    for axis in axes[:-1]:
        axis.set_ylim(low, 1.45)
    legend_below(axes[0], 2)
    _draw_picks(axes[-1], numbers)
    return figure


@styled
def draw_picks(numbers: Mapping[str, Any]) -> Any:
    """Every action that was picked, alone. What is stored of the experiment is enough to draw it again."""
    figure, ((axis,),) = new_figure(1, 1, 7.6, 5.2)
    _draw_picks(axis, numbers)
    return figure


def _draw_example(axis: Any, grid: Float[np.ndarray, " actions"], example: Example) -> None:
    data, q = drives(example.number), example.critics
    mean, least = q.mean(0), q.min(0)
    axis.plot(data.actions, data.rewards, ".", color=GREY, markersize=3, alpha=0.5, label="data")
    tried = data.actions > 0
    axis.plot(data.actions[tried], data.rewards[tried], "o", color=ORANGE, markersize=5, label="data, side street")
    axis.plot(grid, true_value(grid), color=INK, linewidth=1.6, label="true value")
    axis.fill_between(grid, mean - q.std(0), mean + q.std(0), color=BLUE, alpha=0.15, linewidth=0)
    axis.plot(grid, mean, color=BLUE, linewidth=1.6, label="mean of critics ± u")
    axis.plot(grid, least, color=VERMILION, linewidth=1.4, linestyle=(0, (5, 1.5)), label="least critic")
    for curve, colour, marker in ((mean, BLUE, "o"), (least, VERMILION, "D")):
        best = int(np.argmax(curve))
        axis.plot(grid[best], curve[best], marker, color=colour, markersize=8, markeredgecolor="white")
    what = "a lucky street" if data.lucky else "no luck: the street's mean is lower"
    name_axes(axis, "action: avenue < 0 < side street", "reward", f"Data set {example.number}, {what}")


def _draw_picks(axis: Any, numbers: Mapping[str, Any]) -> None:
    """A dot for each data set: filled where the street was lucky, beside it how often the street was taken."""
    labels, rng = [label for label, found in numbers.items() if "picks" in found], np.random.default_rng(0)
    for row, label in enumerate(labels):
        found = numbers[label]
        for number, action in found["picks"]:
            lucky = drives(number).lucky
            place = row + rng.uniform(-0.25, 0.25)
            colour = VERMILION if action > 0 else GREEN
            axis.plot(action, place, "o", color=colour, markersize=3.4, markerfacecolor=colour if lucky else "none")
        text = ", ".join(f"{found[luck]['street']}/{found[luck]['sets']}" for luck in ("lucky", "unlucky"))
        axis.annotate(text, (1.06, row), fontsize=7, va="center", annotation_clip=False)
    axis.axvline(0.0, color=GREY, linewidth=1)
    axis.set_yticks(range(len(labels)), labels, fontsize=7)
    axis.set_xlim(-1.05, 1.05)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    name_axes(axis, "action picked; filled: the street was lucky", "", "Street taken: lucky, unlucky sets")
