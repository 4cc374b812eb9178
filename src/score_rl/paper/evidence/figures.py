"""The figures of evidence, by name. Each file says which numbers it was drawn from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.paper.evidence.companies import in_companies, with_chosen
from score_rl.paper.evidence.records import Choice, Evidence, Result
from score_rl.paper.experiments.choice import BETAS, DECAYS
from score_rl.report.drawing import BLUE, GREEN, ORANGE, new_figure
from score_rl.report.figure_style import FAINT, INK, styled
from score_rl.report.published import SEEDS, paper_datasets, paper_table
from score_rl.report.results import algorithm_title
from score_rl.report.score_figures import SettingGrid, performance_profiles, setting_grids
from score_rl.report.statistics import Estimate, mean_curve, mean_over_seeds, printed_interval, profiles

PICTURED = "hopper-medium"  # the data set at the top of README; docs/results.md has the others
LEARNING = {"score": BLUE, "td3-bc": ORANGE, "bc": GREEN}  # the methods there
LOWEST, HIGHEST = -8, 122  # normalised scores that the figure has room for


@styled
def score_figure(evidence: Evidence) -> Any:
    """SCORE and the paper's SCORE on each data set, means with 95 % intervals."""
    figure, ((axis,),) = new_figure(1, 1, 7.2, 5.4)
    for line, dataset in enumerate(paper_datasets()):
        mine = evidence.results.get(("score", dataset))
        if mine is not None:
            label = "here, shorter" if mine.protocol.shorter else "here, one setting for all"
            face = "white" if mine.protocol.shorter else BLUE
            _dot(axis, mean_over_seeds(np.array(mine.scores)), line - 0.2, BLUE, "o", label, face)
        if dataset in evidence.chosen:
            chosen = mean_over_seeds(np.array(evidence.chosen[dataset].scores))
            _dot(axis, chosen, line, GREEN, "s", "here, setting chosen")
        paper = printed_interval(*paper_table()[dataset, "SCORE"], SEEDS)
        _dot(axis, paper, line + 0.2, ORANGE, "D", "paper, on D4RL's own data")
    _name_lines(axis, evidence)
    axis.set_xlabel("normalised score (%), mean and 95 % interval over seeds")
    axis.set_title("SCORE: this code beside the paper", loc="left", color=INK)
    handles = dict(sorted(zip(*reversed(axis.get_legend_handles_labels()), strict=True), key=lambda item: item[0]))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    return figure


@styled
def curve_figure(evidence: Evidence) -> Any:
    """What methods make of the same recording, as they learn: each seed, their mean, and who recorded it."""
    figure, ((axis,),) = new_figure(1, 1, 6.2, 3.1)
    found = {a: result for a in LEARNING if (result := evidence.results.get((a, PICTURED))) is not None}
    for name, result in found.items():
        colour, mean = LEARNING[name], mean_curve(result.curves)
        for curve in result.curves:
            axis.plot(curve.steps / 1e6, curve.values, color=colour, linewidth=0.6, alpha=0.35)
        axis.plot(mean.steps / 1e6, mean.mean, color=colour, linewidth=2)
        ends = (mean.steps[-1] / 1e6, mean.mean[-1])
        axis.annotate(f"{algorithm_title(name)} {mean.mean[-1]:.0f}", ends, (6, 0), textcoords="offset points",
                      color=colour, va="center", fontweight="bold", fontsize=10)  # fmt: skip
    recorded = next((result.behaviour for result in found.values() if result.behaviour is not None), None)
    if recorded is not None:
        axis.axhline(recorded, color=FAINT, linewidth=1.2, linestyle="--")
        axis.annotate(f"the policy that recorded the data {recorded:.0f}", (0.99, recorded), (0, -4),
                      ("axes fraction", "data"), "offset points", ha="right", va="top", color=INK)  # fmt: skip
    axis.set_ylim(0, 110)
    axis.set_xlim(0, 1)
    seeds = max((len(result.scores) for result in found.values()), default=0)
    figure.suptitle(_finding(found, recorded), x=0.01, ha="left", fontweight="bold", fontsize=10)
    axis.set_xlabel(f"million updates ({PICTURED}, {seeds} seeds each)")
    axis.set_ylabel("score (0 random, 100 expert)")
    return figure


