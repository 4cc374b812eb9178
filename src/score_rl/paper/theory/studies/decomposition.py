"""The study of the decomposition: the three terms of suboptimality on three MDPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.paper.theory.data import draw_counts
from score_rl.paper.theory.examples import behaviour_policy, chain, gridworld, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP
from score_rl.paper.theory.pessimism import judge_data_sets
from score_rl.paper.theory.studies.clipping import same_range, symmetric_log
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.findings import judged as verdict
from score_rl.paper.theory.studies.over_data_sets import TERMS, XI, largest_residual
from score_rl.report import drawing as fig

ROUNDING = 1e-9
LINEAR = 0.01  # the terms are drawn linearly within ± this


def problems_of(seed: int) -> list[tuple[FiniteMDP, np.ndarray]]:
    """Three MDPs, each with a behaviour policy."""
    rng = np.random.default_rng(seed)
    problems = [random_mdp(6, 3, 0.8, rng, branching=3), chain(5, gamma=0.8), gridworld(3, gamma=0.8)]
    return [(mdp, behaviour_policy(mdp, 0.4)) for mdp in problems]


def _by_size(values: np.ndarray, sizes: int) -> np.ndarray:
    """The leading axis split into (sizes, sets)."""
    return values.reshape(sizes, -1, *values.shape[1:])


def _signed(value: float) -> str:
    """Four digits and a sign, without a negative zero."""
    return f"{round(float(value), 4) + 0.0:+.4f}"


def _draw(axis: Any, sizes: Sequence[int], means: Mapping[str, np.ndarray], title: str, *, labelled: bool) -> None:
    looks = dict(zip((field for _, field, _ in TERMS), ("^", "s", "D", "o"), strict=True))
    for label, field, colour in TERMS:
        wide = {"linewidth": 4.5, "markersize": 7.5, "alpha": 0.5} if field == "optimisation_error" else {}
        fig.line(axis, sizes, means[field], label, colour, **({"marker": looks[field], "markersize": 3.5} | wide))
    fig.log_axes(axis, ("x",))
    fig.name_axes(axis, "samples $N$", "", title)
    symmetric_log(axis, LINEAR, "mean over data sets" if labelled else "")


def decomposition(seed: int, quick: bool) -> Findings:
    """The three terms for greedy and pessimistic policies on three MDPs."""
    sizes = [100, 3000] if quick else [30, 100, 300, 1000, 10_000, 100_000, 1_000_000]
    sets = 30 if quick else 300
    problems = problems_of(seed)[: 1 if quick else 3]
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
            worst = max(worst, largest_residual(parts))
            worst_third = max(worst_third, float(parts.optimisation_error.max()))
            for i, n in enumerate(sizes):
                if i in (0, len(sizes) // 2, len(sizes) - 1):
                    rows.append((mdp.name, kind, f"{n:,}", *(_signed(means[f][i]) for _, f, _ in TERMS)))
            _draw(axes[row, column], sizes, means, f"{mdp.name}, {kind}", labelled=column == 0)
        on_event = judged.event
        events += int(on_event.sum())
        worst_first = max(worst_first, float(judged.pessimistic.false_correlation[on_event].max()))
    same_range(axes.ravel())
    fig.legend(axes[0, 0], loc="lower right")
    verdicts = [
        f"SubOpt = (i) + (ii) + (iii) {verdict(worst <= ROUNDING)}: within {worst:.1e} in every data set.",
        f"(iii) ≤ 0 for greedy policies {verdict(worst_third <= ROUNDING)}: it is at most {worst_third:.1e}.",
        f"(i) ≤ 0 under pessimism on the event, which held in {events} data sets, {verdict(worst_first <= ROUNDING)}: "
        f"it is at most {worst_first:.1e}.",
    ]
    return Findings(
        "The decomposition of suboptimality, means over data sets",
        ("MDP", "policy", "N", *(label for label, _, _ in TERMS)),
        rows,
        verdicts,
        numbers | {"largest_residual": worst, "largest_third": worst_third, "largest_first_on_event": worst_first},
        {"decomposition": figure},
    )
