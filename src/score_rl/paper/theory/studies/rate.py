"""The study of the theorem: gaps against K for three schedules, and pessimistic OPO on data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from score_rl.paper.theory.data import draw_counts, empirical_model
from score_rl.paper.theory.estimates import power_law_slope
from score_rl.paper.theory.mdp import FiniteMDP, visitation
from score_rl.paper.theory.rate import (
    SCHEDULES,
    divergence_to_behaviour,
    gaps_against_iterations,
    pessimistic_widths,
    rate_bound,
    total_weight,
    zeta,
)
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.over_data_sets import XI
from score_rl.paper.theory.studies.problem import ALPHA, random_problem_of
from score_rl.report import drawing as fig

STYLES = {"stated": (fig.VERMILION, "^"), "inverse": (fig.BLUE, "s"), "balanced": (fig.BLACK, "o")}
LABELS = {
    "stated": "$\\eta=\\sqrt{\\zeta/K}$, as stated",
    "inverse": "$\\eta=\\sqrt{K/\\zeta}$, inverse",
    "balanced": "$\\eta=\\sqrt{KG/C}$, balanced",
}
INVERSE, BALANCED = SCHEDULES.index("inverse"), SCHEDULES.index("balanced")


class Measured(NamedTuple):
    """Gaps with exact Q_k by schedule and K, and with pessimistic Q_k from data by N."""

    lengths: list[int]  # K
    etas: np.ndarray  # η_k + λ_k by schedule and K, as the gaps are
    average: np.ndarray
    smallest: np.ndarray
    last_plain: np.ndarray
    bounds: np.ndarray
    data: dict[int, dict[str, Any]]  # by N: the gaps with η = √(K/ζ), and ε_Pess as `error`
    tail: list[int]  # places in `lengths` to which slopes are fitted

    @property
    def tail_lengths(self) -> np.ndarray:
        return np.array(self.lengths)[self.tail]

    def slopes(self, values: np.ndarray) -> dict[str, float]:
        """The power of K that each schedule's values follow at the end."""
        fitted = (power_law_slope(self.tail_lengths, mine[self.tail])[0] for mine in values)
        return dict(zip(SCHEDULES, fitted, strict=True))


def measure(mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray, seed: int, quick: bool) -> Measured:
    lengths = [2**i for i in range(0, 8 if quick else 14)]
    runs = [(s, k, total_weight(s, mdp, pi_star, pi_0, ALPHA, k)) for s in SCHEDULES for k in lengths]
    exact = gaps_against_iterations(mdp, pi_0, ALPHA, [k for _, k, _ in runs], [e for _, _, e in runs])

    def by_schedule(values: Any) -> np.ndarray:
        return np.asarray(values).reshape(len(SCHEDULES), -1)

    return Measured(
        lengths,
        by_schedule([eta for _, _, eta in runs]),
        by_schedule(exact.average),
        by_schedule(exact.smallest),
        by_schedule(exact.last_plain),
        by_schedule([rate_bound(mdp, pi_star, pi_0, ALPHA, k, e) for _, k, e in runs]),
        measure_on_data(mdp, pi_star, pi_0, lengths, [e for s, _, e in runs if s == "inverse"], seed, quick),
        [i for i, k in enumerate(lengths) if k >= (16 if quick else 256)],
    )


def measure_on_data(
    mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray, lengths: list[int], etas: list[float], seed: int, quick: bool
) -> dict[int, dict[str, Any]]:
    """Pessimistic OPO on one data set of each size."""
    along = visitation(mdp, pi_star, mdp.d0)
    found: dict[int, dict[str, Any]] = {}
    for size in (10**5,) if quick else (10**3, 10**5):
        counts = draw_counts(mdp, pi_0, size, 1, seed)[0]
        estimate = empirical_model(counts, mdp.R, mdp.gamma)
        widths = pessimistic_widths(estimate.visits, pi_0, mdp.gamma, XI, ALPHA ** np.arange(max(lengths)))
        gaps = gaps_against_iterations(mdp, pi_0, ALPHA, lengths, etas, estimate, widths)
        per_step = 2.0 * np.einsum("sa,ksa->k", along, widths)
        found[size] = {
            "average": gaps.average,
            "smallest": gaps.smallest,
            "last_plain": gaps.last_plain,
            "error": np.array([per_step[:k].mean() for k in lengths]),
        }
    return found


