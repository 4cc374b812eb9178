"""Results that were never measured, for tests of what is made of measured ones."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.published import paper_datasets, paper_method, paper_table
from score_rl.report.results import Curve, RunResult

MILLION = 1_000_000


def runs(
    algorithm: str,
    dataset: str,
    scores: list[Any],
    steps: int = MILLION,
    *,
    folder: str = "kept",
    status: str = "finished",
    request: dict[str, Any] | None = None,
    first: int = 0,
    **config: Any,
) -> list[RunResult]:
    """A run for each score, by seeds from the first on."""
    return [
        RunResult(
            folder=Path(folder), name=f"{dataset}_seed={seed}", algorithm=algorithm, dataset=dataset,
            environment="hopper", task="hopper", seed=seed, config=config, status=status, step=steps, steps=steps,
            curves={"evaluation/score": Curve(np.array([steps]), np.array([float(score)]))},
            data={"checksum": folder}, request={"eval_episodes": 10} | (request or {}),
        )
        for seed, score in enumerate(scores, first)
    ]  # fmt: skip


def curve_of(
    algorithm: str, dataset: str, scores: list[Any], steps: int = MILLION, *, seed: int = 0, **options: Any
) -> RunResult:
    """A run with so many evaluations, evenly spaced, up to its end."""
    (run,) = runs(algorithm, dataset, [0], steps, first=seed, **options)
    places = np.arange(1, len(scores) + 1) * (steps // len(scores))
    return dataclasses.replace(run, curves={"evaluation/score": Curve(places, np.array(scores, float))})


def complete(
    shift: dict[str, float] | None = None,
    methods: list[str] | tuple[str, ...] = METHODS,
    datasets: list[str] | None = None,
    steps: int = MILLION,
) -> list[RunResult]:
    """The paper's own means as if they were measured here, close together; `shift` moves some."""
    made = []
    for algorithm in methods:
        for dataset in datasets or paper_datasets():
            method = paper_method(algorithm)
            assert method is not None
            mean = paper_table()[dataset, method].mean + (shift or {}).get(algorithm, 0.0)
            length = steps // 1_000 if algorithm == "morel" else steps
            made += runs(algorithm, f"replica:{dataset}", [mean + 0.05 * seed for seed in range(-2, 3)], length)
    return made
