"""The study of Theo-SCORE: three forms of it over K, with the theorem's λ_k and η_k."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from score_rl.paper.theory.data import draw_counts, empirical_model
from score_rl.paper.theory.mdp import FiniteMDP
from score_rl.paper.theory.rate import Gaps, gaps_against_iterations, pessimistic_widths, total_weight
from score_rl.paper.theory.studies.clipping import clipped_line, name_clipped, same_range
from score_rl.paper.theory.studies.findings import Findings, judged
from score_rl.paper.theory.studies.over_data_sets import XI
from score_rl.paper.theory.studies.problem import random_problem_of
from score_rl.paper.theory.theo_score import FORMS, maximised_bound, total_weights
from score_rl.report import drawing as fig

DRAWN = ((0.5, "corrected"), (0.5, "balanced"), (0.96, "balanced"))  # α and the schedule of η
PRINTED = ((0.5, "stated"), (0.96, "stated"))  # the theorem's own η: above 1 for K < ζ only
CASES = (*DRAWN, *PRINTED)
SIZE = 10**5  # of the data set
FLOOR = 1e-14
LOOKS: dict[str, dict[str, Any]] = {
    "maximised": {"colour": fig.VERMILION, "marker": "^"},
    "stepped": {"colour": fig.SKY, "marker": "s", "linewidth": 4.0, "markersize": 7.0, "alpha": 0.7},
    "opo": {"colour": fig.BLACK, "marker": "o"},
}
LABELS = {
    "maximised": "Theo-SCORE, maximised",
    "stepped": "Theo-SCORE, natural step of length $1/\\eta_k$",
    "opo": "OPO",
}


class Measured(NamedTuple):
    """One case: gaps by form, with exact Q_k and from data; runs of a form for each K."""

    lengths: list[int]
    exact: dict[str, Gaps]
    data: dict[str, Gaps]
    bound: np.ndarray  # on AveSubOptGap(K) of the maximised form with exact Q_k


def measure(
    problem: tuple[FiniteMDP, np.ndarray, np.ndarray], case: tuple[float, str], seed: int, quick: bool
) -> Measured:
    mdp, pi_star, pi_0 = problem
    alpha, schedule = case
    powers = (2**i for i in range(1, 8 if quick else 14))
    etas = {k: total_weight(schedule, mdp, pi_star, pi_0, alpha, k) for k in powers}
    lengths = [k for k, eta in etas.items() if eta > 1.0]  # a step of length 1/η_k needs η_k > 0
    steps = max(lengths)
    estimate = empirical_model(draw_counts(mdp, pi_0, SIZE, 1, seed)[0], mdp.R, mdp.gamma)
    widths = pessimistic_widths(estimate.visits, pi_0, mdp.gamma, XI, alpha ** np.arange(steps))
    exact, data = {}, {}
    for form in FORMS:
        totals = np.stack([total_weights(form, alpha, steps, etas[k]) for k in lengths])
        exact[form] = gaps_against_iterations(mdp, pi_0, alpha, lengths, totals)
        data[form] = gaps_against_iterations(mdp, pi_0, alpha, lengths, totals, estimate, widths)
    bound = maximised_bound(mdp.gamma, alpha, -float(np.log(pi_0.min())), steps)
    return Measured(lengths, exact, data, np.array([bound[:k].mean() for k in lengths]))


def draw(found: dict[tuple[float, str], Measured]) -> Any:
    figure, axes = fig.new_figure(2, len(DRAWN), 4.1, 3.3)
    for column, (alpha, schedule) in enumerate(DRAWN):
        mine = found[alpha, schedule]
        above, below = axes[:, column]
        hidden = False
        for form in ("stepped", "opo", "maximised"):
            style = dict(LOOKS[form])
            colour = style.pop("colour")
            fig.line(above, mine.lengths, mine.exact[form].average, LABELS[form], colour, **style)
            hidden |= clipped_line(
                below, mine.lengths, mine.exact[form].last_plain, LABELS[form], colour, FLOOR, **style
            )
        above.plot(mine.lengths, mine.bound, color=fig.VERMILION, linestyle="--", linewidth=1, label="bound, maximised")
        if hidden:
            name_clipped(below, FLOOR)
        title = f"$\\alpha={alpha:g}$, $\\eta$ {schedule}"
        fig.name_axes(above, "$K$", "AveSubOptGap$(K)$", f"{title}: the average gap")
        fig.name_axes(below, "$K$", "$V^*-V^{\\pi_{K-1}}$", f"{title}: the last policy, plain")
    for axis in axes.ravel():
        fig.log_axes(axis)
    for line in axes:
        same_range(line)
        fig.legend_below(line[1], 2)
    return figure


def rows_of(found: dict[tuple[float, str], Measured]) -> list[tuple[str, ...]]:
    return [
        (
            f"{alpha:g}",
            schedule,
            form,
            f"{mine.lengths[i]:,}",
            f"{mine.exact[form].average[i]:.4f}",
            f"{max(mine.exact[form].smallest[i], 0.0):.1e}",
            f"{max(mine.exact[form].last_plain[i], 0.0):.1e}",
            f"{mine.data[form].average[i]:.4f}",
            f"{max(mine.data[form].last_plain[i], 0.0):.1e}",
        )
        for (alpha, schedule), mine in found.items()
        for form in FORMS
        for i in (len(mine.lengths) // 2, len(mine.lengths) - 1)
    ]


def relative(found: Measured) -> np.ndarray:
    """How far the stepped form's average gap is from OPO's, as a share of it, at every K."""
    return np.abs(found.exact["stepped"].average / found.exact["opo"].average - 1.0)


def printed(alpha: float, found: Measured) -> str:
    """What the theorem's own η leads to, at the largest K that it allows or that was tried."""
    listed = ", ".join(f"{max(float(found.exact[form].last_plain[-1]), 0.0):.2g} ({form})" for form in FORMS)
    return f"At α = {alpha:g} and K = {found.lengths[-1]:,} the last policies then miss {listed} of V*."


