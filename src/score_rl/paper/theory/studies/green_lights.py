"""The study of section 3.1: who takes the better road, and where suboptimality comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from score_rl.paper.theory.data import draw_counts
from score_rl.paper.theory.examples import cautious_driver, lucky_green_lights
from score_rl.paper.theory.pessimism import judge_data_sets
from score_rl.paper.theory.studies.findings import Findings, judged
from score_rl.paper.theory.studies.over_data_sets import TERMS, XI, largest_residual
from score_rl.report import drawing as fig

SCALES = [1.0, 0.3, 0.05]  # multiples of U


class Choices(NamedTuple):
    """By number of samples, and for pessimism by multiple of U before that: what was chosen, and what it cost."""

    greedy_avenue: np.ndarray  # share of data sets
    pessimistic_avenue: np.ndarray
    event: np.ndarray  # the same with a last axis for data sets
    greedy_terms: dict[str, np.ndarray]  # means of the decomposition
    pessimistic_suboptimality: np.ndarray
    residual: float


def measure(seed: int, sizes: Sequence[int], sets: int) -> Choices:
    mdp = lucky_green_lights()
    counts = draw_counts(mdp, cautious_driver(mdp), sizes, sets, seed)
    stacked = np.concatenate([counts] * len(SCALES))
    judged = judge_data_sets(mdp, stacked, XI, "leave_one_out", np.repeat(SCALES, len(counts)))
    best = mdp.actions - 1

    def split(values: np.ndarray) -> np.ndarray:
        return values.reshape(len(SCALES), len(sizes), sets, *values.shape[1:])

    avenue = split(judged.first_action == best)
    return Choices(
        avenue[0, :, :, 0].mean(1),
        avenue[..., 1].mean(2),
        split(judged.event),
        {field: split(getattr(judged.greedy, field))[0].mean(1) for _, field, _ in TERMS},
        split(judged.pessimistic.suboptimality).mean(2),
        max(largest_residual(judged.greedy), largest_residual(judged.pessimistic)),
    )


def draw(sizes: Sequence[int], found: Choices) -> Any:
    figure, axes = fig.new_figure(1, 2, 4.4, 3.7)
    looks = [(fig.BLACK, "s", 1.5, 3.5), (fig.BLUE, "^", 4.0, 7.0), (fig.SKY, "D", 8.0, 11.0)]
    for k in reversed(range(len(SCALES))):  # the widest line first: they lie upon each other at 0 and at 1
        colour, marker, width, size = looks[k]
        multiple = "" if SCALES[k] == 1.0 else f"{SCALES[k]:g}\\,"
        label, style = f"pessimistic, ${multiple}U$", {"marker": marker, "linewidth": width, "markersize": size}
        fig.line(axes[0, 0], sizes, found.pessimistic_avenue[k], label, colour, **style)
    fig.line(axes[0, 0], sizes, found.greedy_avenue, "greedy", fig.VERMILION)
    axes[0, 0].set_ylim(-0.03, 1.05)
    fig.log_axes(axes[0, 0], ("x",))
    fig.name_axes(axes[0, 0], "samples $N$", "share of data sets", "Takes the avenue, the better road")
    fig.legend_below(axes[0, 0])
    for label, field, colour in TERMS:
        fig.line(axes[0, 1], sizes, found.greedy_terms[field], label, colour)
    fig.log_axes(axes[0, 1], ("x",))
    fig.name_axes(axes[0, 1], "samples $N$", "mean over data sets", "Greedy: where its suboptimality comes from")
    fig.legend_below(axes[0, 1])
    return figure


def verdicts_of(sizes: Sequence[int], found: Choices) -> list[str]:
    greedy_avenue, greedy_false = found.greedy_avenue, found.greedy_terms["false_correlation"]
    worst = int(np.argmax(found.greedy_terms["suboptimality"]))
    first_right = next((sizes[i] for i in range(len(sizes)) if found.pessimistic_avenue[0, i] == 1.0), None)
    small = found.pessimistic_avenue[2]
    return [
        f"Greedy leaves the better road in {1 - greedy_avenue[worst]:.0%} of data sets at N = {sizes[worst]:,}; "
        f"its false correlation is {greedy_false[worst]:+.4f} there and {greedy_false[-1]:+.4f} at N = {sizes[-1]:,}.",
        "Pessimism with the proven U "
        + (
            f"takes the avenue in every data set from N = {first_right:,} on; with fewer samples its values are "
            "clipped at zero everywhere and it has nothing to choose by."
            if first_right is not None
            else "needs more samples than were drawn here."
        ),
        f"{SCALES[2]}·U takes the avenue in at least {small.min():.1%} of data sets at every N, "
        f"and its event holds in {found.event[2].mean(1).min():.0%} to {found.event[2].mean(1).max():.0%} of them: "
        "the proof is more careful than need be.",
        f"SubOpt = (i) + (ii) + (iii) {judged(found.residual <= 1e-9)}: within {found.residual:.1e}.",
    ]


def green_lights(seed: int, quick: bool) -> Findings:
    """Greedy and pessimistic choices at the depot, against the number of samples and the multiple of U."""
    sizes = [1000, 128000] if quick else [250, 1000, 4000, 16000, 64000, 256000]
    sets = 10 if quick else 400
    found = measure(seed, sizes, sets)
    rows = [
        (
            f"{n:,}",
            f"{found.greedy_avenue[i]:.3f}",
            f"{found.greedy_terms['suboptimality'][i]:.4f}",
            f"{found.greedy_terms['false_correlation'][i]:+.4f}",
            *(f"{found.pessimistic_avenue[k, i]:.3f} / {found.event[k, i].mean():.3f}" for k in range(len(SCALES))),
        )
        for i, n in enumerate(sizes)
    ]
    return Findings(
        "Lucky green lights: greedy against pessimistic value iteration",
        ("N", "greedy: avenue", "SubOpt", "(i)", *(f"{s}·U: avenue / Pr(E)" for s in SCALES)),
        rows,
        verdicts_of(sizes, found),
        {
            "sizes": sizes,
            "sets": sets,
            "scales": SCALES,
            "greedy_avenue": found.greedy_avenue,
            "pessimistic_avenue": found.pessimistic_avenue,
            "event": found.event.mean(2),
            "greedy_suboptimality": found.greedy_terms["suboptimality"],
            "greedy_false_correlation": found.greedy_terms["false_correlation"],
            "pessimistic_suboptimality": found.pessimistic_suboptimality,
        },
        {"green-lights": draw(sizes, found)},
    )
