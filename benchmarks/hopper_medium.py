"""The paper's hopper-medium cell: SCORE, β 0.2, γ_bc 0.98, 1 M updates, 5 seeds in one fleet, the last policy counts.

    python benchmarks/hopper_medium.py hopper_medium-v2.hdf5 --out FOLDER

The data are collected afresh with the behaviour policy that D4RL's file stores, under D4RL's physics. What is
kept goes to FOLDER/results: the evaluation curve as a table and a picture, and a summary with its provenance.
"""

import csv
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

import score_rl
from score_rl.data.collect import recollect

PAPER = {"mean": 99.6, "std": 2.8}  # the paper's cell for hopper-medium-v2


@dataclass(frozen=True)
class Arguments:
    source: Annotated[Path, tyro.conf.Positional]
    """D4RL's hopper_medium-v2.hdf5, whole or an excerpt: only the policy inside is used."""
    out: Path
    """Folder for data, runs and results."""
    transitions: int = 1_000_000
    steps: int = 1_000_000
    seeds: int = 5
    eval_every: int = 20_000


def main(asked: Arguments) -> None:
    asked.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    data = asked.out / "hopper-medium-recollected.hdf5"
    if not data.exists():
        recollect(asked.source, data, transitions=asked.transitions, seed=0)
    collected = time.perf_counter()
    experiment = score_rl.train(
        str(data),
        seeds=range(asked.seeds),
        config={"beta": 0.2, "bc_decay": 0.98},
        steps=asked.steps,
        eval_every=asked.eval_every,
        out=asked.out / "run",
    )
    trained = time.perf_counter()
    final = {run.id: run.evaluate(100).summary(0) for run in experiment}
    last = [experiment.metrics.of(run.id).curve("evaluation/score")[1][-1] for run in experiment]
    about = experiment.about
    dataset = next(iter(about["datasets"].values()))
    summary = {
        "what": "SCORE on re-collected hopper-medium, last policy, normalised score in percent",
        "paper": PAPER,
        "mean_of_last_policies_10_episodes": float(np.mean(last)),
        "std_over_seeds_10_episodes": float(np.std(last)),
        "last_policies_10_episodes": [float(score) for score in last],
        "mean_of_last_policies_100_episodes": float(np.mean([s["score"] for s in final.values()])),
        "last_policies_100_episodes": {run: s["score"] for run, s in final.items()},
        "seconds_collecting": collected - began,
        "seconds_training_and_evaluating": trained - collected,
        "behaviour_return": dataset["behaviour_return"],
        "behaviour_return_std": dataset["behaviour_return_std"],
        "data_checksum": dataset["checksum"],
        "request": {k: v for k, v in about["request"].items() if k != "datasets"},
        "provenance": about["provenance"],
    }
    store(experiment, summary, asked.out / "results")
    print(json.dumps({k: v for k, v in summary.items() if k not in ("request", "provenance")}, indent=1))


def store(experiment: score_rl.Experiment, summary: dict, folder: Path) -> None:
    """Small files, made to be kept."""
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    kept = ("evaluation/score", "evaluation/return", "train/uncertainty", "train/q")
    grid = experiment.spec.eval_every
    with (folder / "curves.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("seed", "step", "name", "value"))
        seeds = {run.id: run.seed for run in experiment}
        rows.writerows(
            (seeds[row.run], row.step, row.name, f"{row.value:.6g}")
            for row in experiment.metrics
            if row.name in kept and row.step % grid == 0
        )
    draw(folder)


def draw(folder: Path) -> None:
    """Score, value and uncertainty over training, from the stored table alone."""
    from matplotlib.figure import Figure

    summary = json.loads((folder / "summary.json").read_text())
    with (folder / "curves.csv").open() as file:
        table = list(csv.DictReader(file))
    figure = Figure(figsize=(9, 3), layout="constrained")
    panels = (("evaluation/score", "normalised score (%)"), ("train/q", "mean Q"), ("train/uncertainty", "u(s, a)"))
    for axes, (name, label) in zip(figure.subplots(1, 3), panels, strict=True):
        rows = [row for row in table if row["name"] == name]
        steps = np.array(sorted({int(row["step"]) for row in rows}))
        values = np.array(
            [[float(r["value"]) for r in rows if int(r["step"]) == step] for step in steps]
        )  # steps × seeds
        mean, std = values.mean(1), values.std(1)
        axes.plot(steps / 1e3, mean, color="#0072b2")
        axes.fill_between(steps / 1e3, mean - std, mean + std, color="#0072b2", alpha=0.25, linewidth=0)
        if name == "evaluation/score":
            axes.axhline(summary["paper"]["mean"], color="#d55e00", linestyle="--", label="paper")
            axes.legend(frameon=False)
        axes.set(xlabel="thousand updates", ylabel=label)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("SCORE on re-collected hopper-medium: mean ± std over seeds")
    figure.savefig(folder / "curves.svg")


if __name__ == "__main__":
    main(tyro.cli(Arguments))
