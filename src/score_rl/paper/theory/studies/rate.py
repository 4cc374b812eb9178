"""The study of the theorem: gaps against K for four schedules at several α, and pessimistic OPO on data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from score_rl.paper.theory.data import draw_counts, empirical_model
from score_rl.paper.theory.estimates import power_law_slope
from score_rl.paper.theory.mdp import FiniteMDP
from score_rl.paper.theory.rate import (
    SCHEDULES,
    divergence_to_behaviour,
    gaps_against_iterations,
    pessimistic_errors,
    pessimistic_widths,
    rate_bound,
    steps_with_weight_one,
    total_weight,
    zeta,
)
from score_rl.paper.theory.studies.clipping import clipped_line, name_clipped, same_range
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.over_data_sets import XI
from score_rl.paper.theory.studies.problem import ALPHAS, random_problem_of
from score_rl.report import drawing as fig

STYLES = {
    "stated": (fig.VERMILION, "^", "$\\eta=\\sqrt{\\zeta/K}$, as stated"),
    "inverse": (fig.SKY, "s", "$\\eta=\\sqrt{K/\\zeta}$, inverse"),
    "corrected": (fig.BLUE, "D", "$\\eta=c^2\\sqrt{K/\\zeta}$, corrected"),
    "balanced": (fig.BLACK, "o", "$\\eta=\\sqrt{KG/C}$, balanced"),
}
ON_DATA = (0.5, 0.96)  # α of the runs on data, with the balanced η
FLOOR, CEILING = 1e-14, 1e4  # of the pictures: bounds above it say nothing about values of at most 10
BALANCED = SCHEDULES.index("balanced")


class Measured(NamedTuple):
    """Gaps with exact Q_k by schedule and K, and with pessimistic Q_k from data by N, at one α."""

    alpha: float
    lengths: list[int]  # K
    etas: np.ndarray  # η_k + λ_k by schedule and K, as the gaps are
    average: np.ndarray  # NaN where the energies overflowed
    smallest: np.ndarray
    last_plain: np.ndarray
    bounds: np.ndarray
    data: dict[int, dict[str, Any]]  # by N: the gaps with the balanced η, the bound, and ε_Pess as `error`
    tail: list[int]  # places in `lengths` to which slopes are fitted

    def slope(self, values: np.ndarray) -> float | None:
        """The power of K that values follow at the end; None where they are not all finite and positive."""
        mine = values[self.tail]
        if not np.isfinite(mine).all() or mine.min() <= 0.0:
            return None
        return power_law_slope(np.array(self.lengths)[self.tail], mine)[0]


def measure(alpha: float, problem: tuple[FiniteMDP, np.ndarray, np.ndarray], seed: int, quick: bool) -> Measured:
    mdp, pi_star, pi_0 = problem
    lengths = [2**i for i in range(0, 8 if quick else 14)]
    runs = [(s, k, total_weight(s, mdp, pi_star, pi_0, alpha, k)) for s in SCHEDULES for k in lengths]
    etas = [e for _, _, e in runs]
    exact = gaps_against_iterations(mdp, pi_0, alpha, [k for _, k, _ in runs], etas, allow_overflow=True)

    def by_schedule(values: Any) -> np.ndarray:
        return np.asarray(values).reshape(len(SCHEDULES), -1)

    return Measured(
        alpha,
        lengths,
        by_schedule(etas),
        by_schedule(exact.average),
        by_schedule(exact.smallest),
        by_schedule(exact.last_plain),
        by_schedule([rate_bound(mdp, pi_star, pi_0, alpha, k, e) for _, k, e in runs]),
        measure_on_data(alpha, problem, lengths, seed, quick) if alpha in ON_DATA else {},
        [i for i, k in enumerate(lengths) if k >= (16 if quick else 256)],
    )


def measure_on_data(
    alpha: float, problem: tuple[FiniteMDP, np.ndarray, np.ndarray], lengths: list[int], seed: int, quick: bool
) -> dict[int, dict[str, Any]]:
    """Pessimistic OPO on one data set of each size, with the balanced η."""
    mdp, pi_star, pi_0 = problem
    etas = [total_weight("balanced", mdp, pi_star, pi_0, alpha, k) for k in lengths]
    found: dict[int, dict[str, Any]] = {}
    for size in (10**5,) if quick else (10**3, 10**5):
        counts = draw_counts(mdp, pi_0, size, 1, seed)[0]
        estimate = empirical_model(counts, mdp.R, mdp.gamma)
        widths = pessimistic_widths(estimate.visits, pi_0, mdp.gamma, XI, alpha ** np.arange(max(lengths)))
        gaps = gaps_against_iterations(mdp, pi_0, alpha, lengths, etas, estimate, widths)
        per_step = pessimistic_errors(mdp, pi_star, widths)
        pairs = list(zip(lengths, etas, strict=True))
        found[size] = {
            "average": gaps.average,
            "smallest": gaps.smallest,
            "last_plain": gaps.last_plain,
            "error": np.array([per_step[:k].mean() for k in lengths]),
            "bound": np.array([rate_bound(mdp, pi_star, pi_0, alpha, k, e, from_data=True) for k, e in pairs]),
        }
    return found


def rows_of(found: Measured) -> list[tuple[str, ...]]:
    lengths = found.lengths
    return [
        (
            f"{found.alpha:g}",
            s,
            f"{lengths[i]:,}",
            f"{found.etas[j, i]:.3g}",
            *(
                ("overflow", "overflow", f"{found.bounds[j, i]:.4g}", "overflow")
                if np.isnan(found.average[j, i])
                else (
                    f"{max(found.smallest[j, i], 0.0):.2e}",
                    f"{found.average[j, i]:.4f}",
                    f"{found.bounds[j, i]:.4g}",
                    f"{max(found.last_plain[j, i], 0.0):.2e}",
                )
            ),
        )
        for j, s in enumerate(SCHEDULES)
        for i in (0, len(lengths) // 2, len(lengths) - 1)
    ]


def draw(found: dict[float, Measured]) -> Any:
    figure, axes = fig.new_figure(2, len(ALPHAS), 4.1, 3.6)
    for axis, mine in zip(axes[0], found.values(), strict=True):
        draw_exact(axis, mine)
    draw_smallest(axes[1, 0], found[ON_DATA[0]])
    for axis, alpha in zip(axes[1, 1:], ON_DATA, strict=True):
        draw_on_data(axis, found[alpha])
    for axis in axes.ravel():
        fig.log_axes(axis)
    same_range(axes[0])
    same_range(axes[1, 1:])
    for axis in axes[1]:
        fig.legend_below(axis, 1)
    fig.legend_below(axes[0, 1], 2)
    return figure


def look(schedule: str) -> dict[str, Any]:
    """Marker and width: the corrected schedule lies on the inverse one where c is near 1, and on the stated one where
    both hardly move. So those two are drawn wider."""
    wide: dict[str, Any] = {"inverse": {"markersize": 6.5, "linewidth": 3.5, "alpha": 0.6},
                            "stated": {"markersize": 8.0, "linewidth": 2.5}}.get(schedule, {})  # fmt: skip
    return {"marker": STYLES[schedule][1], **wide}


def draw_exact(axis: Any, found: Measured) -> None:
    for j, s in enumerate(SCHEDULES):
        colour, _, label = STYLES[s]
        fig.line(axis, found.lengths, found.average[j], label, colour, **look(s))
        shown = np.where(found.bounds[j] <= CEILING, found.bounds[j], np.nan)
        axis.plot(found.lengths, shown, color=colour, linestyle="--", linewidth=1)
    axis.plot(
        [], [], color=fig.GREY, linestyle="--", label=f"bound of that colour (up to $10^{{{np.log10(CEILING):.0f}}}$)"
    )
    tail = np.array(found.lengths)[found.tail]
    guide = 0.5 * found.average[BALANCED, found.tail[0]] * (tail / tail[0]) ** -0.5
    axis.plot(tail, guide, color=fig.GREY, linestyle=":", label="slope $-1/2$")
    missing = [s for j, s in enumerate(SCHEDULES) if np.isnan(found.average[j]).any()]
    note = f"; {', '.join(missing)}: overflow" if missing else ""
    fig.name_axes(axis, "$K$", "AveSubOptGap$(K)$", f"Exact $Q_k$, $\\alpha={found.alpha:g}${note}")


def draw_smallest(axis: Any, found: Measured) -> None:
    for j, s in enumerate(SCHEDULES):
        colour, _, label = STYLES[s]
        clipped_line(axis, found.lengths, found.smallest[j], label, colour, FLOOR, **look(s))
    name_clipped(axis, FLOOR)
    fig.name_axes(axis, "$K$", "SubOptGap$(K)$", f"Exact $Q_k$, $\\alpha={found.alpha:g}$: the smallest gap")


def draw_on_data(axis: Any, found: Measured) -> None:
    for (size, values), colour, marker in zip(found.data.items(), (fig.ORANGE, fig.GREEN), ("D", "v"), strict=False):
        power = round(np.log10(size))
        fig.line(axis, found.lengths, values["average"], f"AveSubOptGap, $N=10^{power}$", colour, marker=marker)
        label = f"bound with $\\varepsilon_{{\\mathrm{{Pess}}}}$, $N=10^{power}$"
        axis.plot(
            found.lengths, values["bound"] + values["error"], color=colour, linestyle="--", linewidth=1, label=label
        )
    fig.line(axis, found.lengths, found.average[BALANCED], "AveSubOptGap, exact $Q_k$", fig.BLACK)
    fig.name_axes(axis, "$K$", "AveSubOptGap$(K)$", f"Pessimistic $Q_k$ from data, balanced, $\\alpha={found.alpha:g}$")


def number(value: float | None) -> str:
    return "nothing that can be fitted" if value is None else f"K^{value:.2f}"


def verdict_at(found: Measured, problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> str:
    """ζ, the condition η ≥ 1, and the slopes, at one α."""
    mdp, pi_star, pi_0 = problem
    z, at_one = zeta(mdp, pi_star, pi_0, found.alpha), {
        s: steps_with_weight_one(s, mdp, pi_star, pi_0, found.alpha) for s in SCHEDULES
    }  # fmt: skip
    lost = [s for j, s in enumerate(SCHEDULES) if np.isnan(found.average[j]).any()]
    slopes = "; ".join(
        f"{s}: {number(found.slope(found.average[j]))} and {number(found.slope(found.bounds[j]))}"
        for j, s in enumerate(SCHEDULES)
        if s not in lost
    )
    overflow = f" With the {' and '.join(lost)} η the energies overflow float64: it is too small." if lost else ""
    first = np.array(found.lengths)[found.tail[0]]
    return (
        f"α = {found.alpha:g}, where ζ = {z:.3g}. For K ≥ {first} the average gap and its bound go like {slopes}."
        f"{overflow} η ≥ 1, which Lemma pi as printed needs, holds with the stated η for K ≤ {at_one['stated']:.3g}, "
        f"with the corrected one for K ≥ {at_one['corrected']:.2g}, with the balanced one for K ≥ "
        f"{at_one['balanced']:.2g}."
    )


def verdicts_of(found: dict[float, Measured], problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> list[str]:
    under = all(bool((m.average <= m.bounds + 1e-12)[~np.isnan(m.average)].all()) for m in found.values())
    data = [(m, n, v) for m in found.values() for n, v in m.data.items()]
    data_under = all(bool((v["average"] <= v["bound"] + v["error"]).all()) for _, _, v in data)
    middle = found[0.5]
    return [
        *(verdict_at(mine, problem) for mine in found.values()),
        f"Every average gap is {'under' if under else 'NOT under'} its bound, and pessimistic OPO on data is "
        f"{'under' if data_under else 'NOT under'} its bound with ε_Pess. At K = {middle.lengths[-1]:,} its average "
        "gap is "
        + ", ".join(
            f"{v['average'][-1]:.3f} (α = {m.alpha:g}, N = {n:,}, ε_Pess = {v['error'][-1]:.1f})" for m, n, v in data
        )
        + ".",
        f"SubOptGap is a minimum over different MDPs: at K = 1 it is {middle.smallest[BALANCED, 0]:.3f}, measured in "
        f"M_λ with λ = 1, where π_0 is nearly optimal; the plain gap of π_0 is {middle.last_plain[BALANCED, 0]:.3f}.",
    ]


def rate(seed: int, quick: bool) -> Findings:
    """SubOptGap(K) and AveSubOptGap(K) against K for four schedules at several α, and pessimistic OPO on data."""
    problem = random_problem_of(seed)
    found = {alpha: measure(alpha, problem, seed, quick) for alpha in ALPHAS}
    return Findings(
        f"Theorem: gap against K, γ = {problem[0].gamma}, exact Q_k",
        ("α", "schedule", "K", "η_k+λ_k", "SubOptGap(K)", "AveSubOptGap(K)", "derived bound", "plain gap of π_{K-1}"),
        [row for mine in found.values() for row in rows_of(mine)],
        verdicts_of(found, problem),
        {
            "divergence": divergence_to_behaviour(*problem),
            "schedules": SCHEDULES,
            "by_alpha": {
                f"{alpha:g}": {
                    "zeta": zeta(*problem, alpha),
                    "lengths": m.lengths,
                    "etas": m.etas,
                    "average": m.average,
                    "smallest": m.smallest,
                    "bounds": m.bounds,
                    "slopes": {s: m.slope(m.average[j]) for j, s in enumerate(SCHEDULES)},
                    "bound_slopes": {s: m.slope(m.bounds[j]) for j, s in enumerate(SCHEDULES)},
                    "data": {str(size): values for size, values in m.data.items()},
                }
                for alpha, m in found.items()
            },
        },
        {"rate": draw(found)},
    )
