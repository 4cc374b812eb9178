"""The study of the quantifiers: how often the event holds, and what follows on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from score_rl.paper.theory.data import draw_counts
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.pessimism import Judged, judge_data_sets
from score_rl.paper.theory.studies.clipping import clipped_line, name_clipped
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.over_data_sets import XI, frequency, frequency_text, only
from score_rl.paper.theory.uncertainty import QUANTIFIERS
from score_rl.report import drawing as fig

FLOOR = 1e-4  # of the picture's right panel
SHOWN = (1000, 10_000, 100_000)  # numbers of samples with a row in the table


def numbers_of(judged: Judged) -> dict[str, Any]:
    """What the data sets of one quantifier and size came to."""
    held = judged.event
    return {
        "probability": frequency(held),
        "probability_greedy": frequency(judged.event_greedy),
        "smallest_iota": float(judged.smallest_iota[held].min()),
        "largest_excess": float(judged.largest_excess[held].max()),
        "suboptimality": judged.pessimistic.suboptimality.mean(),
        "largest_suboptimality": judged.pessimistic.suboptimality.max(),
        "bound": judged.bound.mean(),
        "smallest_bound": judged.bound.min(),
        "sufficient_multiple": float(np.quantile(judged.ratio, 1.0 - XI)),
        "sufficient_multiple_optimal": np.quantile(judged.ratio_optimal, 1.0 - XI),
    }


def row_of(name: str, size: int, judged: Judged, found: dict[str, Any]) -> tuple[str, ...]:
    return (
        name.replace("_", " "),
        f"{size:,}",
        frequency_text(judged.event),
        frequency_text(judged.event_greedy),
        f"{found['smallest_iota']:+.1e}",
        f"{found['largest_excess']:+.1e}",
        f"{abs(found['suboptimality']):.3f}",
        f"{found['bound']:.3f}",
        f"{found['sufficient_multiple']:.3f}",
    )


def draw(sizes: Sequence[int], everything: dict[str, Judged], numbers: dict[str, Any]) -> Any:
    """The event against the multiple of U, and the bound against the largest suboptimality."""
    figure, axes = fig.new_figure(1, 2, 4.8, 4.0)
    event_axis, bound_axis = axes[0]
    hidden = False
    for name, colour, wide in zip(QUANTIFIERS, (fig.VERMILION, fig.BLUE, fig.GREEN), (7.0, 4.0, 1.5), strict=True):
        sets = len(everything[name].event) // len(sizes)
        judged = only(everything[name], slice(len(everything[name].event) - sets, None))
        label = name.replace("_", " ")
        fig.cumulative(event_axis, judged.ratio, f"{label}: $\\widehat{{Q}}$ of the data", colour)
        fig.cumulative(event_axis, judged.ratio_optimal, f"{label}: $Q^*$", colour, linestyle=":")
        at_size = [numbers[f"{name}-{size}"] for size in sizes]
        smallest = [x["smallest_bound"] for x in at_size]
        fig.line(bound_axis, sizes, smallest, f"{label}: smallest bound", colour, linestyle="--")
        worst, style = [x["largest_suboptimality"] for x in at_size], {"marker": "s", "linewidth": wide}
        hidden |= clipped_line(bound_axis, sizes, worst, f"{label}: largest SubOpt", colour, FLOOR, **style)
    if hidden:
        name_clipped(bound_axis, FLOOR)
    event_axis.axhline(1.0 - XI, color=fig.GREY, linewidth=1, linestyle="--")
    event_axis.axvline(1.0, color=fig.GREY, linewidth=1, linestyle="--")
    event_axis.text(0.9, 1.0 - XI - 0.01, "$1-\\xi$", ha="right", va="top", fontsize=9, color="#444444")
    fig.log_axes(event_axis, ("x",))
    fig.name_axes(
        event_axis,
        "multiple $c$",
        "Pr$(|\\widehat{\\mathcal{B}}Q - \\mathcal{B}Q| \\leq c\\,U$ everywhere$)$",
        f"The event against the multiple of $U$, $N={sizes[-1]}$",
    )
    fig.log_axes(bound_axis)
    fig.name_axes(
        bound_axis,
        "samples $N$",
        "over all data sets",
        "SubOpt$(\\widehat{\\pi};s_0) \\leq \\sum_t 2\\gamma^t\\,\\mathrm{E}_{\\pi^*}[U(s_t,a_t)]$",
    )
    fig.legend_below(event_axis)
    fig.legend_below(bound_axis)
    return figure


def coverage(seed: int, quick: bool) -> Findings:
    """Pr(E) with an exact interval, 0 ≤ ι ≤ 2U and the bound on the event, for three quantifiers."""
    sets = 30 if quick else 400
    sizes = [1000, 100_000] if quick else [300, 1000, 3000, 10_000, 30_000, 100_000]
    mdp = random_mdp(6, 3, 0.8, np.random.default_rng(seed), branching=3)
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.2), sizes, sets, seed)
    everything = {name: judge_data_sets(mdp, counts, XI, name) for name in QUANTIFIERS}
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {"sizes": sizes, "sets": sets, "xi": XI}
    holds = {"probability": True, "iota": True, "bound": True}
    enough = 0.0
    for name in QUANTIFIERS:
        for i, size in enumerate(sizes):
            judged = only(everything[name], slice(i * sets, (i + 1) * sets))
            found = numbers[f"{name}-{size}"] = numbers_of(judged)
            held, share = judged.event, found["probability"]
            enough = max(enough, found["sufficient_multiple"])
            holds["probability"] &= share[1] >= 1.0 - XI or (quick and share[2] >= 1.0 - XI)
            holds["iota"] &= found["smallest_iota"] >= -1e-9 and found["largest_excess"] <= 1e-9
            holds["bound"] &= bool((judged.pessimistic.suboptimality[held] <= judged.bound[held] + 1e-9).all())
            if size in SHOWN:
                rows.append(row_of(name, size, judged, found))
    verdicts = [
        f"Pr(E) ≥ 1-ξ = {1 - XI}: the exact 95% interval of {sets} data sets lies above it for "
        f"{'every' if holds['probability'] else 'NOT every'} quantifier and N.",
        f"On the event 0 ≤ ι ≤ 2U {'holds' if holds['iota'] else 'FAILS'}, and SubOpt is "
        f"{'under its bound in every data set' if holds['bound'] else 'NOT always under its bound'}.",
        f"{enough:.2f}·U at most would have been enough for the same confidence: Hoeffding ignores the variance "
        "of V̂(s').",
    ]
    return Findings(
        f"ξ-uncertainty quantifiers at ξ = {XI}, {sets} data sets each",
        ("U", "N", "Pr(E), Q̂ pess.", "Pr(E), Q̂ greedy", "min ι", "max ι-2U", "SubOpt", "bound", "enough: c·U, c ="),
        rows,
        verdicts,
        numbers | {"holds": holds},
        {"coverage": draw(sizes, everything, numbers)},
    )
