"""Stored results as tables and claims want them: one protocol for each method and data set, the rest by name."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.paper.evidence.records import Choice, Ending, Evidence, Result, read_experiments
from score_rl.paper.evidence.six_sets import FOLDER, read_six_sets
from score_rl.paper.evidence.wanted import WANTED, read_wanted
from score_rl.paper.experiments.choice import USUAL, Setting, best, ending, setting_means, setting_of
from score_rl.paper.experiments.curves import EVALUATIONS
from score_rl.paper.experiments.execution import once
from score_rl.paper.experiments.protocols import candidates, ordinary, protocol_of, was_chosen
from score_rl.report.grouping import gather, group, tell_apart, unusual
from score_rl.report.published import PAPER_STEPS, data_kind, paper_dataset, paper_datasets
from score_rl.report.results import SCORE, Group, RunResult
from score_rl.report.stored_results import CURVES, SUMMARY

FRESH = 100  # episodes in which last policies are judged again
RESULTS = Path("benchmarks", "results")  # in a checkout
OTHER_SUITE = "ogbench:"  # has a table of its own
UNFINISHED = "unfinished"  # what interrupted jobs of the queue have reached: no result


def read(checkout: Path) -> Evidence:
    """What is stored in a checkout."""
    folder = checkout / RESULTS
    speeds = {path: json.loads(path.read_text()) for path in sorted((folder / "speed").glob("*.json"))}
    runs = [run for run in gather([folder]) if UNFINISHED not in run.folder.parts]
    runs = [run for run in runs if not run.dataset.startswith(OTHER_SUITE)]
    results, choosing = ([run for run in runs if run.chooses_settings is only] for only in (False, True))
    found = collect(results, read_experiments(folder / "experiments"), speeds)
    alone = [run for run in results if folder / "experiments" not in run.folder.parents]
    choices = read_choices(choosing, results, found)
    endings = endings_of([*alone, *choosing])
    return replace(
        found, choices=choices, variants=read_variants(alone), endings=endings,
        wanted=read_wanted(checkout / WANTED), six=read_six_sets(folder / FOLDER, results), checkout=checkout,
    )  # fmt: skip


def read_variants(runs: Sequence[RunResult]) -> list[Result]:
    """Runs with settings that are not the authors'. Those that a grid chose have a table of their own."""
    mine = [run for run in runs if not ordinary(run) and not was_chosen(run)]
    return [result_of(each) for each in group(tell_apart(mine)) if protocol_of(each).seeds]


def read_choices(choosing: Sequence[RunResult], results: Sequence[RunResult], evidence: Evidence) -> list[Choice]:
    """What each stored grid chose for each of its data sets, by the paper's order of data sets."""
    grids: dict[tuple[Path, str], list[RunResult]] = {}
    for run in choosing:
        grids.setdefault((run.folder, run.dataset), []).append(run)
    found = []
    for (folder, dataset), mine in grids.items():
        means = setting_means(mine)
        setting = best(means)
        if setting is None:
            continue
        name, seeds = paper_dataset(dataset) or dataset, tuple(sorted({run.seed for run in mine}))
        reported = (
            evidence.results.get(("score", name)) if setting == USUAL else reported_with(setting, mine[0], results)
        )
        file = folder / CURVES
        found.append(Choice(name, *setting, seeds, means[setting], means.get(USUAL), file, reported, means))
    return sorted(found, key=lambda choice: paper_datasets().index(choice.dataset))


def reported_with(setting: Setting, like: RunResult, results: Sequence[RunResult]) -> Result | None:
    """What a chosen setting reached on the reported seeds, in runs as long as the one that is given."""
    what = ("score", like.dataset, like.steps)
    mine = [run for run in results if (run.algorithm, run.dataset, run.steps) == what and was_chosen(run)]
    mine = [run for run in mine if setting_of(run.config) == setting]
    return result_of(group(tell_apart(mine))[0]) if mine else None


def endings_of(runs: Sequence[RunResult]) -> list[Ending]:
    """Of runs in the paper's length that differ from the common setting in nothing but β and γ_bc."""
    found = []
    for run in runs:
        full = run.algorithm == "score" and run.finished and run.steps >= PAPER_STEPS and SCORE in run.curves
        if full and set(unusual(run, run.config)) <= {"beta", "bc_decay"}:
            curve, setting = run.curves[SCORE], setting_of(run.config)
            best_one, file = float(np.max(curve.values)), run.folder / CURVES
            found.append(Ending(paper_dataset(run.dataset) or run.dataset, *setting, best_one, ending(curve), file))
    return found


def collect(runs: Sequence[RunResult], experiments: Any = None, speeds: Any = None) -> Evidence:
    """The protocol closest to the paper's for each method and data set, as `main-table --from-stored` has it."""
    closest = [groups[0] for groups in candidates(once(runs)).values() if protocol_of(groups[0]).seeds]
    results = {(each.algorithm, paper_dataset(each.dataset) or ""): result_of(each) for each in closest}
    shown = {(run.folder, run.name) for each in closest for run in each.runs}
    others: list[Result] = []
    for each in (each for groups in candidates(runs).values() for each in groups):
        if protocol_of(each).seeds and not any((run.folder, run.name) in shown for run in each.runs):
            found = result_of(each)
            if all(found.scores != other.scores for other in others):  # several experiments may hold the same runs
                others.append(found)
    return Evidence(results, others, experiments or {}, speeds or {})


def result_of(group: Group) -> Result:
    """One cell: a method on a data set, by one protocol."""
    ended = [run for run in group.finished if run.score is not None]
    again = [run.fresh_scores.get(FRESH) for run in ended]
    return Result(
        algorithm=group.algorithm,
        dataset=paper_dataset(group.dataset) or group.dataset,
        data=data_kind(group.dataset),
        rows=ended[0].data.get("rows"),
        protocol=protocol_of(group),
        precision=ended[0].request.get("precision", "float32"),
        scores=group.final(SCORE).tolist(),
        late=[mean for run in ended if (mean := run.late(SCORE, EVALUATIONS)) is not None],
        fresh=None if None in again else [value for value in again if value is not None],
        files=tuple(dict.fromkeys(run.folder / SUMMARY for run in ended)),
        unusual=", ".join(f"{name} = {value}" for name, value in unusual(ended[0], ended[0].config).items()),
        curves=tuple(run.curves[SCORE] for run in ended if SCORE in run.curves),
        behaviour=ended[0].data.get("behaviour_score"),
    )
