"""What is kept of an experiment: a small table of its curves, a summary with its provenance, a picture."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import score_rl


def trained(
    folder: Path, datasets: Sequence[str], *, steps: int, evaluations: int, **options: Any
) -> score_rl.Experiment:
    """The experiment in a folder, begun or gone on with; judged so many times along each curve."""
    if (folder / "experiment.json").exists():
        return score_rl.resume(folder)
    return score_rl.train(datasets, steps=steps, eval_every=steps // evaluations, out=folder, **options)


def summarise(experiment: score_rl.Experiment, episodes: int = 100, reached: int | None = None) -> dict[str, Any]:
    """Per data set, normalised scores of the last policies: as evaluated in training, and in fresh episodes if any.

    What was stopped is summarised as what it was after `reached` updates, at which every run was judged.
    """
    metrics = experiment.metrics
    results: dict[str, Any] = {}
    for dataset, about in experiment.record.datasets.items():
        runs = [run for run in experiment if run.dataset == dataset]
        ended = [run for run in runs if run.status.state != "diverged"]
        last = [_score(metrics.of(run.id).curve("evaluation/score"), reached) for run in ended]
        results[dataset] = {
            "config": runs[0].record.config,
            "behaviour_score": about.behaviour_score,
            "rows": about.rows,
            "checksum": about.checksum,
            "seeds": [run.seed for run in runs],
            "diverged": [run.seed for run in runs if run not in ended],
            "last_policies": last,
            "mean": float(np.mean(last)) if last else None,
            "std": float(np.std(last)) if last else None,
            "updates_per_second": _pace(metrics, runs),
        }
        if episodes:
            judged = experiment.evaluate_runs(episodes, runs=ended) if ended else ()
            fresh = [judgement.summary(0)["score"] for _, judgement in judged]
            results[dataset] |= {
                f"last_policies_{episodes}_episodes": fresh,
                f"mean_{episodes}_episodes": float(np.mean(fresh)) if fresh else None,
            }
    request = experiment.spec.to_json()
    shown = request | {"datasets": [Path(name).name for name in request["datasets"]]}
    if reached is not None:
        shown |= {"steps": reached, "steps_asked_for": request["steps"]}
    return {
        "request": shown,
        "config": experiment[0].record.config,
        "results": results,
        "provenance": experiment.record.provenance,
    }


def _pace(metrics: Any, runs: Sequence[Any]) -> float | None:
    """Of each run of its fleet, with evaluation, since the process that ended the training began."""
    last = [metrics.of(run.id).curve("speed/updates_per_second")[1][-1:] for run in runs]
    found = np.concatenate(last) if last else np.array([])
    return float(found.mean()) if found.size else None


def _score(curve: tuple[np.ndarray, np.ndarray], step: int | None) -> float:
    steps, scores = curve
    return float(scores[-1 if step is None else list(steps).index(step)])


def keep(
    experiment: score_rl.Experiment,
    summary: dict[str, Any],
    folder: Path,
    names: tuple[str, ...],
    reached: int | None = None,
) -> None:
    """`summary.json`, and `curves.csv` with the metrics called `names` on the grid of the evaluations."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    grid, runs = experiment.spec.eval_every, {run.id: run for run in experiment}
    with (folder / "curves.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("dataset", "seed", "step", "name", "value"))
        rows.writerows(
            (runs[row.run].dataset, runs[row.run].seed, row.step, row.name, f"{row.value:.6g}")
            for row in experiment.metrics
            if row.name in names and row.step % grid == 0 and row.step <= (reached or row.step)
        )


def draw(folder: Path, title: str, panels: tuple[tuple[str, str], ...], paper: dict[str, float] | None = None) -> None:
    """Mean and standard deviation over seeds, a row per data set, from the kept table alone."""
    from matplotlib.figure import Figure

    with (folder / "curves.csv").open() as file:
        table = list(csv.DictReader(file))
    datasets = list(dict.fromkeys(row["dataset"] for row in table))
    figure = Figure(figsize=(3.2 * len(panels), 2.8 * len(datasets)), layout="constrained")
    grid = figure.subplots(len(datasets), len(panels), squeeze=False)
    for line, dataset in zip(grid, datasets, strict=True):
        for axes, (name, label) in zip(line, panels, strict=True):
            rows = [row for row in table if row["name"] == name and row["dataset"] == dataset]
            steps = np.array(sorted({int(row["step"]) for row in rows}))
            values = [np.array([float(r["value"]) for r in rows if int(r["step"]) == step]) for step in steps]
            mean, std = np.array([v.mean() for v in values]), np.array([v.std() for v in values])
            axes.plot(steps / 1e3, mean, color="#0072b2")
            axes.fill_between(steps / 1e3, mean - std, mean + std, color="#0072b2", alpha=0.25, linewidth=0)
            if name == "evaluation/score" and paper and dataset in paper:
                axes.axhline(paper[dataset], color="#d55e00", linestyle="--", label="paper")
                axes.legend(frameon=False)
            axes.set(xlabel="thousand updates", ylabel=label)
            if len(datasets) > 1:
                axes.set_title(dataset, fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{title}: mean ± std over seeds", fontsize=10)
    figure.savefig(folder / "curves.svg")
