"""The trainings of OGBench's table: their order, what they are told, and how SCORE's settings are chosen."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tyro

from benchmarks.training import ogbench, ogbench_jobs
from benchmarks.training.ogbench import Task, flags_of, start_what_is_ready, tasks_of
from benchmarks.training.ogbench_jobs import GRID, Length, chosen_job, chosen_settings, grid_job, results_folder
from benchmarks.training.ogbench_one import Arguments, is_stored, job_of, mark_of
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.report.results import SCORE, Curve, RunResult
from score_rl.report.stored_results import store_results

LENGTH = Length(steps=100, evaluations=4, episodes=5, seeds=(0, 1))


def run(curve: list[float], seed: int = 0, **settings: float) -> RunResult:
    values = np.array(curve)
    return RunResult(
        folder=Path(), name="run", algorithm="score", dataset="ogbench:data", environment=None, task=None, seed=seed,
        config={"alpha": 1.0, "beta": 0.0, "bc_decay": 1.0} | settings, status="finished", step=100, steps=100,
        curves={SCORE: Curve(np.arange(1, len(values) + 1) * 25, values)},
    )  # fmt: skip


def test_settings_are_chosen_by_late_success_with_and_without_a_penalty() -> None:
    grid = [
        run([100, 100, 0, 10], alpha=0.1),  # early success does not count
        run([0, 0, 40, 20], alpha=0.3),
        run([0, 0, 30, 30], alpha=2.5),  # as good, but later in the grid's order
        run([0, 0, 90, 90], seed=0, alpha=1.0, beta=0.2),
        run([0, 0, 10, 10], seed=1, alpha=1.0, beta=0.2),  # 50 over both seeds
        run([0, 0, 60, 60], alpha=2.5, beta=0.5, bc_decay=0.98),
    ]
    assert chosen_settings(grid, penalised=False) == {"alpha": 0.3, "beta": 0.0, "bc_decay": 1.0}
    assert chosen_settings(grid, penalised=True) == {"alpha": 2.5, "beta": 0.5, "bc_decay": 0.98}
    job = chosen_job("scene", LENGTH, grid)
    assert job.variants == ({"alpha": 2.5, "beta": 0.5, "bc_decay": 0.98}, {"alpha": 0.3, "beta": 0.0, "bc_decay": 1.0})
    assert job.about == {"chosen_by_seeds": [0, 1]}
    assert job.tasks == (1, 2, 3, 4, 5)


def test_the_grid_is_trained_on_the_default_task_alone() -> None:
    assert grid_job("scene", LENGTH).datasets == ["ogbench:scene-play-singletask-task2"]
    assert grid_job("puzzle-4x4", LENGTH).datasets == ["ogbench:puzzle-4x4-play-singletask-task4"]
    assert grid_job("scene", LENGTH).about == {"chooses_settings": True}
    assert np.prod([len(values) for values in GRID.values()]) == 32


def test_the_protocol_of_the_field() -> None:
    """1 M updates and 8 seeds; evaluated at 800,000, 900,000 and 1 M updates among others."""
    asked = tyro.cli(Arguments, args=["--out", "/out", "--protocol", "field", "--steps", "5"])
    length = job_of(asked, "scene", "iql").length
    assert (length.steps, length.seeds, length.episodes) == (1_000_000, tuple(range(8)), 50)
    assert {800_000, 900_000, 1_000_000} <= {(n + 1) * length.steps // length.evaluations for n in range(10)}


@pytest.mark.parametrize("method", ogbench_jobs.BASELINES)
def test_every_method_has_the_settings_that_it_is_told(method: str) -> None:
    config = make_config(get_algorithm(method), ogbench_jobs.BASELINES[method])
    for name, value in ogbench_jobs.BASELINES[method].items():
        assert getattr(config, name) == value


def test_a_process_is_told_what_it_is_to_do() -> None:
    asked = Arguments(Path("/out"), families=("scene",), seeds=3, transitions=500, only="train:scene:bc", tasks=(2,))
    assert tyro.cli(Arguments, args=list(flags_of(asked))) == asked


def test_families_follow_one_another_and_the_chosen_follow_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Arguments(
        tmp_path, families=("cube-single", "scene"), methods=("bc", "score-chosen", "iql", "score-grid"), at_once=2
    )
    tasks = tasks_of(asked)
    started: list[str] = []

    class Process:
        code: int | None = None

        def poll(self) -> int | None:
            return self.code

    def start(asked: Arguments, name: str, place: int | None) -> Any:
        started.append(name)
        return Process()

    def end(name: str, code: int = 0) -> list[str]:
        """What begins when this has ended."""
        task = next(task for task in tasks if task.name == name)
        task.process.code = code  # type: ignore[union-attr]
        before = len(started)
        start_what_is_ready(asked, tasks)
        return started[before:]

    monkeypatch.setattr(ogbench, "start", start)
    start_what_is_ready(asked, tasks)
    assert started == ["record:cube-single"]
    assert end("record:cube-single") == ["train:cube-single:bc", "train:cube-single:iql", "record:scene"]
    assert end("record:scene") == []  # two train
    assert end("train:cube-single:bc") == ["train:cube-single:score-grid"]
    assert end("train:cube-single:iql") == ["train:scene:bc"]
    assert end("train:cube-single:score-grid") == ["train:cube-single:score-chosen"]
    assert end("train:scene:bc", code=1) == ["train:scene:iql"]
    assert end("train:scene:iql") == ["train:scene:score-grid"]
    assert end("train:scene:score-grid", code=1) == []  # stopped: nothing can be chosen yet


def test_what_ended_before_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Arguments(tmp_path, families=("scene",), methods=("bc",), seconds=100.0)
    started: list[str] = []

    def start(asked: Arguments, name: str, place: int | None) -> Any:
        started.append(name)
        raise KeyboardInterrupt

    monkeypatch.setattr(ogbench, "start", start)
    mark_of(asked, "record:scene").touch()
    with pytest.raises(KeyboardInterrupt):
        ogbench.main(asked)
    assert started == ["train:scene:bc"]
    assert dataclasses.replace(Task("train:scene:bc"), before=True).ended


def test_a_longer_table_is_trained_after_a_shorter_one(tmp_path: Path) -> None:
    """Marks of one length say nothing of another, nor those of a trial's few rows of the whole recording."""
    short, long = Arguments(tmp_path), Arguments(tmp_path, seeds=8, steps=1_000_000)
    mark_of(short, "train:scene:bc").touch()
    assert not mark_of(long, "train:scene:bc").exists()
    assert mark_of(short, "record:scene") == mark_of(long, "record:scene")
    assert mark_of(Arguments(tmp_path, transitions=500), "record:scene") != mark_of(short, "record:scene")


