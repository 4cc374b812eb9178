"""Logarithmic axes have no zero: what lies below their floor is drawn on it, hollow, and named in the legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from score_rl.report import drawing as fig


def clipped_line(
    axis: Any, x: Sequence[float] | np.ndarray, y: Any, label: str | None, colour: str, floor: float, **style: Any
) -> bool:
    """A line whose points below `floor` stand on it as hollow markers; whether there were any. NaN is left out."""
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    fig.line(axis, places, np.maximum(values, floor), label, colour, **style)
    below = values < floor
    if below.any():
        look = {"marker": style.get("marker", "o"), "markersize": 6.0, "markerfacecolor": "white"}
        axis.plot(places[below], np.full(below.sum(), floor), linestyle="none", color=colour, zorder=4, **look)
    return bool(below.any())


def name_clipped(axis: Any, floor: float) -> None:
    """The legend's entry for hollow markers."""
    power = round(float(np.log10(floor)))
    label = f"hollow: 0, or below $10^{{{power}}}$"
    axis.plot([], [], linestyle="none", marker="o", color=fig.GREY, markerfacecolor="white", label=label)


def symmetric_log(axis: Any, linear: float, quantity: str) -> None:
    """A y-axis that is linear within ±`linear` and logarithmic beyond, and says so where it names its quantity."""
    axis.set_yscale("symlog", linthresh=linear)
    axis.set_ylabel(f"{quantity}\n(symlog: linear within ±{linear:g}, grey)" if quantity else "")
    axis.axhspan(-linear, linear, color="#F3F3F3", linewidth=0, zorder=0)


def same_range(axes: Any) -> None:
    """One y-range for panels that are compared."""
    ends = [axis.get_ylim() for axis in axes]
    for axis in axes:
        axis.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
