"""Facts and numbers as people read them on a page."""

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from score_rl.report.results import RETURN, UNCERTAINTY, Group, score_name
from score_rl.report.score_figures import AGGREGATE_TITLES
from score_rl.report.statistics import AGGREGATES, Estimate
from score_rl.report.tables import digits_of, escape_latex

MOST_LISTED = 12  # of a list among facts; the raw files have all of it
QUANTITIES = {RETURN: "return", UNCERTAINTY: "u(s, a)", "train/q": "Q(s, a)"}


def quantity_of(metric: str, groups: Iterable[Group]) -> str:
    """What a metric is called beside an axis."""
    return QUANTITIES.get(metric) or f"{score_name(run for group in groups for run in group.runs)} (%)"


def as_time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def device_name(provenance: Mapping[str, Any]) -> str:
    device = provenance.get("device", {})
    if not device:
        return "unknown"
    kind = device.get("kind", "unknown")
    if device.get("platform") == "cpu":
        return f"{provenance.get('cores', '?')} CPU cores"
    return kind if device.get("count", 1) == 1 else f"{device['count']} × {kind}"


def flat_facts(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts as one list of names and values."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flat_facts(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def as_number(value: Any) -> str:
    """A number or anything else as people read it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {as_number(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        more = len(value) - MOST_LISTED
        shown = ", ".join(map(as_number, value[:MOST_LISTED]))
        return f"{shown} and {more} more" if more > 0 else shown
    return str(value)


def as_interval(value: Estimate) -> str:
    if not value.has_interval:
        return "no interval"
    digits = digits_of(value.low, value.high)
    return f"{value.low:.{digits}f} to {value.high:.{digits}f}"


def aggregates_as_text(found: Mapping[str, Mapping[str, Estimate]]) -> tuple[str, str]:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("method", "aggregate", "value", "low_95", "high_95"))
    lines = [r"\begin{tabular}{l" + "r" * len(AGGREGATES) + "}", r"\hline"]
    lines += [" & ".join(["Method", *(AGGREGATE_TITLES[name] for name in AGGREGATES)]) + r" \\", r"\hline"]
    for method, mine in found.items():
        for name in AGGREGATES:
            ends = (repr(mine[name].low), repr(mine[name].high)) if mine[name].has_interval else ("", "")
            rows.writerow((method, name, repr(mine[name].value), *ends))
        cells = [
            f"{mine[name].value:.1f}" + (f" ({mine[name].low:.1f}, {mine[name].high:.1f})" if ends[0] else "")
            for name in AGGREGATES
        ]
        lines.append(" & ".join([escape_latex(method), *cells]) + r" \\")
    return text.getvalue(), "\n".join([*lines, r"\hline", r"\end{tabular}", ""])
