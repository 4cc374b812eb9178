"""Train an experiment, or go on with it, and store the results of its runs in the one format."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import score_rl
from score_rl.report.results import FINISHED, SCORE, SPEED, SUCCESS, Curve, RunResult, read_experiment
from score_rl.report.stored_results import store_results
from score_rl.store.lock import is_held

SECONDS_FOR_ANOTHER = 60.0  # to stop training in the same folder


def trained(
    folder: Path, datasets: Sequence[str], *, steps: int, evaluations: int, **options: Any
) -> score_rl.Experiment:
    """The experiment in a folder, begun or gone on with; judged so many times along each curve."""
    if (folder / "experiment.json").exists():
        _wait_until_free(folder)
        return score_rl.resume(folder)
    return score_rl.train(datasets, steps=steps, eval_every=steps // evaluations, out=folder, **options)


def _wait_until_free(folder: Path) -> None:
    """A training whose parent was killed stops by itself, once it has compiled or done its window."""
    limit = time.monotonic() + SECONDS_FOR_ANOTHER
    while is_held(folder) and time.monotonic() < limit:
        time.sleep(0.2)


def fresh_scores(experiment: score_rl.Experiment, episodes: int) -> dict[str, float]:
    """By run, the mean score of its last policy in fresh episodes; none of runs that diverged."""
    ended = [run for run in experiment if run.status.state != "diverged"]
    judged = experiment.evaluate_runs(episodes, runs=ended) if ended else ()
    return {run.id: judgement.summary(0)["score"] for run, judgement in judged}


def store(
    experiment: score_rl.Experiment,
    folder: Path,
    *,
    fresh: tuple[int, Mapping[str, float]] = (0, {}),
    about: Mapping[str, Any] | None = None,
) -> list[RunResult]:
    """Store the runs with their evaluations, the metrics of the algorithm's headline and their speed.

    `fresh` is a number of episodes and the scores in them; `about` is added to the request.
    """
    told = [
        dataclasses.replace(run, request={**run.request, **(about or {})})
        for run in read_experiment(experiment.folder.path)
    ]
    runs = with_fresh_scores(told, *fresh)
    _write(experiment, runs, folder)
    return runs


def with_fresh_scores(runs: Sequence[RunResult], episodes: int, scores: Mapping[str, float]) -> list[RunResult]:
    """The runs with the scores of their last policies in so many fresh episodes."""
    return [
        dataclasses.replace(run, fresh_scores={episodes: scores[run.name]} if run.name in scores else {})
        for run in runs
    ]


def store_what_was_reached(
    experiment: score_rl.Experiment, folder: Path, *, about: Mapping[str, Any] | None = None, more_than: int = 0
) -> list[RunResult]:
    """Store an interrupted experiment as the shorter one it is: all runs up to where each of them was judged.

    Nothing is stored unless all runs together have done more updates than `more_than`.
    """
    runs = read_experiment(experiment.folder.path)
    judged = [run.curves[SCORE].steps[-1] if SCORE in run.curves else 0 for run in runs if run.status != "diverged"]
    reached = int(min(judged, default=0))
    if reached * len(runs) <= more_than:
        return []
    shorter = [cut(run, reached) for run in runs]
    shorter = [dataclasses.replace(run, request={**run.request, **(about or {})}) for run in shorter]
    _write(experiment, shorter, folder)
    return shorter


def cut(run: RunResult, reached: int) -> RunResult:
    """The run as if it had been asked for so many updates."""
    curves = {}
    for name, curve in run.curves.items():
        early = curve.steps <= reached
        if early.any():
            curves[name] = Curve(curve.steps[early], curve.values[early])
    return dataclasses.replace(
        run,
        status=run.status if run.status == "diverged" else FINISHED,
        step=min(run.step, reached),
        steps=reached,
        curves=curves,
        request={**run.request, "steps": reached, "steps_asked_for": run.steps},
    )


def _write(experiment: score_rl.Experiment, runs: Sequence[RunResult], folder: Path) -> None:
    headline = (f"train/{name}" for name in experiment[0].algorithm.headline)
    store_results(runs, folder, (SCORE, SUCCESS, *headline, SPEED), experiment.spec.eval_every)


def described(runs: Sequence[RunResult]) -> str:
    """The last policies' scores by data set, in a line."""
    by_dataset: dict[str, list[float]] = {}
    for run in runs:
        if run.finished and run.score is not None:
            by_dataset.setdefault(run.dataset, []).append(run.score)
    parts = (f"{name} {np.mean(scores):.1f} ± {np.std(scores):.1f}" for name, scores in by_dataset.items())
    return ", ".join(parts) or "no run was judged"
