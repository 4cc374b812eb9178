"""The study of the bridge to practice: is the ensemble's standard deviation an epistemic uncertainty?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from score_rl.paper.theory.bridge import ARMS, Quality, Training, assess, query_points, train
from score_rl.paper.theory.studies.clipping import same_range
from score_rl.paper.theory.studies.findings import Findings
from score_rl.report import drawing as fig

SHOWN = (
    ("rank_one_step", "rank corr., one step"),
    ("rank_value", "rank corr., value"),
    ("rank_policy", "rank corr. at π(s)"),
    ("cover_beta", "cover βu"),
    ("cover_two", "cover 2u"),
    ("value_error", "mean |Q̄-Q^π|"),
    ("penalty", "mean u"),
    ("policy_return", "mean V^π"),
)
PANELS = (
    ("rank_one_step", "Spearman", "$u$ against $|\\mathcal{B}\\bar{Q}-\\widehat{\\mathcal{B}}\\bar{Q}|$"),
    ("rank_value", "Spearman", "$u$ against $|\\bar{Q}-Q^\\pi|$"),
    ("cover_beta", "share of $(s,a)$", "$|\\mathcal{B}\\bar{Q}-\\widehat{\\mathcal{B}}\\bar{Q}| \\leq \\beta u$"),
    ("cover_two", "share of $(s,a)$", "$|\\mathcal{B}\\bar{Q}-\\widehat{\\mathcal{B}}\\bar{Q}| \\leq 2u$"),
    ("penalty", "mean over $(s,a)$", "ensemble standard deviation $u$"),
    ("policy_return", "mean over $s$", "value of the policy, $V^\\pi$"),
)
LOOKS = {
    "none": ("$\\lambda=0$", fig.VERMILION, "^"),
    "annealed": ("$\\lambda$ annealed", fig.BLUE, "o"),
    "constant": ("$\\lambda=1$", fig.GREEN, "s"),
}
Late = Callable[[str, int], tuple[float, float]]  # (quantity, arm): mean and standard deviation over seeds


def draw(quality: Quality, steps: np.ndarray) -> Any:
    figure, axes = fig.new_figure(2, 3, 3.9, 2.9)
    for axis, (field, y, title) in zip(axes.ravel(), PANELS, strict=True):
        for i, arm in enumerate(ARMS):
            weight, colour, marker = LOOKS[arm]
            fig.band(axis, steps, getattr(quality, field)[i], weight, colour, marker=marker, markersize=3)
        if field.startswith("cover"):
            axis.set_ylim(-0.03, 1.03)
        fig.name_axes(axis, "step", y, title)
    same_range(axes[0, :2])
    fig.legend(axes[1, 2], loc="lower right")
    return figure


def verdicts_of(late: Late, seeds: int, fully_covered: float) -> list[str]:
    none, annealed = ({field: late(field, i) for field, _ in SHOWN} for i in (0, 1))

    def compared(field: str) -> str:
        difference = annealed[field][0] - none[field][0]
        scale = float(np.hypot(annealed[field][1], none[field][1]) / np.sqrt(seeds))
        verdict = "no clear difference" if abs(difference) < 2 * scale else "higher" if difference > 0 else "lower"
        return f"{annealed[field][0]:.2f} against {none[field][0]:.2f} ({verdict})"

    return [
        f"Annealed against no cloning, second half of training, {seeds} seeds. Rank correlation of u with the one-step "
        f"error: {compared('rank_one_step')}; with the value error: {compared('rank_value')}.",
        f"Coverage by U = βu: {compared('cover_beta')}; by 2u: {compared('cover_two')}. The event of "
        f"Definition ξ-Uncertainty Quantifier, all points at once, holds for U = βu at {fully_covered:.0%} of the "
        "checkpoints.",
        f"Value of the policy: {compared('policy_return')}; error of Q̄: {compared('value_error')}.",
    ]


def bridge(seed: int, quick: bool) -> Findings:
    """Rank correlation and coverage over training for the three weights of behaviour cloning."""
    training = Training(steps=60, d_bc=1, checkpoints=3, samples=100) if quick else Training()
    seeds = 2 if quick else 5
    query = query_points(11 if quick else 31)
    quality: Quality = assess(training, train(training, seeds, seed), query)
    steps = np.arange(1, training.checkpoints + 1) * (training.steps // training.checkpoints)
    second_half = slice(training.checkpoints // 2, None)

    def late(field: str, arm: int) -> tuple[float, float]:
        """Mean over the second half of training, and its standard deviation over seeds."""
        values = getattr(quality, field)[arm][:, second_half].mean(1)
        return float(values.mean()), float(values.std(ddof=1))

    rows = [
        (arm, *(f"{late(field, i)[0]:.3f} ± {late(field, i)[1]:.3f}" for field, _ in SHOWN))
        for i, arm in enumerate(ARMS)
    ]
    fully_covered = float((quality.cover_beta[:, :, second_half] == 1.0).mean())
    return Findings(
        "Ensemble standard deviation against the exact epistemic error, second half of training",
        ("λ", *(label for _, label in SHOWN)),
        rows,
        verdicts_of(late, seeds, fully_covered),
        {"seeds": seeds, "steps": steps, "arms": ARMS, **quality._asdict()},
        {"bridge": draw(quality, steps)},
    )
