"""The study of Lemma "Equivalence between Theo-SCORE and OPO"."""

from __future__ import annotations

from typing import Any

import numpy as np

from score_rl.paper.theory.equivalence import explicit_natural_step, lemma_residual, random_problem, stationary_point
from score_rl.paper.theory.estimates import power_law_slope
from score_rl.paper.theory.studies.findings import Findings, judged
from score_rl.report import drawing as fig


def draw(residuals: np.ndarray, etas: np.ndarray, distances: np.ndarray, moves: np.ndarray) -> Any:
    figure, axes = fig.new_figure(1, 2, 4.4, 3.8)
    axes[0, 0].hist(np.log10(np.maximum(residuals, 1e-17)), bins=20, color=fig.BLUE, edgecolor="white")
    axes[0, 0].axvline(-8, color=fig.VERMILION, linestyle="--", linewidth=1.2, label="asked for: $10^{-8}$")
    fig.name_axes(
        axes[0, 0], "$\\log_{10}$ of the residual", "instances", "Lemma: residual at the stationary point $\\phi_{k+1}$"
    )
    fig.legend(axes[0, 0])
    length = "length of OPO's step $\\|\\phi_{k+1}-\\phi_k\\|_\\infty$"
    fig.line(axes[0, 1], etas, moves.mean(0), length, fig.BLACK, marker="s")
    fig.line(axes[0, 1], etas, distances.mean(0), "distance to the explicit natural gradient step", fig.BLUE)
    anchor = distances.mean(0)[-1] * (etas[-1] / etas) ** 2
    axes[0, 1].plot(etas, anchor, color=fig.GREY, linestyle=":", label="slope $-2$")
    fig.log_axes(axes[0, 1])
    fig.name_axes(axes[0, 1], "$\\eta_k$", "mean over instances", "OPO is an implicit natural gradient step")
    fig.legend_below(axes[0, 1], 1)
    return figure


def equivalence(seed: int, quick: bool) -> Findings:
    """The lemma's residual on random instances, and OPO's step against the explicit natural gradient step."""
    problems = [random_problem(np.random.default_rng([seed, i])) for i in range(4 if quick else 60)]
    residuals = np.array([lemma_residual(problem) for problem in problems])
    etas = np.logspace(0.5, 3.5, 4 if quick else 13)
    stepped = [[problem._replace(eta_k=float(eta)) for eta in etas] for problem in problems[: 2 if quick else 6]]
    distances = np.array(
        [[np.abs(explicit_natural_step(p) - stationary_point(p)).max() for p in mine] for mine in stepped]
    )
    moves = np.array([[np.abs(stationary_point(p) - p.phi_k).max() for p in mine] for mine in stepped])
    tail = slice(len(etas) // 2, None)
    slope, _ = power_law_slope(etas[tail], distances.mean(0)[tail])
    move_slope, _ = power_law_slope(etas[tail], moves.mean(0)[tail])
    first_order = abs(slope + 2.0) < 0.1 and abs(move_slope + 1.0) < 0.1
    rows: list[tuple[str, ...]] = [
        ("residual of the lemma, largest", f"{residuals.max():.2e}"),
        ("residual of the lemma, median", f"{np.median(residuals):.2e}"),
        ("slope of the step's length in η_k", f"{move_slope:.3f}"),
        ("slope of the distance to the explicit step", f"{slope:.3f}"),
    ]
    verdicts = [
        f"The lemma's equation {judged(residuals.max() <= 1e-8)} at OPO's stationary point: within "
        f"{residuals.max():.1e} on {len(problems)} random instances (asked for: 1e-8).",
        f"That OPO is an implicit natural gradient step of Theo-SCORE {judged(first_order)}: the step shrinks like "
        f"η_k^{move_slope:.2f}, its distance to the explicit step like η_k^{slope:.2f}: they agree to first order.",
    ]
    return Findings(
        "Equivalence between Theo-SCORE and OPO under the linear parameterisation",
        ("quantity", "value"),
        rows,
        verdicts,
        {"residuals": residuals, "etas": etas, "distances": distances, "moves": moves, "slope": slope},
        {"equivalence": draw(residuals, etas, distances, moves)},
    )
