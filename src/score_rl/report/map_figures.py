"""Maps: values over a plane, and the points at which they were taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from score_rl.report import drawing
from score_rl.report.figure_style import INK, plain, shared_legend, styled


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
    shared_legend(figure, axes.ravel(), len(maps))
    return figure
