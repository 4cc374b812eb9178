"""The study of where the paper's statements and proofs disagree."""

from __future__ import annotations

import numpy as np

from score_rl.paper.theory.corrections import all_corrections
from score_rl.paper.theory.studies.findings import Findings
from score_rl.report import drawing as fig


def corrections(seed: int, quick: bool) -> Findings:
    """Every correction, with how far the printed and the corrected version are from holding."""
    found = all_corrections(seed)
    figure, axes = fig.new_figure(1, 1, 7.5, 4.2)
    axis = axes[0, 0]
    height = np.arange(len(found))[::-1]
    floor = 1e-17
    axis.scatter(
        [max(c.paper, floor) for c in found], height, color=fig.VERMILION, marker="^", label="as printed", zorder=3
    )
    axis.scatter([max(c.ours, floor) for c in found], height, color=fig.BLUE, marker="o", label="corrected", zorder=3)
    axis.set_yticks(height, [c.where for c in found], fontsize=8)
    fig.log_axes(axis, ("x",))
    fig.name_axes(axis, "violation (shown from $10^{-17}$)", "", "How far each version is from holding")
    fig.legend(axis, loc="upper center")
    verdicts = [
        f"{sum(c.paper > 1e-9 for c in found)} of {len(found)} printed statements fail on the instance; "
        f"{sum(c.ours > 1e-9 for c in found)} of the corrected ones do."
    ]
    return Findings(
        "Where the paper's statements and proofs disagree",
        ("where", "as printed", "corrected", "printed is off by", "corrected is off by"),
        [(c.where, c.printed, c.corrected, f"{c.paper:.2e}", f"{c.ours:.1e}") for c in found],
        verdicts,
        {"corrections": [c._asdict() for c in found]},
        {"corrections": figure},
    )
