"""SCORE with β and γ_bc for each data set, as the paper has them, chosen by seeds that are not the reported ones."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from score_rl.algorithms.score import Config
from score_rl.paper.experiments.curves import RETURN, SCORE
from score_rl.paper.experiments.plan import (
    Asked,
    Done,
    Experiment,
    Presentation,
    Request,
    Table,
    Variant,
    product,
    shown_name,
)
from score_rl.paper.experiments.protocols import rounded
from score_rl.report.published import SEEDS, paper_dataset, paper_datasets, printed
from score_rl.report.results import Curve, RunResult
from score_rl.report.score_figures import SettingGrid, setting_grids
from score_rl.report.statistics import agreement

BETAS, DECAYS = (0.1, 0.2, 0.5), (0.96, 0.98, 1.0)  # the paper's grid
CHOOSING = 2  # seeds
LAST = 0.25  # of a training: its evaluations are what a choice looks at, since last policies alone choose luck
CHOSEN, COMMON = "setting chosen", "one setting for all"
SMALL = ("hopper-medium-replay",)
NOTHING = "-"


class Setting(NamedTuple):
    beta: float
    bc_decay: float

    def __str__(self) -> str:
        return f"β {self.beta:g}, γ_bc {self.bc_decay:g}"


GRID = tuple(Setting(*pair) for pair in itertools.product(BETAS, DECAYS))
CHOOSING_LABELS = frozenset(map(str, GRID))
USUAL = Setting(Config().beta, Config().bc_decay)


def choosing_seeds(request: Request) -> tuple[int, ...]:
    """The next ones after those that are reported."""
    first = max(request.chosen_seeds) + 1
    return tuple(range(first, first + CHOOSING))


def asked_data(request: Request) -> list[str]:
    return request.data(SMALL if request.scale.small else paper_datasets())


def plan(request: Request) -> list[Asked]:
    """The grid with the seeds that choose, and one setting for all with those that are reported."""
    datasets = asked_data(request)
    grid = [Variant(str(setting), setting._asdict()) for setting in GRID]
    choosing = product(replace(request, seeds=choosing_seeds(request)), grid, datasets)
    return choosing + product(request, [Variant(COMMON)], datasets)


def then(request: Request, done: Sequence[Done]) -> list[Asked]:
    """Each data set's choice with the reported seeds."""
    found = {dataset: best(means_on(done, dataset)) for dataset in _datasets(done)}
    return [
        asked
        for name in asked_data(request)
        if (setting := found.get(shown_name(name))) is not None
        for asked in product(request, [Variant(CHOSEN, setting._asdict())], [name])
    ]


def mark(request: Request, done: Sequence[Done]) -> list[Done]:
    """The same runs with what they are for in their records, as `stored_results.py` says."""
    marked = []
    for run in done:
        about: dict[str, Any] = {}
        if run.label in CHOOSING_LABELS:
            about = {"chooses_settings": True}
        elif run.label == CHOSEN and setting_of(run.result.config) != USUAL:
            about = {"chosen_by_seeds": list(choosing_seeds(request))}
        result = replace(run.result, request={**run.result.request, **about}) if about else run.result
        marked.append(Done(run.label, result))
    return marked


def cost(request: Request) -> str:
    asked = plan(request)
    datasets = {each.run.dataset for each in asked}
    runs = len({each.run.key() for each in asked}) + len(datasets) * len(request.chosen_seeds)
    return f"{runs} × {rounded(request.updates)}"


# -- the choice ------------------------------------------------------------------------------------------------------


def ending(curve: Curve) -> float:
    """The mean over the evaluations in the last part of a training."""
    late = curve.steps > (1 - LAST) * curve.steps[-1]
    return float(np.mean(curve.values[late]))


def setting_of(config: Mapping[str, Any]) -> Setting:
    return Setting(config.get("beta", USUAL.beta), config.get("bc_decay", USUAL.bc_decay))


