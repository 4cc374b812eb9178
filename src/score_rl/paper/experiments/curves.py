"""The ablations and the sweeps: learning curves of SCORE's variants, mean and 95 % interval over seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from score_rl.paper.experiments.plan import (
    Asked,
    Done,
    Experiment,
    Presentation,
    Request,
    Table,
    Variant,
    matching,
    product,
)
from score_rl.report.curve_figures import Panel, Series, learning_curves
from score_rl.report.results import Curve, RunResult
from score_rl.report.statistics import Estimate, mean_curve, mean_over_seeds

SCORE, RETURN, TARGET, UNCERTAINTY = "evaluation/score", "evaluation/return", "train/q_target", "train/uncertainty"
QUANTITIES = {
    SCORE: "normalised score (%)",
    RETURN: "return",
    TARGET: "Q target (scaled reward)",
    UNCERTAINTY: "uncertainty u (scaled reward)",
}
EVALUATIONS = 6  # a run's score is the mean of so many last ones: a last policy is one draw and stands beside it
HOPPER = ("hopper-medium", "hopper-medium-replay")


def curves(
    name: str,
    paper: str,
    finding: str,
    variants: Sequence[Variant],
    second: str = TARGET,
    datasets: tuple[str, ...] = HOPPER,
) -> Experiment:
    """An ablation or a sweep: the return beside another quantity, a row for each data set."""

    def plan(request: Request) -> list[Asked]:
        return product(request, variants, request.data(datasets[:1] if request.scale.name == "smoke" else datasets))

    def present(request: Request, done: Sequence[Done]) -> Presentation:
        return draw([variant.label for variant in variants], second, done)

    def stored(results: Sequence[RunResult]) -> list[Done]:
        return matching(variants, results)

    return Experiment(name, paper, finding, plan, present, (SCORE, RETURN, TARGET, UNCERTAINTY), stored=stored)


def draw(labels: Sequence[str], second: str, done: Sequence[Done]) -> Presentation:
    """Curves, and what the last policies reached."""
    made = Presentation()
    panels, rows, numbers = [], [], []
    for dataset in dict.fromkeys(run.result.dataset for run in done):
        here = [run for run in done if run.result.dataset == dataset]
        first = SCORE if any(SCORE in run.result.curves for run in here) else RETURN
        for metric in (first, second):
            lines = [series(label, metric, [run.result for run in here if run.label == label]) for label in labels]
            drawn = [line for line in lines if line is not None]
            panels.append(Panel(dataset, QUANTITIES[metric], drawn, logarithmic=metric == UNCERTAINTY))
        for label in labels:
            mine = [run.result for run in here if run.label == label]
            if not mine:
                made.remarks.append(f"{dataset}: no run of {label}.")
                continue
            ended = [run for run in mine if run.finished]
            made.remarks += [f"{run.name}: {run.status} at update {run.step:,}; not in the mean." for run in mine
                             if not run.finished]  # fmt: skip
            found = group_numbers(ended, first, second)
            cells = (averaged(ended, first, late=True), *(last_value(ended, metric) for metric in (first, second)))
            rows.append((dataset, label, *map(shown, cells), f"{len(ended)} of {len(mine)}"))
            numbers.append({
                "dataset": dataset, "variant": label, "seeds": len(ended), "asked": len(mine), **found,
            })  # fmt: skip
    made.figures["curves"] = learning_curves(panels, 2, labels)
    late = f"score, last {EVALUATIONS} evaluations"
    columns = ("data set", "variant", late, "last policy", QUANTITIES[second], "seeds")
    made.tables["last"] = Table("At the end of training, mean [95 % interval] over seeds", columns, rows)
    made.numbers["groups"] = numbers
    return made


def group_numbers(runs: Sequence[RunResult], first: str, second: str) -> dict[str, Any]:
    """What the runs of one variant on one data set came to."""
    last = {metric: last_value(runs, metric) for metric in dict.fromkeys((first, second, TARGET, UNCERTAINTY))}
    return {
        "last": {metric: as_json(value) for metric, value in last.items() if value or metric in (first, second)},
        "late": {first: as_json(averaged(runs, first, late=True))},
        "early": {first: as_json(averaged(runs, first, late=False))},
        "largest": {metric: largest(runs, metric) for metric in dict.fromkeys((second, UNCERTAINTY))},
    }


def averaged(runs: Sequence[RunResult], metric: str, *, late: bool) -> Estimate | None:
    """The mean over seeds of each run's mean over its last evaluations, `EVALUATIONS` of them, or over all before."""
    part = slice(-EVALUATIONS, None) if late else slice(None, -EVALUATIONS)
    curves = [run.curves[metric].values[part] for run in runs if metric in run.curves]
    values = [float(curve.mean()) for curve in curves if len(curve)]
    return mean_over_seeds(np.array(values)) if values else None