def test_what_is_stored_from_elsewhere_is_not_done_again(tmp_path: Path) -> None:
    asked = Arguments(tmp_path, families=("scene",), methods=("bc",), seeds=1, steps=100)
    job = job_of(asked, "scene", "bc")
    stored = [run([1, 2, 3, 4]) for _ in job.tasks]
    store_results(stored[1:], results_folder(asked.out, job))
    assert not is_stored(asked, "scene", "bc"), "a task is missing"
    store_results(stored, results_folder(asked.out, job))
    assert is_stored(asked, "scene", "bc")
    assert not is_stored(dataclasses.replace(asked, steps=200), "scene", "bc")
    tasks = tasks_of(asked)
    ogbench.note_what_is_done(asked, tasks)
    assert [task.name for task in tasks if not task.before] == [], "data that nothing needs are not recorded"


def test_other_networks_tasks_or_rows_make_a_trial(tmp_path: Path) -> None:
    table = job_of(Arguments(tmp_path), "scene", "iql")
    assert table.folder == "ogbench-scene-iql"
    different: list[dict[str, Any]] = [{"hidden": (64, 64)}, {"tasks": (2,)}, {"transitions": 1_000}]
    for options in different:
        trial = job_of(Arguments(tmp_path, **options), "scene", "iql")
        assert (trial.folder, trial.about["trial"]) == ("ogbench-scene-iql-trial", True)
    trial = job_of(Arguments(tmp_path, hidden=(64, 64), tasks=(2,)), "scene", "iql")
    assert (trial.settings["hidden"], trial.tasks) == ((64, 64), (2,))


def test_a_task_that_fails_is_told_from_one_that_is_stopped() -> None:
    class Ended:
        def __init__(self, code: int) -> None:
            self.code = code

        def poll(self) -> int:
            return self.code

    def failed(code: int, *, is_stopped: bool = False) -> bool:
        process: Any = Ended(code)
        return Task("train:scene:bc", process=process, is_stopped=is_stopped).has_failed

    assert failed(1)
    assert failed(-9), "killed for want of memory"
    assert not failed(-15, is_stopped=True)
    assert not failed(ogbench.STOPPED)
    assert not failed(0)
