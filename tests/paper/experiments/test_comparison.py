"""Settings that a grid chose stand beside the one setting for all, and are in no mean of it."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.paper.experiments import comparison
from score_rl.paper.experiments.plan import Presentation, Request
from score_rl.paper.experiments.protocols import chosen
from score_rl.paper.experiments.scales import SCALES
from score_rl.report.results import Curve, RunResult

MILLION = 1_000_000


def runs(
    dataset: str,
    scores: list[int],
    steps: int = MILLION,
    by: tuple[Any, ...] = (),
    algorithm: str = "score",
    **config: Any,
) -> list[RunResult]:
    request = {"eval_episodes": 10, "settings": {name: [value] for name, value in config.items()}}
    if by:
        request["chosen_by_seeds"] = list(by)
    return [
        RunResult(
            folder=Path(f"{algorithm}-{dataset}-{steps}-{config}"), name=f"{dataset}_seed={seed}", algorithm=algorithm,
            dataset=f"replica:{dataset}", environment="hopper", task="hopper", seed=seed, config=config,
            status="finished", step=steps, steps=steps, request=request,
            curves={"evaluation/score": Curve(np.array([steps]), np.array([float(score)]))},
        )
        for seed, score in enumerate(scores)
    ]  # fmt: skip


COMMON = runs("hopper-medium", [98, 99, 100, 101, 102]) + runs("hopper-expert", [70, 75, 80, 85, 90])
BETTER = runs("hopper-expert", [103, 103, 104, 105, 105], by=(5, 6), beta=0.5, bc_decay=0.96)


def shown(results: list[RunResult]) -> Presentation:
    return comparison.main_table(Request(scale=SCALES["paper"], out=Path("out")), comparison.stored(results))


def test_without_choices_there_is_no_table_of_them() -> None:
    made = shown(COMMON + runs("hopper-expert", [1, 2], beta=0.5))
    assert "chosen" not in made.tables
    assert "chosen" not in made.numbers


def test_choices_have_a_table_of_their_own() -> None:
    made, plain = shown(COMMON + BETTER), shown(COMMON)
    assert made.tables["summary"] == plain.tables["summary"]
    assert made.texts == plain.texts
    expert, overall = made.tables["chosen"].rows
    assert made.tables["chosen"].columns[1] == "beta, bc_decay"
    assert expert[:4] == ("hopper-expert", "0.5, 0.96", "104.0 ± 0.9", "80.0 ± 7.1")
    assert overall[:3] == ("overall (2 data sets)", "on 1 of 2", "102.0 ± 1.2")
    assert overall[3] == "90.0 ± 4.2"
    (number,) = made.numbers["chosen"]
    assert number["settings"] == {"beta": 0.5, "bc_decay": 0.96}
    assert (number["by_seeds"], number["seeds"], number["mean"]) == ([5, 6], 5, pytest.approx(104.0))


def test_choices_are_in_no_aggregate() -> None:
    done = comparison.stored(COMMON + BETTER)
    assert comparison.final_scores(done) == comparison.final_scores(comparison.stored(COMMON))


def test_a_shorter_choice_says_so_and_is_in_no_mean() -> None:
    short = runs("hopper-expert", [103, 104, 105], steps=300_000, by=(5, 6), beta=0.5, bc_decay=0.96)
    (expert,) = shown(COMMON + short).tables["chosen"].rows
    assert expert[2] == "104.0 ± 0.8 (300k × 3)"


def test_of_several_choices_the_longest_counts() -> None:
    short = runs("hopper-expert", [1, 2, 3, 4, 5], steps=300_000, by=(5, 6), beta=0.1, bc_decay=1.0)
    (found,) = chosen(short + BETTER + COMMON)
    assert [run.score for run in found.runs] == [103, 103, 104, 105, 105]


def test_a_choice_of_which_no_run_ended_is_none() -> None:
    broken = [dataclasses.replace(run, status="diverged") for run in BETTER]
    assert chosen(broken + COMMON) == []
    assert "chosen" not in shown(broken + COMMON).tables
