"""Settings are chosen by seeds that are not reported, by how trainings end, and never by a run that broke."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.paper.experiments import choice
from score_rl.paper.experiments.choice import CHOSEN, COMMON, GRID, USUAL, Setting
from score_rl.paper.experiments.execution import cost, overview
from score_rl.paper.experiments.plan import Done, Request
from score_rl.paper.experiments.registry import get_experiment
from score_rl.paper.experiments.scales import SCALES
from score_rl.report.results import Curve, RunResult

PAPER = Request(SCALES["paper"])
DATA = "replica:hopper-expert"
LATE = [0.0] * 15 + [1.0] * 5


def done(
    label: str,
    scores: list[float] | np.ndarray,
    *,
    seed: int = 5,
    dataset: str = DATA,
    status: str = "finished",
    metric: str = "evaluation/score",
) -> Done:
    steps = np.arange(1, len(scores) + 1) * 50_000
    config = next((setting._asdict() for setting in GRID if str(setting) == label), {})
    return Done(
        label,
        RunResult(
            folder=Path("kept"), name=f"{label}_{seed}", algorithm="score", dataset=dataset, environment="hopper",
            task="hopper", seed=seed, config=config, status=status, step=int(steps[-1]), steps=int(steps[-1]),
            curves={metric: Curve(steps, np.array(scores, float))},
        ),
    )  # fmt: skip


BEST = Setting(0.5, 0.96)


def whole(best: Setting = BEST, height: float = 90.0, **options: Any) -> list[Done]:
    """A grid in which all settings end at 10, but for one."""
    return [
        done(str(setting), np.array(LATE) * (height if setting == best else 10), seed=seed, **options)
        for setting in GRID
        for seed in (5, 6)
    ]


def test_the_grid_is_the_papers_and_holds_the_usual_setting() -> None:
    assert len(GRID) == 9
    assert USUAL in GRID
    assert set(GRID) == {Setting(b, d) for b in (0.1, 0.2, 0.5) for d in (0.96, 0.98, 1.0)}


def test_those_who_choose_are_not_reported() -> None:
    for request in (PAPER, dataclasses.replace(PAPER, seeds=(3, 7))):
        asked = choice.plan(request)
        choosing = {each.run.seed for each in asked if each.label != COMMON}
        assert len(choosing) == 2
        assert not choosing & set(request.chosen_seeds)
        assert {each.run.seed for each in asked if each.label == COMMON} == set(request.chosen_seeds)
    assert len(choice.plan(PAPER)) == 15 * (9 * 2 + 5)
    assert cost(get_experiment("grid"), PAPER) == "420 × 1M", "with five seeds of each choice"


def test_the_last_quarter_counts_and_not_the_last_policy() -> None:
    peak = [0.0] * 19 + [60.0]
    steady = [0.0] * 15 + [20.0] * 5
    means = choice.means_on([done(str(GRID[0]), peak), done(str(GRID[1]), steady)], DATA)
    assert means == {GRID[0]: pytest.approx(12.0), GRID[1]: pytest.approx(20.0)}
    assert choice.best(means) == GRID[1]


def test_a_setting_with_a_broken_run_is_not_chosen_and_of_equals_the_first_is() -> None:
    runs = [
        done(str(GRID[2]), LATE, seed=5), done(str(GRID[2]), [99.0] * 3, seed=6, status="diverged"),
        done(str(GRID[4]), LATE), done(str(GRID[3]), LATE),
    ]  # fmt: skip
    means = choice.means_on(runs, DATA)
    assert set(means) == {GRID[3], GRID[4]}
    assert choice.best(means) == GRID[3]
    assert choice.best({}) is None


def test_choices_are_trained_with_the_reported_seeds() -> None:
    other = "replica:hopper-random"
    runs = whole() + whole(Setting(0.1, 1.0), dataset=other)
    request = dataclasses.replace(PAPER, datasets=("hopper-expert", "hopper-random"))
    asked = choice.then(request, runs)
    assert {each.label for each in asked} == {CHOSEN}
    trained = {(each.run.dataset, each.run.config.beta, each.run.config.bc_decay, each.run.seed) for each in asked}
    assert trained == {(DATA, 0.5, 0.96, s) for s in range(5)} | {(other, 0.1, 1.0, s) for s in range(5)}


def test_where_nothing_ended_nothing_is_chosen_and_it_is_said() -> None:
    request = dataclasses.replace(PAPER, datasets=("hopper-expert",))
    runs = whole(status="diverged")
    assert choice.then(request, runs) == []
    made = choice.present(request, runs)
    assert any("nothing could be chosen" in remark for remark in made.remarks)
    assert made.tables["chosen"].rows == []


def test_what_is_shown() -> None:
    reported = [done(CHOSEN, [88.0 + seed], seed=seed) for seed in range(5)]
    common = [done(COMMON, [70.0], seed=seed) for seed in range(4)] + [done(COMMON, [1.0], seed=4, status="diverged")]
    made = choice.present(PAPER, whole() + reported + common)
    ((dataset, setting, mean, mine, beside, paper, apart),) = made.tables["chosen"].rows
    assert (dataset, setting, mean) == (DATA, "β 0.5, γ_bc 0.96", "90.0")
    assert (mine, beside, paper) == ("90.0 ± 1.4", "70.0 ± 0.0", "112.0 ± 0.3")
    assert apart == "-22.0 (no)"
    (numbers,) = made.numbers["datasets"]
    assert numbers["by_seeds"] == [5, 6]
    assert numbers["chosen"] == {"beta": 0.5, "bc_decay": 0.96}
    assert len(numbers["grid"]) == 9
    assert any("diverged" in remark for remark in made.remarks)
    assert len(made.figures["grid"].axes) == 1


def test_tasks_without_a_score_are_chosen_by_their_return() -> None:
    runs = whole(dataset="logs", metric="evaluation/return")
    assert choice.best(choice.means_on(runs, "logs")) == Setting(0.5, 0.96)
    made = choice.present(PAPER, [*runs, done(CHOSEN, [5.0], dataset="logs", metric="evaluation/return")])
    assert made.tables["chosen"].rows[0][3:] == ("5.0 ± 0.0", "none ended", "-", "")


def test_the_plan_says_that_there_is_more_to_come(tmp_path: Path) -> None:
    request = dataclasses.replace(PAPER, datasets=("hopper-expert",), out=tmp_path)
    assert "after them what grid chooses" in overview([get_experiment("grid")], request).title
    assert "after them" not in overview([get_experiment("sweep-beta")], request).title
