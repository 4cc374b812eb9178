"""The study of the ridge quantifier on a linear MDP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from score_rl.paper.theory.data import draw_counts
from score_rl.paper.theory.examples import behaviour_policy
from score_rl.paper.theory.linear import RidgeJudged, judge_linear_data_sets, random_linear_mdp
from score_rl.paper.theory.mdp import optimal
from score_rl.paper.theory.studies.clipping import clipped_line, name_clipped
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.findings import judged as verdict
from score_rl.paper.theory.studies.over_data_sets import XI, frequency, frequency_text, only
from score_rl.report import drawing as fig

FLOOR = 1e-5  # of the picture


def row_of(size: int, judged: RidgeJudged) -> tuple[str, ...]:
    return (
        f"{size:,}",
        frequency_text(judged.event),
        f"{judged.smallest_iota.min():+.1e}",
        f"{judged.largest_excess.max():+.1e}",
        f"{judged.pessimistic.suboptimality.mean():.4f}",
        f"{judged.bound.mean():.3f}",
        f"{abs(judged.greedy.suboptimality.mean()):.4f}",
        f"{np.quantile(judged.ratio, 1 - XI):.4f}",
        f"{judged.residual.max():.0e}",
    )


def draw(sizes: Sequence[int], results: Sequence[RidgeJudged], means: dict[str, np.ndarray]) -> Any:
    figure, axes = fig.new_figure(1, 2, 4.6, 3.7)
    bound = "$\\sum_t 2\\gamma^t\\,\\mathrm{E}_{\\pi^*}[U]$, the bound"
    fig.line(axes[0, 0], sizes, means["bound"], bound, fig.BLACK, linestyle="--")
    hidden = [
        clipped_line(axes[0, 0], sizes, means["pessimistic"], "pessimistic", fig.BLUE, FLOOR, marker="s"),
        clipped_line(axes[0, 0], sizes, means["greedy"], "greedy", fig.VERMILION, FLOOR),
    ]
    if any(hidden):
        name_clipped(axes[0, 0], FLOOR)
    blind = blind_sizes(sizes, results)
    if blind:
        axes[0, 0].axvspan(min(sizes) / 1.4, max(blind) * 1.4, color="#F3F3F3", linewidth=0, zorder=0)
        note, below = "$U$ exceeds\nevery value:\n$\\widehat{Q}=0$", (min(sizes), means["pessimistic"][0])
        axes[0, 0].annotate(note, below, (0, -50), textcoords="offset points", fontsize=8)
    fig.log_axes(axes[0, 0])
    fig.name_axes(axes[0, 0], "samples $N$", "SubOpt, mean", "Linear MDP, ridge quantifier")
    fig.legend_below(axes[0, 0])
    for r, n, colour in zip(results[1::2], sizes[1::2], (fig.SKY, fig.BLUE, fig.BLACK), strict=False):
        says = "$N = " + f"{n:,}".replace(",", "\\,") + "$" + (": $\\widehat{Q}=0$" if n in blind else "")
        fig.cumulative(axes[0, 1], r.ratio, says, colour)
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
    return figure


def blind_sizes(sizes: Sequence[int], results: Sequence[RidgeJudged]) -> list[int]:
    """The N at which U exceeds every value in every data set: Q̂ is clipped at zero, and no data are looked at.

    What is then left of |B̂Q̂ - BQ̂| is the bias of the ridge on the known rewards. It is nearly the same in all data
    sets of one size, so its distribution is a step.
    """
    return [n for n, r in zip(sizes, results, strict=True) if (r.largest_value == 0.0).all()]


def blindness(blind: Sequence[int]) -> str:
    if not blind:
        return "At every N some value is larger than U."
    return (
        f"Up to N = {max(blind):,} U exceeds every value in every data set. Q̂ is 0 everywhere there, pessimism takes "
        "the first action whatever the data say, and the curve of the event is a step. The jump after it is where "
        "values first exceed U."
    )


def linear(seed: int, quick: bool) -> Findings:
    """The ridge quantifier: confidence, the bound, and pessimism's price, against N."""
    sizes = [1000, 100_000] if quick else [300, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
    sets = 20 if quick else 300
    problem = random_linear_mdp(8, 4, 3, 0.8, np.random.default_rng(seed + 3))
    mdp = problem.mdp
    judged = judge_linear_data_sets(problem, draw_counts(mdp, behaviour_policy(mdp, 0.0), sizes, sets, seed), XI)
    results = [only(judged, slice(i * sets, (i + 1) * sets)) for i in range(len(sizes))]
    start = float(mdp.d0 @ optimal(mdp)[0].max(-1))
    means = {
        "pessimistic": np.array([r.pessimistic.suboptimality.mean() for r in results]),
        "greedy": np.array([r.greedy.suboptimality.mean() for r in results]),
        "bound": np.array([r.bound.mean() for r in results]),
    }
    pess, plain = means["pessimistic"], means["greedy"]
    all_held = all(r.event.all() for r in results)
    enough = max(np.quantile(r.ratio, 1 - XI) for r in results)
    under = all((r.pessimistic.suboptimality <= r.bound + 1e-9)[r.event].all() for r in results)
    likely = all(frequency(r.event)[2] >= 1 - XI for r in results)
    twice = all(
        (r.smallest_iota >= -1e-9)[r.event].all() and (r.largest_excess <= 1e-9)[r.event].all() for r in results
    )
    verdicts = [
        f"That the event has probability at least {1 - XI} {verdict(likely)}: it held in "
        f"{'every data set' if all_held else 'some data sets only'}. On it 0 ≤ ι ≤ 2U {verdict(twice)} and SubOpt "
        f"under its bound {verdict(under)}.",
        f"The derived width is wide: {enough:.3f}·U would have been enough. Pessimism costs {pess[0]:.2f} of "
        f"V* = {start:.2f} at N = {sizes[0]:,} and {pess[-1]:.4f} at N = {sizes[-1]:,}; "
        f"greedy costs {plain[0]:.4f} and {abs(plain[-1]):.4f}: "
        "with features that all pairs share there is little luck to be fooled by.",
        blindness(blind_sizes(sizes, results)),
    ]
    return Findings(
        f"Ridge form of the quantifier, linear MDP with d = 3, ξ = {XI}, {sets} data sets each",
        ("N", "Pr(E)", "min ι", "max ι-2U", "SubOpt pess.", "bound", "SubOpt greedy", "enough: c·U, c =", "residual"),
        [row_of(n, r) for n, r in zip(sizes, results, strict=True)],
        verdicts,
        {"sizes": sizes, "sets": sets, **means, "event": [frequency(r.event) for r in results]},
        {"linear": draw(sizes, results, means)},
    )
