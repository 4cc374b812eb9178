"""OGBench's table: means over tasks and late evaluations, from results made up here and stored as others are."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.paper.evidence import reading
from score_rl.paper.evidence.ogbench_table import ENVIRONMENTS, ogbench, published, trials
from score_rl.paper.evidence.records import Evidence
from score_rl.report.results import SCORE, Curve, RunResult
from score_rl.report.stored_results import store_results
from tests.paper.evidence.made_up import runs

STEPS = 300_000


def task(number: int, late: list[float], *, seed: int, method: str = "iql", **config: Any) -> RunResult:
    """A run on one of scene's tasks whose evaluations end so."""
    (run,) = runs(method, f"ogbench:scene-play-singletask-task{number}", [0], STEPS, first=seed, **config)
    places = np.arange(1, len(late) + 1) * (STEPS // len(late))
    return dataclasses.replace(run, curves={SCORE: Curve(places, np.array(late, float))})


def stored(checkout: Path, name: str, found: list[RunResult]) -> Evidence:
    wanted = checkout / reading.WANTED
    wanted.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parents[3] / reading.WANTED, wanted)
    store_results(found, checkout / "benchmarks" / "results" / f"ogbench-scene-{name}")
    return reading.read(checkout)


def line(table: str, method: str) -> list[str]:
    (found,) = (row for row in table.splitlines() if row.startswith(f"| {method} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_a_cell_is_the_mean_over_tasks_and_late_evaluations(tmp_path: Path) -> None:
    mine = [task(n, [100, 10 * n, 10 * n, 10 * n + 3 * seed], seed=seed) for n in range(1, 6) for seed in (0, 1)]
    unfinished = task(1, [100, 100, 100], seed=2)  # its other tasks are missing
    evidence = stored(tmp_path, "iql", [*mine, unfinished])
    cells = line(ogbench(evidence, tmp_path / "docs"), "IQL")
    place = 1 + 2 * ENVIRONMENTS.index("scene")
    assert cells[place] == "[30.5 ± 0.5](../benchmarks/results/ogbench-scene-iql/summary.json) (300 k × 2)"
    assert cells[place + 1] == "28 ± 1"
    assert cells[1] == "–"
    assert not evidence.others, "they are in no table of the paper's data sets"


def test_chosen_settings_have_a_line_with_the_penalty_and_one_without(tmp_path: Path) -> None:
    mine = [
        task(n, [value], seed=0, method="score", beta=beta)
        for n in range(1, 6)
        for beta, value in ((0.2, 70), (0.0, 40))
    ]
    grid = [dataclasses.replace(run, request={"chooses_settings": True}) for run in mine]
    stored(tmp_path, "score-grid", grid)
    table = ogbench(stored(tmp_path, "score-chosen", mine), tmp_path)
    assert any(cell.startswith("[70.0]") for cell in line(table, "SCORE, chosen with β > 0"))
    assert any(cell.startswith("[40.0]") for cell in line(table, "SCORE, chosen with β = 0"))


def test_trials_stand_beside_the_table_and_never_in_it(tmp_path: Path) -> None:
    about: dict[str, Any] = {
        "provenance": {"device": {"platform": "cpu", "kind": "cpu"}, "cores": 2},
        "data": {"rows": 150_000},
    }
    mine = [dataclasses.replace(task(2, [0, 40, 50, 60], seed=seed, hidden=[256, 256]), **about) for seed in (0, 1)]
    evidence = stored(tmp_path, "iql-trial", mine)
    assert "–" in line(ogbench(evidence, tmp_path), "IQL")[1 + 2 * ENVIRONMENTS.index("scene")]
    (row,) = trials(evidence, tmp_path / "docs").splitlines()[2:]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "scene-play-singletask-task2", "150,000", "IQL", "256 × 256", "300 k × 2", "2 CPU cores",
        "[50.0 ± 0.0](../benchmarks/results/ogbench-scene-iql-trial/summary.json)",
    ]  # fmt: skip


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    assert ogbench(Evidence({}, checkout=tmp_path), tmp_path).endswith("Ours is not measured yet.")


@pytest.mark.parametrize(("environment", "fql"), [("cube-single", 96), ("cube-double", 29), ("scene", 56)])
def test_what_the_fql_paper_prints(environment: str, fql: float) -> None:
    assert published()[environment, "FQL"].mean == fql
    assert len(published()) == 4 * len(ENVIRONMENTS)