def _finding(found: Mapping[str, Result], recorded: float | None) -> str:
    """What the picture at the top of README shows, in one line."""
    if "score" not in found or recorded is None:
        return "Learned from the same recording"
    reached = np.mean(found["score"].scores)
    return f"From a recording that scores {recorded:.0f}, SCORE learns a policy that scores {reached:.0f}"


def _name_lines(axis: Any, evidence: Evidence) -> None:
    """A line for each data set, with what its data are; data sets that have not been run are faint."""
    datasets = paper_datasets()
    kinds = {d: r.data for (algorithm, d), r in evidence.results.items() if algorithm == "score"}
    axis.set_yticks(range(len(datasets)))
    names = axis.set_yticklabels([f"{dataset} ({kinds.get(dataset, 'not run yet')})" for dataset in datasets])
    for name, dataset in zip(names, datasets, strict=True):
        name.set_color(INK if dataset in kinds else FAINT)
    axis.set_ylim(len(datasets) - 0.4, -0.6)
    axis.set_xlim(LOWEST, HIGHEST)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")
    for edge in (2.5, 5.5, 8.5, 11.5):
        axis.axhline(edge, color=FAINT, linewidth=0.5, alpha=0.5)


def _dot(
    axis: Any, estimate: Estimate, line: float, colour: str, marker: str, label: str, face: str | None = None
) -> None:
    if estimate.has_interval:
        ends = [max(estimate.low, LOWEST), min(estimate.high, HIGHEST)]
        axis.plot(ends, [line, line], color=colour, linewidth=2.2, alpha=0.55, solid_capstyle="butt")
    axis.plot(estimate.value, line, marker=marker, markersize=5, color=colour, markerfacecolor=face or colour,
              linestyle="none", label=label)  # fmt: skip


def grid_figure(choices: Sequence[Choice]) -> Any:
    """All settings of every grid: the mean by which one of them was chosen, that one framed."""
    drawn = [SettingGrid(choice.dataset, choice.means, (choice.beta, choice.bc_decay)) for choice in choices]
    return setting_grids(drawn, BETAS, DECAYS, ("β", "γ_bc"))


def figures(evidence: Evidence) -> dict[str, Any]:
    found = {"score": score_figure(evidence), "curves": curve_figure(evidence)}
    if evidence.choices:
        found["grid"] = grid_figure(evidence.choices)
    together = [company for company in in_companies(evidence)[0] if len(company.matrices) > 1]
    if together:
        figure = performance_profiles(profiles(with_chosen(evidence, together[0])), width=6.0)
        number = len(together[0].datasets)
        figure.suptitle(f"Over {number} of 15 data sets", fontsize=9, x=0.01, ha="left")
        found["profiles"] = figure
    return found


# -- files -----------------------------------------------------------------------------------------------------------


def draw(evidence: Evidence, folder: Path) -> None:
    """On white, so that they can be read in dark mode too; the same bytes for the same results."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    about = {"Date": None, "Description": json.dumps(drawn_numbers(evidence))}
    for name, figure in figures(evidence).items():
        with matplotlib.rc_context({"svg.hashsalt": "score-rl"}):
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata=about)


def drawn_numbers(evidence: Evidence) -> dict[str, list[float]]:
    """What the figures show. Their files hold it, so that one that is out of date can be told."""
    return {
        **{
            f"{algorithm} {dataset}": _rounded(result.scores)
            for (algorithm, dataset), result in evidence.results.items()
        },
        **{f"chosen {dataset}": _rounded(result.scores) for dataset, result in evidence.chosen.items()},
        **{f"grid {choice.dataset}": _rounded(choice.means.values()) for choice in evidence.choices},
    }


def _rounded(scores: Iterable[float]) -> list[float]:
    return [round(score, 4) for score in scores]


def numbers_in(path: Path) -> Any:
    """The numbers that a figure's file was drawn from."""
    from xml.etree import ElementTree

    found = ElementTree.parse(path).find(".//{http://purl.org/dc/elements/1.1/}description")
    return None if found is None or found.text is None else json.loads(found.text)