def verdicts_of(found: dict[tuple[float, str], Measured]) -> list[str]:
    under = all((m.exact["maximised"].average <= m.bound + 1e-12).all() for m in found.values())
    apart = np.max([[relative(found[case])[0], relative(found[case])[-1]] for case in DRAWN], axis=0)
    last = found[DRAWN[0]]
    k = last.lengths[-1]
    plain = {form: float(last.exact[form].last_plain[-1]) for form in FORMS}
    on_data = {form: float(last.data[form].last_plain[-1]) for form in FORMS}
    return [
        f"The derived bound on the maximised form {judged(under)}: its average gap falls like 1/K. At K = {k:,} it is "
        f"{last.exact['maximised'].average[-1]:.1e} where OPO has {last.exact['opo'].average[-1]:.1e}. The theorem's "
        "√(ζ/K) and its η are not needed for it: they are the price of small steps.",
        f"A natural gradient step of length 1/η_k and OPO differ in the average gap by up to {apart[0]:.0%} at the "
        f"smallest K, where η_k is near 0, and by at most {apart[1]:.1%} at the largest. That Theo-SCORE by policy "
        f"gradients has OPO's rate {judged(bool(apart[1] < 0.1))}.",
        "With the theorem's η as printed, η_0 > 0 holds for K < ζ only. "
        + " ".join(printed(alpha, found[alpha, schedule]) for alpha, schedule in PRINTED),
        f"With Q_k from {SIZE:,} samples the last policies at K = {k:,} miss "
        + ", ".join(f"{max(on_data[form], 0.0):.1e} ({form})" for form in FORMS)
        + " of V*; with exact Q_k "
        + ", ".join(f"{max(plain[form], 0.0):.1e}" for form in FORMS)
        + ".",
    ]


def theo_score(seed: int, quick: bool) -> Findings:
    """Three forms of Theo-SCORE against K, with exact Q_k and with pessimistic ones from data."""
    problem = random_problem_of(seed)
    found = {case: measure(problem, case, seed, quick) for case in CASES}
    return Findings(
        "Theo-SCORE over K, with λ_k = α^k and η_k = η - λ_k",
        ("α", "η", "form", "K", "AveSubOptGap", "SubOptGap", "last, plain", "Ave, from data", "last, from data"),
        rows_of(found),
        verdicts_of(found),
        {
            f"{alpha:g}-{schedule}": {
                "lengths": mine.lengths,
                "bound": mine.bound,
                "exact": {form: gaps._asdict() for form, gaps in mine.exact.items()},
                "data": {form: gaps._asdict() for form, gaps in mine.data.items()},
            }
            for (alpha, schedule), mine in found.items()
        },
        {"theo-score": draw(found)},
    )
