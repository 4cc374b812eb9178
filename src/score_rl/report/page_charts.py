"""The figures of a page as data for its script, which shows values under the pointer, zooms and switches.

A still figure of the same curves stands beside the data: it is what a page shows without scripts.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from score_rl.report.curve_figures import Panel, Series, last_step, step_unit
from score_rl.report.figure_style import FAINT, INK
from score_rl.report.statistics import Estimate, Profile

SCRIPTS = ("chart_tools.js", "chart_curves.js", "chart_dots.js", "chart_start.js")  # in this order
MOST_POINTS = 400  # of a curve in a page: more than its pixels


class Dot(NamedTuple):
    """One line of a chart of dots."""

    label: str
    estimate: Estimate
    seeds: Sequence[float] = ()
    paper: float | None = None  # what it prints


def chart_script() -> str:
    """The script that draws the figures, in a function of its own: nothing of it is seen from elsewhere."""
    folder = resources.files("score_rl.report")
    return "(() => {\n" + "\n".join(folder.joinpath(name).read_text() for name in SCRIPTS) + "})();\n"


def script_checksum(script: str) -> str:
    """What a page's security policy allows: this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def chart_json(panel: Panel, styles: Mapping[str, tuple[str, Any]]) -> str:
    """A panel as JSON that can stand inside an element of a page."""
    unit = step_unit(max((last_step(series) for series in panel.series), default=0))
    data = {
        "kind": "curves",
        "title": panel.title,
        "quantity": panel.quantity,
        "logarithmic": panel.logarithmic and is_positive(panel),
        "unit": unit,
        "pointed": ("", " updates"),
        "lines": [{"label": label, "value": value} for label, value in panel.lines.items()],
        "series": [_series(series, *styles[series.label]) for series in panel.series],
    }
    return _safely(data)


def profiles_json(
    title: str, quantity: str, found: Mapping[str, Profile], styles: Mapping[str, tuple[str, Any]]
) -> str:
    """Profiles as curves over scores."""
    data = {
        "kind": "curves",
        "title": title,
        "quantity": "share of runs above",
        "logarithmic": False,
        "unit": (1, quantity),
        "pointed": ("above ", ""),
        "lines": [],
        "series": [
            {
                "label": method,
                **_look(*styles[method]),
                "mean": _curve(profile.thresholds, profile.share)
                | {"low": _rounded(profile.low), "high": _rounded(profile.high)},
                "runs": [],
                "broken": [],
            }
            for method, profile in found.items()
        ],
    }
    return _safely(data)


def dots_json(
    title: str,
    quantity: str,
    blocks: Mapping[str, Sequence[Dot]],
    colours: Mapping[str, str],
    *,
    level: int = 95,
    zero: str | None = None,
) -> str:
    """Numbers with intervals as JSON: a block for each name, a line for each method in it.

    `level` is what the intervals hold, in percent. `zero` names a line at 0, if there is one.
    """
    data = {
        "kind": "dots",
        "title": title,
        "quantity": quantity,
        "level": level,
        "zero": zero,
        "blocks": [
            {"name": name, "rows": [_row(dot, colours[dot.label]) for dot in dots]} for name, dots in blocks.items()
        ],
    }
    return _safely(data)


def _row(dot: Dot, colour: str) -> dict[str, Any]:
    """The mean where there are enough seeds for an interval or only one number; else the seeds alone."""
    estimate, seeds = dot.estimate, _rounded(np.asarray(dot.seeds, float))
    ends = _rounded(np.array([estimate.low, estimate.high])) if estimate.has_interval else [None, None]
    mean = None if seeds and not estimate.has_interval else _rounded(np.array([estimate.value]))[0]
    paper = None if dot.paper is None else dot.paper
    return {"label": dot.label, "colour": _in_page(colour), "value": mean, "low": ends[0], "high": ends[1],
            "seeds": seeds, "paper": paper}  # fmt: skip


def _safely(data: Any) -> str:
    # Nothing in it can end the element or begin another.
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026").replace(">", "\\u003e")


def _in_page(colour: str) -> str:
    """Ink has the colour of the page's text, in light and in dark alike."""
    return {INK: "currentColor", FAINT: "currentColor"}.get(colour, colour)


def is_positive(panel: Panel) -> bool:
    """Whether all values can be shown on a logarithmic axis."""
    return all((curve.values > 0).all() for series in panel.series for curve in (*series.runs, *series.broken))


def _series(series: Series, colour: str, dash: Any) -> dict[str, Any]:
    mean = None
    if series.mean is not None:
        chosen = _thinned(len(series.mean.steps))
        chosen = chosen[np.isfinite(series.mean.mean[chosen])]
        mean = _curve(series.mean.steps[chosen], series.mean.mean[chosen])
        if len(chosen) and np.isfinite([series.mean.low[chosen], series.mean.high[chosen]]).all():
            low, high = series.mean.low[chosen], series.mean.high[chosen]
            mean |= {"low": _rounded(low), "high": _rounded(high)}
    runs, broken = (
        [_curve(curve.steps[_thinned(len(curve.steps))], curve.values[_thinned(len(curve.steps))]) for curve in curves]
        for curves in (series.runs, series.broken)
    )
    return {
        "label": series.label,
        **_look(colour, dash),
        "mean": mean,
        "runs": runs,
        "broken": broken,
    }


def _look(colour: str, dash: Any) -> dict[str, str]:
    return {"colour": _in_page(colour), "dash": "" if dash == "-" else " ".join(f"{2 * part:g}" for part in dash[1])}


def _curve(steps: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    """A curve without what is not finite, which JSON cannot hold."""
    finite = np.isfinite(values)
    return {"x": steps[finite].tolist(), "y": _rounded(values[finite])}


def _rounded(values: np.ndarray) -> list[float]:
    """Five figures are more than a picture shows."""
    return [float(f"{value:.5g}") for value in values]


def _thinned(points: int) -> np.ndarray:
    """Places spread evenly over a curve, its last one among them."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round().astype(int))