def rows_of(found: Measured) -> list[tuple[str, ...]]:
    lengths = found.lengths
    return [
        (
            s,
            f"{lengths[i]:,}",
            f"{found.etas[j, i]:.3g}",
            f"{max(found.smallest[j, i], 0.0):.2e}",
            f"{found.average[j, i]:.4f}",
            f"{found.bounds[j, i]:.4g}",
            f"{max(found.last_plain[j, i], 0.0):.2e}",
        )
        for j, s in enumerate(SCHEDULES)
        for i in (0, len(lengths) // 2, len(lengths) - 1)
    ]


def draw(found: Measured) -> Any:
    figure, axes = fig.new_figure(1, 3, 4.1, 4.6)
    draw_exact(axes[0, 0], axes[0, 1], found)
    draw_on_data(axes[0, 2], found)
    for axis in axes[0]:
        fig.log_axes(axis)
    for axis in axes[0]:
        fig.legend_below(axis, 1)
    return figure


def draw_exact(averages: Any, smallest: Any, found: Measured) -> None:
    lengths, slopes = found.lengths, found.slopes(found.average)
    for j, s in enumerate(SCHEDULES):
        colour, marker = STYLES[s]
        fig.line(averages, lengths, found.average[j], f"{LABELS[s]} ({slopes[s]:+.2f})", colour, marker=marker)
        averages.plot(lengths, found.bounds[j], color=colour, linestyle="--", linewidth=1)
        fig.line(smallest, lengths, np.maximum(found.smallest[j], 1e-14), LABELS[s], colour, marker=marker)
    averages.plot([], [], color=fig.GREY, linestyle="--", label="bound of the same colour")
    guide = found.average[INVERSE, found.tail[0]] * (found.tail_lengths / found.tail_lengths[0]) ** -0.5
    averages.plot(found.tail_lengths, guide * 0.5, color=fig.GREY, linestyle=":", label="slope $-1/2$")
    fig.name_axes(averages, "$K$", "AveSubOptGap$(K)$", "Exact $Q_k$: the average gap (fitted slope)")
    fig.name_axes(smallest, "$K$", "SubOptGap$(K)$  (shown from $10^{-14}$)", "Exact $Q_k$: the smallest gap")


def draw_on_data(axis: Any, found: Measured) -> None:
    for (size, values), colour, marker in zip(found.data.items(), (fig.ORANGE, fig.GREEN), ("D", "v"), strict=False):
        power = round(np.log10(size))
        fig.line(axis, found.lengths, values["average"], f"AveSubOptGap, $N=10^{power}$", colour, marker=marker)
        label = f"bound with $\\varepsilon_{{\\mathrm{{Pess}}}}$, $N=10^{power}$"
        bound = found.bounds[INVERSE] + values["error"]
        axis.plot(found.lengths, bound, color=colour, linestyle="--", linewidth=1, label=label)
    fig.line(axis, found.lengths, found.average[INVERSE], "AveSubOptGap, exact $Q_k$", fig.BLUE, marker="s")
    fig.name_axes(axis, "$K$", "AveSubOptGap$(K)$", "Pessimistic $Q_k$ from data, $\\eta=\\sqrt{K/\\zeta}$")


def verdicts_of(found: Measured, z: float, divergence: float) -> list[str]:
    average, smallest, bounds, first = found.average, found.smallest, found.bounds, found.tail_lengths[0]
    slopes, bound_slopes = found.slopes(average), found.slopes(bounds)
    under = bool((average <= bounds + 1e-12).all())
    data_under = all(bool((v["average"] <= bounds[INVERSE] + v["error"]).all()) for v in found.data.values())
    return [
        f"ζ = {z:.2f}, C = {divergence:.2f}. Fitted for K ≥ {first}, AveSubOptGap(K) goes like "
        f"K^{slopes['inverse']:.2f} with η = √(K/ζ) and like K^{slopes['balanced']:.2f} with the balanced η; "
        f"the bounds go like K^{bound_slopes['inverse']:.2f} and K^{bound_slopes['balanced']:.2f}. "
        f"SubOptGap(K), the smallest gap, is {smallest[INVERSE, found.tail[0]]:.1e} at K = {first} with η = √(K/ζ), "
        "far below.",
        f"With η = √(ζ/K) as stated the derived bound goes like K^{bound_slopes['stated']:+.2f}: "
        "the theorem's rate does not follow. The iterates still converge, because Q_k is exact here and a small η "
        "makes OPO almost policy iteration.",
        f"Every average gap is {'under' if under else 'NOT under'} its bound, and pessimistic OPO on data is "
        f"{'under' if data_under else 'NOT under'} its bound with ε_Pess: at K = {found.lengths[-1]:,} the average gap "
        "is "
        + " and ".join(
            f"{v['average'][-1]:.3f} (ε_Pess = {v['error'][-1]:.1f}) for N = {n:,}" for n, v in found.data.items()
        )
        + ".",
        f"SubOptGap is a minimum over different MDPs: at K = 1 it is {smallest[BALANCED, 0]:.3f}, measured in M_λ with "
        f"λ = 1, where π_0 is nearly optimal; the plain gap of π_0 is {found.last_plain[BALANCED, 0]:.3f}.",
    ]


def rate(seed: int, quick: bool) -> Findings:
    """SubOptGap(K) and AveSubOptGap(K) against K for three schedules, and pessimistic OPO on data."""
    mdp, pi_star, pi_0 = random_problem_of(seed)
    found = measure(mdp, pi_star, pi_0, seed, quick)
    z = zeta(mdp, pi_star, pi_0, ALPHA)
    return Findings(
        f"Theorem: gap against K, α = {ALPHA}, γ = {mdp.gamma}, exact Q_k",
        ("schedule", "K", "η_k+λ_k", "SubOptGap(K)", "AveSubOptGap(K)", "derived bound", "plain gap of π_{K-1}"),
        rows_of(found),
        verdicts_of(found, z, divergence_to_behaviour(mdp, pi_star, pi_0)),
        {
            "zeta": z,
            "lengths": found.lengths,
            "schedules": SCHEDULES,
            "average": found.average,
            "smallest": found.smallest,
            "bounds": found.bounds,
            "slopes": found.slopes(found.average),
            "bound_slopes": found.slopes(found.bounds),
            "data": {str(size): values for size, values in found.data.items()},
        },
        {"rate": draw(found)},
    )
