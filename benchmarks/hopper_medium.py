"""The paper's hopper-medium cell: SCORE, β 0.2, γ_bc 0.98, 1 M updates, 5 seeds in one fleet, the last policy counts.

    python benchmarks/hopper_medium.py hopper_medium-v2.hdf5 --out FOLDER

The data are collected afresh with the behaviour policy that D4RL's file stores, under D4RL's physics. What is
kept goes to FOLDER/results: the evaluation curve as a table and a picture, and a summary with its provenance.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from keep import draw, keep, summarise

import score_rl
from score_rl.data.recollect import recollect

PAPER = {"mean": 99.6, "std": 2.8}  # the paper's cell for hopper-medium-v2
NAME = "hopper-medium-recollected"
KEPT = ("evaluation/score", "evaluation/return", "train/uncertainty", "train/q")


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
    data = asked.out / f"{NAME}.hdf5"
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
    summary = summarise(experiment) | {
        "what": "SCORE on re-collected hopper-medium, last policy, normalised score in percent",
        "paper": PAPER,
        "seconds_collecting": collected - began,
        "seconds_training_and_evaluating": trained - collected,
    }
    folder = asked.out / "results"
    keep(experiment, summary, folder, KEPT)
    panels = (("evaluation/score", "normalised score (%)"), ("train/q", "mean Q"), ("train/uncertainty", "u(s, a)"))
    draw(folder, "SCORE on re-collected hopper-medium", panels, {NAME: PAPER["mean"]})
    print(json.dumps({k: v for k, v in summary.items() if k not in ("request", "provenance", "config")}, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
