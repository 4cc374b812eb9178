"""The study of where the paper's statements and proofs disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from score_rl.paper.theory.corrections import Correction, all_corrections
from score_rl.paper.theory.studies.clipping import name_clipped
from score_rl.paper.theory.studies.findings import Findings
from score_rl.paper.theory.studies.problem import ALPHAS
from score_rl.report import drawing as fig

FLOOR, CEILING = 1e-17, 1e6  # of the picture
HOLDS = 1e-9  # a violation below this is rounding
LOOKS = dict(zip(ALPHAS, ("v", "^", ">"), strict=True))


def draw(found: dict[float, list[Correction]]) -> Any:
    """A row for each statement; printed and corrected, each at every α."""
    figure, axes = fig.new_figure(1, 1, 8.6, 6.6)
    axis = axes[0, 0]
    rows = found[ALPHAS[0]]
    height = np.arange(len(rows))[::-1]
    for kind, colour, size in (
        ("printed", fig.VERMILION, 60),
        ("corrected", fig.BLUE, 22),
    ):  # both may lie on the floor
        for offset, (alpha, marker) in zip((0.28, 0.0, -0.28), LOOKS.items(), strict=True):
            values = np.array([c.paper if kind == "printed" else c.ours for c in found[alpha]])
            shown = np.clip(values, FLOOR, CEILING)
            label, style = f"{kind}, $\\alpha={alpha:g}$", {"marker": marker, "s": size, "zorder": 3}
            axis.scatter(shown, height + offset, color=colour, label=label, **style)
            zero = values < FLOOR
            axis.scatter(shown[zero], (height + offset)[zero], facecolors="white", edgecolors=colour, **style)
            for x, y, value in zip(shown, height + offset, values, strict=True):
                if value > CEILING:
                    place = {"textcoords": "offset points", "ha": "left", "va": "center"}
                    axis.annotate(f"{value:.0e}", (x, y), (6, 0), fontsize=7, **place)
    name_clipped(axis, FLOOR)
    axis.set_yticks(height, [f"{c.where}\n({c.label})" for c in rows], fontsize=8)
    fig.log_axes(axis, ("x",))
    axis.set_xlim(FLOOR / 10, CEILING * 100)
    title = "How far each version is from holding"
    fig.name_axes(axis, "violation (beyond $10^{6}$ the number is written)", "", title)
    fig.legend_below(axis, 3)
    return figure


def holding(values: Sequence[float]) -> str:
    """Violations by α, as a cell."""
    return " / ".join("holds" if value <= HOLDS else f"{value:.2g}" for value in values)


def corrections(seed: int, quick: bool) -> Findings:
    """Every correction, with how far the printed and the corrected version are from holding, at several α."""
    found = {alpha: all_corrections(seed, alpha) for alpha in ALPHAS}
    grouped = list(zip(*found.values(), strict=True))
    failing = [[c.paper > HOLDS for c in same] for same in grouped]
    wrong = [same[0].where for same in grouped if any(c.ours > HOLDS for c in same)]
    some = [same[0].where for same, fails in zip(grouped, failing, strict=True) if any(fails) and not all(fails)]
    verdicts = [
        f"{sum(map(all, failing))} of {len(grouped)} printed statements fail at every α of {ALPHAS}; "
        f"{len(some)} more at some of them ({', '.join(some)}), where the printed constant is not large enough.",
        f"Corrected statements FAIL: {', '.join(wrong)}." if wrong else "Every corrected statement holds at every α.",
    ]
    alphas = " / ".join(f"{alpha:g}" for alpha in ALPHAS)
    return Findings(
        "Where the paper's statements and proofs disagree",
        (
            "where",
            "in the source",
            "as printed",
            "corrected",
            f"printed is off by, α = {alphas}",
            "corrected is off by",
        ),
        [
            (
                c.where,
                c.label,
                c.printed,
                c.corrected,
                holding([x.paper for x in same]),
                f"{max(x.ours for x in same):.0e}",
            )
            for same in grouped
            for c in same[:1]
        ],
        verdicts,
        {"corrections": {str(alpha): [c._asdict() for c in mine] for alpha, mine in found.items()}},
        {"corrections": draw(found)},
    )
