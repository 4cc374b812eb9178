"""Stored results as tables and claims want them: one protocol for each method and data set, the rest by name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.paper.evidence import grids
from score_rl.paper.evidence.records import Choice, Ending, Evidence, Result, read_experiments
from score_rl.paper.evidence.wanted import WANTED, read_wanted
from score_rl.paper.experiments.choice import Setting, ending
from score_rl.paper.experiments.execution import once
from score_rl.paper.experiments.protocols import candidates, ordinary, protocol_of, was_chosen
from score_rl.report.grouping import gather, group, tell_apart, unusual
from score_rl.report.published import PAPER_STEPS, data_kind, paper_dataset, paper_datasets
from score_rl.report.results import SCORE, Curve, Group, RunResult

RESULTS = Path("benchmarks", "results")  # in a checkout


def read(checkout: Path) -> Evidence:
    """What is stored in a checkout."""
    folder = checkout / RESULTS
    speeds = {path: json.loads(path.read_text()) for path in sorted((folder / "speed").glob("*.json"))}
    runs = gather([folder])
    found = collect(runs, read_experiments(folder / "experiments"), speeds)
    alone = [run for run in runs if folder / "experiments" not in run.folder.parents]
    choices = read_choices(folder, runs, found)
    endings = [*endings_of(alone), *endings_in_grids(folder)]
    return replace(
        found, choices=choices, variants=read_variants(alone), endings=endings,
        wanted=read_wanted(checkout / WANTED), checkout=checkout,
    )  # fmt: skip


def read_variants(runs: Sequence[RunResult]) -> list[Result]:
    """Runs with settings that are not the authors'. Those that a grid chose have a table of their own."""
    mine = [run for run in runs if not ordinary(run) and not was_chosen(run)]
    return [result_of(each) for each in group(tell_apart(mine)) if protocol_of(each).seeds]


def read_choices(folder: Path, runs: Sequence[RunResult], evidence: Evidence) -> list[Choice]:
    """By the paper's order of data sets."""
    found = []
    for path in sorted(folder.glob(f"grid-*/{grids.TABLE}")):
        request = json.loads(path.with_name("grid.json").read_text())["request"]
        scores = grids.judged(path)
        for dataset, setting in grids.choices(path).items():
            name = paper_dataset(dataset) or dataset
            mine = [
                run
                for run in runs
                if (run.algorithm, run.dataset, run.steps) == ("score", dataset, request["steps"])
                and was_chosen(run)
                and (run.config["beta"], run.config["bc_decay"]) == setting
            ]
            reported = result_of(group(tell_apart(mine))[0]) if mine else None
            if setting == grids.COMMON:
                reported = evidence.results.get(("score", name))
            means = (scores[dataset][setting], scores[dataset].get(grids.COMMON))
            found.append(Choice(name, *setting, tuple(request["seeds"]), *means, path, reported, scores[dataset]))
    return sorted(found, key=lambda choice: paper_datasets().index(choice.dataset))


def endings_of(runs: Sequence[RunResult]) -> list[Ending]:
    """Of runs in the paper's length that differ from the common setting in nothing but β and γ_bc."""
    found = []
    for run in runs:
        full = run.algorithm == "score" and run.finished and run.steps >= PAPER_STEPS and SCORE in run.curves
        if full and set(unusual(run, run.config)) <= {"beta", "bc_decay"}:
            found.append(_ending(run.dataset, _setting(run.config), run.curves[SCORE], run.folder / "curves.csv"))
    return found


def endings_in_grids(folder: Path) -> list[Ending]:
    return [
        _ending(dataset, setting, curve, path)
        for path in sorted(folder.glob(f"grid-*/{grids.TABLE}"))
        for (dataset, setting, _), curve in grids.ended(path).items()
        if curve.steps[-1] >= PAPER_STEPS
    ]


def _ending(dataset: str, setting: Setting, curve: Curve, file: Path) -> Ending:
    return Ending(paper_dataset(dataset) or dataset, *setting, float(np.max(curve.values)), ending(curve), file)


def _setting(config: Mapping[str, Any]) -> Setting:
    return Setting(config.get("beta", grids.COMMON.beta), config.get("bc_decay", grids.COMMON.bc_decay))


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
    again = [run.judged_again() for run in ended]
    return Result(
        algorithm=group.algorithm,
        dataset=paper_dataset(group.dataset) or group.dataset,
        data=data_kind(group.dataset),
        rows=ended[0].data.get("rows"),
        protocol=protocol_of(group),
        precision=ended[0].request.get("precision", "float32"),
        scores=group.final(SCORE).tolist(),
        fresh=None if None in again else [value for value in again if value is not None],
        files=tuple(dict.fromkeys(run.folder / "summary.json" for run in ended)),
        unusual=", ".join(f"{name} = {value}" for name, value in unusual(ended[0], ended[0].config).items()),
    )