def setting_means(runs: Iterable[RunResult], measure: str = SCORE) -> dict[Setting, float]:
    """By setting: the mean over its runs of how each ended. A setting of which one run did not end well has none."""
    by_setting: dict[Setting, list[RunResult]] = {}
    for run in runs:
        by_setting.setdefault(setting_of(run.config), []).append(run)
    found = {}
    for setting in GRID:
        mine = by_setting.get(setting, [])
        if mine and all(run.finished and measure in run.curves for run in mine):
            found[setting] = float(np.mean([ending(run.curves[measure]) for run in mine]))
    return found


def means_on(done: Sequence[Done], dataset: str) -> dict[Setting, float]:
    """The means of the runs that choose on a data set."""
    mine = [run.result for run in done if run.label in CHOOSING_LABELS and run.result.dataset == dataset]
    return setting_means(mine, _measure(done, dataset))


def best(means: Mapping[Setting, float]) -> Setting | None:
    """Of equals the first in the grid's order."""
    return max(means, key=lambda setting: (means[setting], -GRID.index(setting)), default=None)


def _measure(done: Sequence[Done], dataset: str) -> str:
    """The normalised score; the return on tasks that have none."""
    return SCORE if any(SCORE in run.result.curves for run in done if run.result.dataset == dataset) else RETURN


def _datasets(done: Iterable[Done]) -> list[str]:
    return list(dict.fromkeys(run.result.dataset for run in done))


# -- what it comes to ------------------------------------------------------------------------------------------------


def present(request: Request, done: Sequence[Done]) -> Presentation:
    made = Presentation()
    grids, rows, numbers = [], [], []
    for dataset in _datasets(done):
        means, measure = means_on(done, dataset), _measure(done, dataset)
        setting = best(means)
        if setting is None:
            made.remarks.append(f"{dataset}: nothing could be chosen, every setting has a run that did not end well.")
            continue
        mine, common = (_last(done, dataset, label, measure) for label in (CHOSEN, COMMON))
        paper = printed("score", paper_dataset(dataset) or dataset)
        apart = ""
        if paper is not None and len(mine):
            apart = f"{np.mean(mine) - paper.mean:+.1f} ({agreement(mine, *paper, SEEDS)})"
        cells = (_spread(mine), _spread(common), NOTHING if paper is None else str(paper), apart)
        rows.append((dataset, str(setting), f"{means[setting]:.1f}", *cells))
        grids.append(SettingGrid(dataset, {tuple(each): value for each, value in means.items()}, tuple(setting)))
        numbers.append({
            "dataset": dataset, "measure": measure, "chosen": setting._asdict(),
            "by_seeds": sorted({run.result.seed for run in done if run.label == str(setting)}),
            "grid": [each._asdict() | {"mean": value} for each, value in means.items()],
            "chosen_last": mine, "one_for_all_last": common, "paper": None if paper is None else paper._asdict(),
        })  # fmt: skip
    made.remarks += [
        f"{run.result.name} ({run.label}): {run.result.status} at update {run.result.step:,}; counts nowhere."
        for run in done
        if not run.result.finished
    ]
    made.figures["grid"] = setting_grids(grids, BETAS, DECAYS, ("β", "γ_bc"))
    columns = ("data set", "chosen", "by a mean of", CHOSEN, COMMON, "paper", "apart")
    made.tables["chosen"] = Table(_title(request), columns, rows)
    made.numbers["datasets"] = numbers
    return made


def _title(request: Request) -> str:
    seeds = " and ".join(map(str, choosing_seeds(request)))
    return (
        f"SCORE's last policies, mean ± std over seeds, with the setting that seeds {seeds} chose by their mean over "
        f"the last quarter of training, and with {USUAL} on all data sets"
    )


def _last(done: Sequence[Done], dataset: str, label: str, measure: str) -> list[float]:
    mine = [run.result for run in done if run.label == label and run.result.dataset == dataset]
    return [value for run in mine if run.finished and (value := run.last(measure)) is not None]


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}" if len(values) else "none ended"


EXPERIMENTS = (
    Experiment(
        "grid",
        "table 4: SCORE's column with β and γ_bc chosen for each data set",
        "The paper picks β from 0.1, 0.2, 0.5 and γ_bc from 0.96, 0.98, 1.0 for each data set; it does not say by "
        "which runs, nor which it picked.",
        plan,
        present,
        then=then,
        mark=mark,
        cost=cost,
    ),
)
