"""The rules of docs/six-sets.md, on results that were never measured."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from score_rl.paper.evidence.six_sets import (
    FOLDER,
    SIX,
    UPDATES,
    Cell,
    Ruined,
    SixSets,
    ahead_of_score,
    pairs,
    paper_mean,
    read_six_sets,
)
from score_rl.paper.evidence.six_verdicts import complete, order, strongest
from score_rl.paper.evidence.verdicts import FAILS, HOLDS, OPEN, PART
from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.results import RunResult
from tests.paper.evidence.made_up import curve_of

ROOT = Path("results", FOLDER)


def run(
    algorithm: str, dataset: str, seed: int, last: float, five: float | None = None, **options: object
) -> RunResult:
    name = f"{dataset}-recollected" if dataset.endswith("medium") else f"replica:{dataset}"
    steps = UPDATES // 1_000 if algorithm == "morel" else UPDATES
    made = curve_of(algorithm, name, [0.0] * 7 + [last if five is None else five] * 5, steps, seed=seed)
    return dataclasses.replace(made, folder=ROOT / algorithm, fresh_scores={100: last})


def cell(*scores: tuple[float, float], diverged: int = 0) -> Cell:
    runs = [run("cql", "hopper-medium", seed, *pair) for seed, pair in enumerate(scores)]
    return Cell("cql", "hopper-medium", (*runs, *[dataclasses.replace(runs[0], status="diverged")] * diverged))


def six(shift: dict[str, float] | None = None, spread: float = 0.1, left_out: tuple[str, ...] = ()) -> SixSets:
    """The paper's means as if they were measured here; `shift` moves some methods."""
    runs = [
        run(algorithm, dataset, seed, paper_mean(algorithm) + (shift or {}).get(algorithm, 0.0) + spread * (seed - 1))
        for algorithm in METHODS
        if algorithm not in left_out
        for dataset in SIX
        for seed in range(3)
    ]
    return read_six_sets(ROOT, runs)


def test_a_run_is_ruined_below_four_fifths_of_its_last_evaluations() -> None:
    assert cell((79.0, 100.0), (81.0, 100.0), (100.0, 50.0)).ruined == Ruined(1, 3)
    assert cell((0.0, 9.9), (1.0, 10.0)).ruined == Ruined(1, 1)  # near 0 a ratio says nothing
    assert cell((90.0, 100.0), diverged=2).ruined == Ruined(2, 3)


def test_only_the_last_five_evaluations_count() -> None:
    (value,) = cell((3.0, 40.0)).values("five")
    assert value == 40.0


def test_only_runs_of_the_protocol_are_read() -> None:
    good = run("cql", "hopper-medium", 0, 50.0)
    others = [
        dataclasses.replace(good, folder=Path("results", "elsewhere")),
        dataclasses.replace(good, steps=200_000),
        dataclasses.replace(good, seed=3),
        dataclasses.replace(good, fresh_scores={10: 50.0}),
        dataclasses.replace(good, status="training"),
        dataclasses.replace(good, config={"batch_size": 7}),
        dataclasses.replace(good, dataset="replica:hopper-expert"),
    ]
    assert read_six_sets(ROOT, others).cells == {}
    found = read_six_sets(ROOT, [good, run("morel", "hopper-random", 1, 3.0), *others])
    assert {key: len(cell.runs) for key, cell in found.cells.items()} == {
        ("cql", "hopper-medium"): 1, ("morel", "hopper-random"): 1,
    }  # fmt: skip


def test_a_method_has_a_mean_once_all_six_cells_have_three_sound_seeds() -> None:
    whole = six()
    assert whole.by_seed("cql", "last") == pytest.approx([paper_mean("cql") + shift for shift in (-0.1, 0.0, 0.1)])
    broken = dict(whole.cells)
    runs = broken["cql", "hopper-medium"].runs
    broken["cql", "hopper-medium"] = Cell("cql", "hopper-medium", runs[:2])
    assert SixSets(broken).by_seed("cql", "last") is None
    broken["cql", "hopper-medium"] = Cell(
        "cql", "hopper-medium", (*runs[:2], dataclasses.replace(runs[2], status="diverged"))
    )
    assert SixSets(broken).by_seed("cql", "last") is None


def test_the_papers_own_means_hold_and_shuffled_ones_do_not() -> None:
    assert (order(six(), "last"), strongest(six(), "last")) == (HOLDS, HOLDS)
    reversed_means = {a: -2 * paper_mean(a) for a in METHODS}
    assert order(six(reversed_means), "last") == FAILS
    assert strongest(six(reversed_means), "last") == FAILS
    assert order(six(spread=500.0), "last") == PART  # nothing is told apart


def test_methods_that_have_not_run_leave_it_open_unless_one_is_ahead() -> None:
    some = six(left_out=("uwac",))
    assert (order(some, "last"), strongest(some, "last")) == (OPEN, OPEN)
    assert "uwac" not in complete(some, "last")
    ahead = six({"bear": 60.0}, left_out=("uwac",))
    assert (ahead_of_score(ahead, "last"), strongest(ahead, "last")) == (["bear"], FAILS)
    close = six({"pbrl-prior": 5.0}, spread=20.0)
    assert np.mean(close.by_seed("pbrl-prior", "last") or ()) > np.mean(close.by_seed("score", "last") or ())
    assert strongest(close, "last") == PART


def test_pairs_that_the_paper_prints_alike_are_not_asked() -> None:
    asked = {frozenset(pair[:2]) for pair in pairs(six(), "last")}
    near = {frozenset((a, b)) for a in METHODS for b in METHODS if a != b and abs(paper_mean(a) - paper_mean(b)) < 1.0}
    assert near
    assert not asked & near
    assert len(asked) + len(near) == len(METHODS) * (len(METHODS) - 1) // 2
