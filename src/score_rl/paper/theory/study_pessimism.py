"""Studies of the paper's section 2: false correlation, the decomposition, the quantifiers and their confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from score_rl.paper.theory.data import draw_counts
from score_rl.paper.theory.decomposition import Decomposition
from score_rl.paper.theory.estimates import clopper_pearson
from score_rl.paper.theory.examples import (
    behaviour_policy,
    cautious_driver,
    chain,
    gridworld,
    lucky_green_lights,
    random_mdp,
)
from score_rl.paper.theory.linear import judge_linear_data_sets, random_linear_mdp
from score_rl.paper.theory.mdp import FiniteMDP, optimal
from score_rl.paper.theory.pessimism import Judged, judge_data_sets
from score_rl.paper.theory.studies import Findings
from score_rl.paper.theory.uncertainty import QUANTIFIERS
from score_rl.report import drawing as fig

XI = 0.1
TERMS = (
    ("(i) false correlation", "false_correlation", fig.VERMILION),
    ("(ii) intrinsic uncertainty", "intrinsic_uncertainty", fig.BLUE),
    ("(iii) optimisation error", "optimisation_error", fig.GREEN),
    ("SubOpt", "suboptimality", fig.BLACK),
)


def _by_size(values: np.ndarray, sizes: int) -> np.ndarray:
    """The leading axis split into (sizes, sets)."""
    return values.reshape(sizes, -1, *values.shape[1:])


def _only(judged: Any, index: Any) -> Any:
    """The same named tuple, nested ones included, for some of the data sets."""
    return type(judged)(*(_only(x, index) if isinstance(x, tuple) else x[index] for x in judged))


def _signed(value: float) -> str:
    """Four digits and a sign, without a negative zero."""
    return f"{round(float(value), 4) + 0.0:+.4f}"


def _residual(parts: Decomposition) -> float:
    """How far the three terms are from summing to the suboptimality, at worst."""
    return float(np.abs(parts.total - parts.suboptimality).max())


def _interval(events: np.ndarray) -> tuple[float, float, float]:
    """The frequency of an event and its exact 95% interval."""
    low, high = clopper_pearson(int(events.sum()), events.size)
    return float(events.mean()), low, high


def _proportion(events: np.ndarray) -> str:
    share, low, high = _interval(events)
    return f"{share:.3f} [{low:.3f}, {high:.3f}]"


def green_lights(seed: int, quick: bool) -> Findings:
    """Greedy and pessimistic choices at the depot, against the number of samples and the multiple of U."""
    mdp = lucky_green_lights()
    sizes = [1000, 128000] if quick else [250, 1000, 4000, 16000, 64000, 256000]
    sets = 10 if quick else 400
    scales = [1.0, 0.3, 0.05]
    counts = draw_counts(mdp, cautious_driver(mdp), sizes, sets, seed)
    stacked = np.concatenate([counts] * len(scales))
    judged = judge_data_sets(mdp, stacked, XI, "leave_one_out", np.repeat(scales, len(counts)))
    best = mdp.actions - 1

    def split(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(scales), len(sizes), sets, *values.shape[1:])

    avenue = split(judged.first_action == best)
    event = split(judged.event)
    greedy_avenue = avenue[0, :, :, 0].mean(1)
    pessimistic_avenue = avenue[..., 1].mean(2)
    greedy_sub = split(judged.greedy.suboptimality)[0].mean(1)
    greedy_false = split(judged.greedy.false_correlation)[0].mean(1)
    pess_sub = split(judged.pessimistic.suboptimality).mean(2)

    rows = [
        (
            f"{n:,}",
            f"{greedy_avenue[i]:.3f}",
            f"{greedy_sub[i]:.4f}",
            f"{greedy_false[i]:+.4f}",
            *(f"{pessimistic_avenue[k, i]:.3f} / {event[k, i].mean():.3f}" for k in range(len(scales))),
        )
        for i, n in enumerate(sizes)
    ]
    figure, axes = fig.new_figure(1, 2, 4.4, 3.7)
    fig.line(axes[0, 0], sizes, greedy_avenue, "greedy", fig.VERMILION)
    for k, (scale, colour, marker) in enumerate(
        zip(scales, (fig.BLACK, fig.BLUE, fig.SKY), ("s", "^", "D"), strict=True)
    ):
        label = "pessimistic, $U$" if scale == 1.0 else f"pessimistic, ${scale}\\,U$"
        fig.line(axes[0, 0], sizes, pessimistic_avenue[k], label, colour, marker=marker)
    axes[0, 0].set_ylim(-0.03, 1.05)
    fig.log_axes(axes[0, 0], ("x",))
    fig.name_axes(axes[0, 0], "samples $N$", "share of data sets", "Takes the avenue, the better road")
    fig.legend_below(axes[0, 0])
    for label, field, colour in TERMS:
        values = split(getattr(judged.greedy, field))[0].mean(1)
        fig.line(axes[0, 1], sizes, values, label, colour)
    fig.log_axes(axes[0, 1], ("x",))
    fig.name_axes(axes[0, 1], "samples $N$", "mean over data sets", "Greedy: where its suboptimality comes from")
    fig.legend_below(axes[0, 1])
    worst = int(np.argmax(greedy_sub))
    first_right = next((sizes[i] for i in range(len(sizes)) if pessimistic_avenue[0, i] == 1.0), None)
    residual = max(_residual(judged.greedy), _residual(judged.pessimistic))
    small = pessimistic_avenue[2]
    verdicts = [
        f"Greedy leaves the better road in {1 - greedy_avenue[worst]:.0%} of data sets at N = {sizes[worst]:,}; "
        f"its false correlation is {greedy_false[worst]:+.4f} there and {greedy_false[-1]:+.4f} at N = {sizes[-1]:,}.",
        "Pessimism with the proven U "
        + (
            f"takes the avenue in every data set from N = {first_right:,} on; with fewer samples its values are "
            "clipped at zero everywhere and it has nothing to choose by."
            if first_right is not None
            else "needs more samples than were drawn here."
        ),
        f"{scales[2]}·U takes the avenue in at least {small.min():.1%} of data sets at every N, "
        f"and its event holds in {event[2].mean(1).min():.0%} to {event[2].mean(1).max():.0%} of them: "
        "the proof is more careful than need be.",
        f"The three terms sum to the suboptimality within {residual:.1e}.",
    ]
    return Findings(
        "Lucky green lights: greedy against pessimistic value iteration",
        ("N", "greedy: avenue", "SubOpt", "(i)", *(f"{s}·U: avenue / Pr(E)" for s in scales)),
        rows,
        verdicts,
        {
            "sizes": sizes,
            "sets": sets,
            "scales": scales,
            "greedy_avenue": greedy_avenue,
            "pessimistic_avenue": pessimistic_avenue,
            "event": event.mean(2),
            "greedy_suboptimality": greedy_sub,
            "greedy_false_correlation": greedy_false,
            "pessimistic_suboptimality": pess_sub,
        },
        {"green-lights": figure},
    )


def _problems(seed: int) -> list[tuple[FiniteMDP, np.ndarray]]:
    rng = np.random.default_rng(seed)
    problems = [random_mdp(6, 3, 0.8, rng, branching=3), chain(5, gamma=0.8), gridworld(3, gamma=0.8)]
    return [(mdp, behaviour_policy(mdp, 0.4)) for mdp in problems]


def decomposition(seed: int, quick: bool) -> Findings:
    """The three terms for greedy and pessimistic policies on three MDPs."""
    sizes = [100, 3000] if quick else [30, 100, 300, 1000, 10_000, 100_000, 1_000_000]
    sets = 30 if quick else 300
    problems = _problems(seed)[: 1 if quick else 3]
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {"sizes": sizes, "sets": sets}
    worst, worst_third, worst_first, events = 0.0, -np.inf, -np.inf, 0
    figure, axes = fig.new_figure(2, len(problems), 3.9, 2.9)
    for column, (mdp, behaviour) in enumerate(problems):
        judged = judge_data_sets(mdp, draw_counts(mdp, behaviour, sizes, sets, seed), XI)
        numbers[mdp.name] = {}
        for row, (kind, parts) in enumerate((("greedy", judged.greedy), ("pessimistic", judged.pessimistic))):
            means = {field: _by_size(getattr(parts, field), len(sizes)).mean(1) for _, field, _ in TERMS}
            numbers[mdp.name][kind] = means
            worst = max(worst, _residual(parts))
            worst_third = max(worst_third, float(parts.optimisation_error.max()))
            for i, n in enumerate(sizes):
                if i in (0, len(sizes) // 2, len(sizes) - 1):
                    rows.append((mdp.name, kind, f"{n:,}", *(_signed(means[f][i]) for _, f, _ in TERMS)))
            axis = axes[row, column]
            for label, field, colour in TERMS:
                fig.line(axis, sizes, means[field], label, colour, markersize=3)
            fig.log_axes(axis, ("x",))
            axis.set_yscale("symlog", linthresh=0.01)
            fig.name_axes(axis, "samples $N$", "mean over data sets" if column == 0 else "", f"{mdp.name}, {kind}")
        on_event = judged.event
        events += int(on_event.sum())
        worst_first = max(worst_first, float(judged.pessimistic.false_correlation[on_event].max()))
    fig.legend(axes[0, 0])
    verdicts = [
        f"The three terms sum to SubOpt within {worst:.1e} in every data set (asked for: 1e-9).",
        f"Term (iii) is at most {worst_third:.1e} for these greedy policies, as it must be.",
        f"Term (i) under pessimism is at most {worst_first:.1e} on the event (which held in {events} data sets).",
    ]
    return Findings(
        "The decomposition of suboptimality, means over data sets",
        ("MDP", "policy", "N", *(label for label, _, _ in TERMS)),
        rows,
        verdicts,
        numbers | {"largest_residual": worst, "largest_third": worst_third, "largest_first_on_event": worst_first},
        {"decomposition": figure},
    )


def coverage(seed: int, quick: bool) -> Findings:
    """Pr(E) with an exact interval, 0 ≤ ι ≤ 2U and the bound on the event, for three quantifiers."""
    sets = 30 if quick else 400
    sizes = [1000, 100_000] if quick else [300, 1000, 3000, 10_000, 30_000, 100_000]
    mdp = random_mdp(6, 3, 0.8, np.random.default_rng(seed), branching=3)
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.2), sizes, sets, seed)
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {"sizes": sizes, "sets": sets, "xi": XI}
    figure, axes = fig.new_figure(1, 2, 4.8, 4.0)
    event_axis, bound_axis = axes[0]
    colours = dict(zip(QUANTIFIERS, (fig.VERMILION, fig.BLUE, fig.GREEN), strict=True))
    holds = {"probability": True, "iota": True, "bound": True}
    enough = 0.0
    for name in QUANTIFIERS:
        everything: Judged = judge_data_sets(mdp, counts, XI, name)
        for i, size in enumerate(sizes):
            judged = _only(everything, slice(i * sets, (i + 1) * sets))
            held = judged.event
            share = _interval(held)
            smallest = float(judged.smallest_iota[held].min())
            excess = float(judged.largest_excess[held].max())
            sub, bound = judged.pessimistic.suboptimality, judged.bound
            multiple = float(np.quantile(judged.ratio, 1.0 - XI))
            enough = max(enough, multiple)
            holds["probability"] &= share[1] >= 1.0 - XI or (quick and share[2] >= 1.0 - XI)
            holds["iota"] &= smallest >= -1e-9 and excess <= 1e-9
            holds["bound"] &= bool((sub[held] <= bound[held] + 1e-9).all())
            if size in (1000, 10_000, 100_000):
                rows.append(
                    (
                        name.replace("_", " "),
                        f"{size:,}",
                        _proportion(held),
                        _proportion(judged.event_greedy),
                        f"{smallest:+.1e}",
                        f"{excess:+.1e}",
                        f"{abs(sub.mean()):.3f}",
                        f"{bound.mean():.3f}",
                        f"{multiple:.3f}",
                    )
                )
            numbers[f"{name}-{size}"] = {
                "probability": share,
                "probability_greedy": _interval(judged.event_greedy),
                "smallest_iota": smallest,
                "largest_excess": excess,
                "suboptimality": sub.mean(),
                "largest_suboptimality": sub.max(),
                "bound": bound.mean(),
                "smallest_bound": bound.min(),
                "sufficient_multiple": multiple,
                "sufficient_multiple_optimal": np.quantile(judged.ratio_optimal, 1.0 - XI),
            }
        label = name.replace("_", " ")
        fig.cumulative(event_axis, judged.ratio, f"{label}: $\\widehat{{Q}}$ of the data", colours[name])
        fig.cumulative(event_axis, judged.ratio_optimal, f"{label}: $Q^*$", colours[name], linestyle=":")
        at_size = [numbers[f"{name}-{size}"] for size in sizes]
        fig.line(
            bound_axis,
            sizes,
            [x["smallest_bound"] for x in at_size],
            f"{label}: smallest bound",
            colours[name],
            linestyle="--",
        )
        worst = [max(x["largest_suboptimality"], 1e-4) for x in at_size]
        fig.line(bound_axis, sizes, worst, f"{label}: largest SubOpt", colours[name], marker="s")
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
        "over all data sets  (shown from $10^{-4}$)",
        "SubOpt$(\\widehat{\\pi};s_0) \\leq \\sum_t 2\\gamma^t\\,\\mathrm{E}_{\\pi^*}[U(s_t,a_t)]$",
    )
    fig.legend_below(event_axis)
    fig.legend_below(bound_axis)
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
        {"coverage": figure},
    )


def linear(seed: int, quick: bool) -> Findings:
    """The ridge quantifier: confidence, the bound, and pessimism's price, against N."""
    sizes = [1000, 100_000] if quick else [300, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
    sets = 20 if quick else 300
    problem = random_linear_mdp(8, 4, 3, 0.8, np.random.default_rng(seed + 3))
    mdp = problem.mdp
    judged = judge_linear_data_sets(problem, draw_counts(mdp, behaviour_policy(mdp, 0.0), sizes, sets, seed), XI)
    results = [_only(judged, slice(i * sets, (i + 1) * sets)) for i in range(len(sizes))]
    start = float(mdp.d0 @ optimal(mdp)[0].max(-1))
    rows: list[tuple[str, ...]] = [
        (
            f"{n:,}",
            _proportion(r.event),
            f"{r.smallest_iota.min():+.1e}",
            f"{r.largest_excess.max():+.1e}",
            f"{r.pessimistic.suboptimality.mean():.4f}",
            f"{r.bound.mean():.3f}",
            f"{abs(r.greedy.suboptimality.mean()):.4f}",
            f"{np.quantile(r.ratio, 1 - XI):.4f}",
            f"{r.residual.max():.0e}",
        )
        for n, r in zip(sizes, results, strict=True)
    ]
    figure, axes = fig.new_figure(1, 2)
    pess = np.array([r.pessimistic.suboptimality.mean() for r in results])
    plain = np.array([r.greedy.suboptimality.mean() for r in results])
    bound = np.array([r.bound.mean() for r in results])
    fig.line(
        axes[0, 0], sizes, bound, "$\\sum_t 2\\gamma^t\\,\\mathrm{E}_{\\pi^*}[U]$, the bound", fig.BLACK, linestyle="--"
    )
    fig.line(axes[0, 0], sizes, np.maximum(pess, 1e-6), "pessimistic", fig.BLUE, marker="s")
    fig.line(axes[0, 0], sizes, np.maximum(plain, 1e-6), "greedy", fig.VERMILION)
    fig.log_axes(axes[0, 0])
    fig.name_axes(axes[0, 0], "samples $N$", "SubOpt, mean (shown from $10^{-6}$)", "Linear MDP, ridge quantifier")
    fig.legend(axes[0, 0])
    for r, n, colour in zip(results[1::2], sizes[1::2], (fig.SKY, fig.BLUE, fig.BLACK), strict=False):
        fig.cumulative(axes[0, 1], r.ratio, f"$N = {n:,}$".replace(",", "\\,"), colour)
    axes[0, 1].axhline(1.0 - XI, color=fig.GREY, linewidth=1, linestyle="--")
    axes[0, 1].axvline(1.0, color=fig.GREY, linewidth=1, linestyle="--")
    fig.log_axes(axes[0, 1], ("x",))
    fig.name_axes(
        axes[0, 1],
        "multiple $c$",
        "Pr$(|\\widehat{\\mathcal{B}}\\widehat{Q} - \\mathcal{B}\\widehat{Q}| \\leq c\\,U)$",
        "The event, against the multiple of $U$",
    )
    fig.legend(axes[0, 1])
    all_held = all(r.event.all() for r in results)
    enough = max(np.quantile(r.ratio, 1 - XI) for r in results)
    under = all((r.pessimistic.suboptimality <= r.bound + 1e-9)[r.event].all() for r in results)
    verdicts = [
        f"The event held in {'every' if all_held else 'not every'} data set; 0 ≤ ι ≤ 2U and the bound "
        f"{'held' if under else 'FAILED'} on it.",
        f"The derived width is wide: {enough:.3f}·U would have been enough. Pessimism costs {pess[0]:.2f} of "
        f"V* = {start:.2f} at N = {sizes[0]:,} and {pess[-1]:.4f} at N = {sizes[-1]:,}; "
        f"greedy costs {plain[0]:.4f} and {abs(plain[-1]):.4f}: "
        "with features that all pairs share there is little luck to be fooled by.",
    ]
    return Findings(
        f"Ridge form of the quantifier, linear MDP with d = 3, ξ = {XI}, {sets} data sets each",
        ("N", "Pr(E)", "min ι", "max ι-2U", "SubOpt pess.", "bound", "SubOpt greedy", "enough: c·U, c =", "residual"),
        rows,
        verdicts,
        {
            "sizes": sizes,
            "sets": sets,
            "pessimistic": pess,
            "greedy": plain,
            "bound": bound,
            "event": [_interval(r.event) for r in results],
        },
        {"linear": figure},
    )