def series(label: str, metric: str, runs: Sequence[RunResult]) -> Series | None:
    """A line of a panel; runs that did not end stand beside the mean, never in it."""
    ended = [run.curves[metric] for run in runs if run.finished and metric in run.curves]
    broken = [run.curves[metric] for run in runs if not run.finished and metric in run.curves]
    if not ended and not broken:
        return None
    return Series(label, mean_curve(ended) if ended else None, [thinned(curve) for curve in ended], broken)


def thinned(curve: Curve, points: int = 200) -> Curve:
    every = max(1, len(curve.steps) // points)
    return Curve(curve.steps[::every], curve.values[::every])


def last_value(runs: Sequence[RunResult], metric: str) -> Estimate | None:
    values = [value for run in runs if (value := run.last(metric)) is not None]
    return mean_over_seeds(np.array(values)) if values else None


def largest(runs: Sequence[RunResult], metric: str) -> float | None:
    """The highest point that the mean over seeds reached on the way: an explosion shows there."""
    found = [run.curves[metric] for run in runs if metric in run.curves]
    return float(mean_curve(found).mean.max()) if found else None


def shown(value: Estimate | None) -> str:
    """One digit after the point; three for what is below 1, such as u."""
    if value is None:
        return "not measured"
    digits = 3 if 0 < abs(value.value) < 1 else 1
    interval = f" [{value.low:.{digits}f}, {value.high:.{digits}f}]" if value.has_interval else ""
    return f"{value.value:.{digits}f}{interval}"


def as_json(value: Estimate | None) -> Any:
    if value is None:
        return None
    return {"mean": value.value, "interval_95": [value.low, value.high] if value.has_interval else None}


EXPERIMENTS = (
    curves(
        "ablation-bc",
        "figure 6: return and uncertainty with and without the regulariser",
        "Without behaviour cloning the uncertainty climbs and swings between enormous values, most of all on the "
        "narrow hopper-medium; with it, it settles.",
        [Variant("SCORE"), Variant("without BC", {"bc_weight": 0.0})],
        UNCERTAINTY,
    ),
    curves(
        "ablation-constraint",
        "figure 7: BC, Fix (VAE proposes, as BCQ), MMD (as BEAR)",
        "A fitted behaviour policy is a worse constraint than behaviour cloning, most of all on data of several "
        "policies, and converges prematurely on data of one.",
        [Variant("BC"), Variant("Fix", {"constraint": "fix"}), Variant("MMD", {"constraint": "mmd"})],
    ),
    curves(
        "ablation-pessimism",
        "figure 8: return and Q target with and without the penalty",
        "Without the penalty Q values are higher, jitter or explode, and the return is lower and less stable.",
        [Variant("SCORE"), Variant("without pessimism", {"beta": 0.0})],
        datasets=("hopper-medium-replay", "walker2d-medium-replay"),
    ),
    curves(
        "ablation-uncertainty",
        "figure 9: ensemble, MC dropout, min-Q",
        "Both alternatives are inferior to the ensemble, and poor on medium-replay.",
        [
            Variant("Ensemble"),
            Variant("Dropout", {"uncertainty": "dropout"}),
            Variant("Min Q", {"uncertainty": "min-q"}),
        ],
    ),
    curves(
        "ablation-penalty",
        "figure 10: u(s, a) only, u(s', a') only, both at 0.1, both at 0.2",
        "SCORE is robust to where the penalty is taken: all four behave alike.",
        [
            Variant("u(s, a) only"),
            Variant("u(s', a') only", {"penalty": "here+next", "beta": 0.0, "next_beta": 0.2}),
            Variant("both (0.1)", {"penalty": "here+next", "beta": 0.1, "next_beta": 0.1}),
            Variant("both (0.2)", {"penalty": "here+next", "beta": 0.2, "next_beta": 0.2}),
        ],
    ),
    curves(
        "sweep-beta",
        "figure 11: β in {0.1, 0.2, 0.5, 2.0}",
        "0.1, 0.2 and 0.5 work alike; 2.0 is over-pessimistic: Q becomes very negative and the return poor.",
        [Variant(f"β = {beta}", {"beta": beta}) for beta in (0.1, 0.2, 0.5, 2.0)],
    ),
    curves(
        "sweep-decay",
        "figure 12: γ_bc in {0.96, 0.98, 1.0}",
        "On medium-replay 0.96 and 0.98 work alike and 1.0 converges prematurely; on medium 0.98 ends highest and "
        "0.96 may collapse late.",
        [Variant(f"γ_bc = {decay}", {"bc_decay": decay}) for decay in (0.96, 0.98, 1.0)],
    ),
    curves(
        "sweep-critics",
        "figure 13: M in {3, 5, 7, 9}",
        "Three critics are unstable, five are enough, more change little.",
        [Variant(f"M = {critics}", {"critics": critics}) for critics in (3, 5, 7, 9)],
    ),
    curves(
        "sweep-alpha",
        "figure 14: α in {1, 2, 2.5, 3, 4}",
        "SCORE is robust to a wide range of α.",
        [Variant(f"α = {alpha:g}", {"alpha": alpha}) for alpha in (1.0, 2.0, 2.5, 3.0, 4.0)],
    ),
)
