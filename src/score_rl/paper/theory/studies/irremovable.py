"""The study of the claim that term (ii), and ε_Pess, cannot be removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from score_rl.paper.theory.data import EmpiricalModel, data_distribution, empirical_model
from score_rl.paper.theory.decomposition import decompose
from score_rl.paper.theory.estimates import power_law_slope
from score_rl.paper.theory.examples import behaviour_policy, chain
from score_rl.paper.theory.lower_bound import (
    greedy_rule,
    hardest_pair,
    hoeffding_width,
    least_worst_loss,
    loss,
    pessimistic_rule,
    worst_loss,
)
from score_rl.paper.theory.mdp import FiniteMDP, optimal
from score_rl.paper.theory.pessimism import pessimistic_value_iteration, suboptimality_bound
from score_rl.paper.theory.studies.findings import Findings, judged
from score_rl.paper.theory.studies.over_data_sets import TERMS, XI
from score_rl.paper.theory.uncertainty import leave_one_out
from score_rl.report import drawing as fig

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0)  # multiples of U
SIZE = 10**6  # rows of the data set of the chain


def known_chain() -> tuple[FiniteMDP, EmpiricalModel]:
    """A chain whose moves never slip, and data that visited every pair: the empirical model is the MDP itself."""
    mdp = chain(5, gamma=0.8, slip=0.0)
    counts = np.round(SIZE * data_distribution(mdp, behaviour_policy(mdp, 0.4)))
    return mdp, empirical_model(counts, mdp.R, mdp.gamma)


def terms_by_scale(mdp: FiniteMDP, estimate: EmpiricalModel) -> tuple[dict[str, np.ndarray], float]:
    """The decomposition of pessimistic value iteration with each multiple of U, and the bound with U."""
    pi_star = optimal(mdp)[1]
    width = leave_one_out(estimate.visits, mdp.gamma, XI)
    parts = []
    for scale in SCALES:
        q, pi = pessimistic_value_iteration(estimate, scale * width)
        parts.append(decompose(mdp, q, pi, pi_star))
    found = {field: np.array([getattr(p, field) for p in parts]) for _, field, _ in TERMS}
    return found, float(suboptimality_bound(mdp, width, pi_star))


def draw(terms: dict[str, np.ndarray], sizes: list[int], losses: dict[str, np.ndarray]) -> Any:
    figure, axes = fig.new_figure(1, 2, 4.8, 4.0)
    left, right = axes[0]
    for label, field, colour in TERMS:
        wide = {"linewidth": 5.0, "markersize": 9.0, "alpha": 0.4} if field == "optimisation_error" else {}
        fig.line(left, SCALES, terms[field], label, colour, **wide)
    fig.name_axes(left, "multiple of $U$", "term", "A chain that the data know: the penalty makes (ii)")
    fig.legend_below(left)
    looks = {
        "least": ("least worst loss of any algorithm", fig.BLACK, "o"),
        "greedy": ("greedy, worst over $p$: attains it", fig.VERMILION, "^"),
        "pessimistic": ("pessimistic, worst over $p$", fig.BLUE, "s"),
        "bound": ("bound $2U$ of pessimism", fig.GREY, "D"),
    }
    for name, (label, colour, marker) in looks.items():
        wide = {"linewidth": 4.0, "markersize": 8.0, "alpha": 0.5} if name == "greedy" else {}
        fig.line(right, sizes, losses[name], label, colour, marker=marker, **wide)
    fig.log_axes(right)
    fig.name_axes(
        right, "samples $n$ of the risky action", "loss", "One decision: nobody's worst case beats $1/\\sqrt{n}$"
    )
    fig.legend_below(right, 1)
    return figure


def irremovable(seed: int, quick: bool) -> Findings:
    """Term (ii) on one instance, and the least worst loss over a class of instances. Nothing here is random."""
    mdp, estimate = known_chain()
    terms, bound = terms_by_scale(mdp, estimate)
    sizes = [4, 64] if quick else [1, 4, 16, 64, 256, 1024]
    pairs = [hardest_pair(n) for n in sizes]
    widths = [hoeffding_width(n, XI) for n in sizes]
    losses = {
        "least": np.array([risk for _, risk in pairs]),
        "greedy": np.array([worst_loss(greedy_rule(n)) for n in sizes]),
        "pessimistic": np.array([worst_loss(pessimistic_rule(n, w)) for n, w in zip(sizes, widths, strict=True)]),
        "bound": 2.0 * np.array(widths),
    }
    attained = max(
        abs(max(loss(greedy_rule(n), 0.5 + d), loss(greedy_rule(n), 0.5 - d)) - least_worst_loss(n, d))
        for n, (d, _) in zip(sizes, pairs, strict=True)
    )
    slope, _ = power_law_slope(np.array(sizes), losses["least"])
    ratios = losses["bound"] / losses["least"]
    second = terms["intrinsic_uncertainty"]
    zero = bool(np.abs(terms["suboptimality"]).max() <= 1e-9 and second[-1] > 0.1 and abs(second[0]) <= 1e-9)
    rows: list[tuple[str, ...]] = [
        (f"chain, {scale:g}·U", *(f"{round(float(terms[field][i]), 4) + 0.0:+.4f}" for _, field, _ in TERMS), "", "")
        for i, scale in enumerate(SCALES)
    ]
    rows += [
        (f"one decision, n = {n}", "", "", "", "", f"{losses['least'][i]:.4f}", f"{losses['bound'][i]:.4f}")
        for i, n in enumerate(sizes)
    ]
    return Findings(
        "Is the intrinsic uncertainty irremovable?",
        ("problem", *(label for label, _, _ in TERMS), "least worst loss", "bound of pessimism"),
        rows,
        [
            f"That (ii) is removable on one instance {judged(zero)}: on a chain that the data know exactly (ii) is "
            f"{second[-1]:.2f} with the proven U and 0 without a penalty. SubOpt is 0 throughout, since (i) = -(ii): "
            "(ii) is no lower bound of SubOpt.",
            "Over a class it is not removable: no algorithm's worst loss on a pair of problems is below "
            f"{losses['least'][0]:.3f} at n = {sizes[0]} and {losses['least'][-1]:.4f} at n = {sizes[-1]:,}. It falls "
            f"like n^{slope:.2f}. That the majority rule, greedy, attains it {judged(attained <= 1e-12)}.",
            "So the paper's claim is right for the worst case of a class, in the rate 1/√n that U has, and not for "
            f"term (ii) of a given problem. Pessimism's bound 2U is {ratios.min():.0f} to {ratios.max():.0f} times "
            "that least worst loss.",
            "Pessimism does not attain it: its worst loss over all p is "
            f"{losses['pessimistic'][-1] / losses['greedy'][-1]:.1f} times that of greedy at n = {sizes[-1]:,}. What "
            "it buys is not a better worst case over p, but a loss that is small whenever π* is well known.",
        ],
        {"scales": SCALES, "terms": terms, "bound": bound, "sizes": sizes, "losses": losses, "slope": slope},
        {"irremovable": draw(terms, sizes, losses)},
    )
