"""Figures of a judgement: estimates with intervals, and histograms of the policies' actions against the data's."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.report.drawing import new_figure
from score_rl.report.figure_style import FAINT, INK, WIDTH, light_grid, line_styles, plain, shared_legend, styled
from score_rl.report.page_charts import Dot
from score_rl.report.statistics import Estimate
from score_rl.store.judgements import FITTED, MODEL, PESSIMISTIC, ROBUST, Histogram, PolicyJudgement

SHOWN = {FITTED: "o", PESSIMISTIC: "v", MODEL: "s", ROBUST: "D"}
HIGHEST = 2.2  # times the data's highest bar: what is higher leaves the frame, or the data would be flat
LONGEST = 34  # letters of a policy's name beside a figure


@styled
def estimate_intervals(policies: Mapping[str, PolicyJudgement]) -> Any:
    """How much more than the behaviour each policy earns per step, by each estimator; best first."""
    figure, axes = new_figure(1, 1, width=WIDTH * 1.2, height=0.9 + 0.5 * len(policies))
    axis = axes[0, 0]
    axis.axvline(0, color=INK, linewidth=1)
    colours = {kind: colour for kind, (colour, _) in line_styles(list(SHOWN)).items()}
    for place, judged in enumerate(policies.values()):
        shown = [kind for kind in SHOWN if kind in judged.shown]
        for number, kind in enumerate(shown):
            each, y = judged.shown[kind], place + 0.16 * (number - (len(shown) - 1) / 2)
            axis.plot([each.difference_low, each.difference_high], [y, y], color=colours[kind], linewidth=1.6)
            label = kind if kind not in axis.get_legend_handles_labels()[1] else None
            style = {"markersize": 4.5, "linestyle": "none", "label": label}
            axis.plot([each.difference], [y], marker=SHOWN[kind], color=colours[kind], **style)
    axis.set_yticks(range(len(policies)), [plain(in_lines(name)) for name in policies])
    axis.set_ylim(len(policies) - 0.5, -0.5)
    axis.set_xlabel("reward per step, less the behaviour's")
    light_grid(axis)
    shared_legend(figure, [axis], 1.2)
    return figure


def estimate_dots(policies: Mapping[str, PolicyJudgement]) -> dict[str, list[Dot]]:
    """The same for the page's script: a block for each policy, a line for each estimator."""
    return {
        name: [
            Dot(kind, Estimate(each.difference, each.difference_low, each.difference_high))
            for kind in SHOWN
            if (each := judged.shown.get(kind)) is not None
        ]
        for name, judged in policies.items()
    }


@styled
def action_histograms(policies: Mapping[str, PolicyJudgement], names: Sequence[str]) -> Any:
    """For each action by its column's name, where recorded actions lie and where the policies' do."""
    figure, axes = new_figure(len(names), 1, width=WIDTH * 1.2, height=1.7)
    for number, (axis, name) in enumerate(zip(axes[:, 0], names, strict=True)):
        _histograms(axis, {n: p.distance.actions[number] for n, p in policies.items() if p.distance is not None})
        axis.set_title(plain(name), loc="left")
        axis.set_ylabel("share")
    shared_legend(figure, axes[:, 0], 1.2)
    return figure


@styled
def uncertainty_histograms(policies: Mapping[str, PolicyJudgement]) -> Any:
    """How far a learned model's networks disagree about actions: recorded ones, and the policies'."""
    figure, axes = new_figure(1, 1, width=WIDTH * 1.2, height=2.4)
    axis = axes[0, 0]
    found = {name: judged.distance.uncertainty for name, judged in policies.items() if judged.distance is not None}
    _histograms(axis, found)
    axis.set_xlabel("disagreement of the networks, as a power of ten")
    axis.set_ylabel("share")
    shared_legend(figure, [axis], 1.2)
    return figure


def _histograms(axis: Any, found: Mapping[str, Histogram]) -> None:
    """The data as an area, each policy as a line."""
    styles = line_styles(list(found))
    first = next(iter(found.values()))
    axis.stairs(first.data, _edges(first), fill=True, color=FAINT, alpha=0.35, label="data")
    for name, histogram in found.items():
        colour, dash = styles[name]
        axis.stairs(
            histogram.policy, _edges(histogram), color=colour, linestyle=dash, linewidth=1.4,
            label=plain(in_lines(name)),
        )  # fmt: skip
    axis.set_ylim(0, HIGHEST * max(first.data))


def _edges(histogram: Histogram) -> np.ndarray:
    return np.linspace(histogram.low, histogram.high, len(histogram.policy) + 1)


def in_lines(name: str) -> str:
    """A long name, broken between its parts."""
    lines = [""]
    for part in name.split("_"):
        joined = f"{lines[-1]}_{part}" if lines[-1] else part
        if lines[-1] and len(joined) > LONGEST:
            lines[-1] += "_"
            lines.append(part)
        else:
            lines[-1] = joined
    return "\n".join(lines)
