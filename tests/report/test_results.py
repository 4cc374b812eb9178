"""Experiments become records, and none of them gets lost."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.report import results as found
from score_rl.report.grouping import by_dataset, by_method, gather, group, short_names
from score_rl.report.results import SCORE, UNCERTAINTY
from tests.report.folders import write_experiment


def test_a_run_is_what_the_folder_says(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0, 2.0, 3.0], 3: [4.0, 5.0, 6.5]})
    first, second = gather([tmp_path / "a"])
    assert (first.name, first.seed, first.algorithm) == ("replica-hopper-medium_seed=0", 0, "score")
    assert (first.task, first.environment, first.title) == ("hopper", "hopper", "SCORE")
    assert (first.status, first.step, first.steps, first.finished) == ("finished", 30, 30, True)
    np.testing.assert_array_equal(second.curves[SCORE].steps, [10, 20, 30])
    np.testing.assert_array_equal(second.curves[SCORE].values, [4.0, 5.0, 6.5])
    assert second.score == 6.5
    assert second.last("evaluation/nothing") is None
    assert first.settings == {}, "seeds are not settings"
    assert first.config["beta"] == 0.2
    assert first.provenance["python"] == "3.11.7"


def test_every_state_is_kept_and_told_apart(tmp_path: Path) -> None:
    write_experiment(tmp_path / "running", state="running", states={0: "finished", 1: "training", 2: "diverged",
                     3: "waiting"}, scores={s: [1.0] * (3 - s) for s in range(4)})  # fmt: skip
    assert [run.status for run in gather([tmp_path / "running"])] == ["finished", "training", "diverged", "waiting"]
    write_experiment(tmp_path / "failed", state="failed", error="no space <left>", states={0: "training"},
                     scores={0: [1.0]})  # fmt: skip
    (run,) = gather([tmp_path / "failed"])
    assert (run.status, run.error, run.step) == ("failed", "no space <left>", 10)
    write_experiment(tmp_path / "stopped", state="interrupted", states={0: "training"}, scores={0: [1.0]})
    assert gather([tmp_path / "stopped"])[0].status == "interrupted"
    write_experiment(tmp_path / "odd", state="finished", states={0: "waiting"}, scores={0: []})
    assert gather([tmp_path / "odd"])[0].status == "missing"
    (everyone,) = by_dataset(group(gather([tmp_path / "running"]))).values()
    assert [run.status for run in everyone[0].others] == ["training", "diverged", "waiting"]
    np.testing.assert_array_equal(everyone[0].final(SCORE), [1.0])


def test_folders_are_found_below_and_counted_once(tmp_path: Path) -> None:
    write_experiment(tmp_path / "x" / "one", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "x" / "deep" / "two", scores={1: [2.0]}, steps=10)
    runs = gather([tmp_path / "x", tmp_path / "x" / "one", tmp_path / "x" / "deep" / ".." / "one"])
    assert sorted(run.seed for run in runs) == [0, 1]
    assert len(group(runs)) == 1, "two experiments with other seeds of the same thing belong together"


@pytest.mark.parametrize(("make", "says"), [
    (lambda path: path, "does not exist"),
    (lambda path: path.touch() or path, "is not a folder"),
    (lambda path: path.mkdir() or path, "holds no results"),
])  # fmt: skip
def test_what_is_no_result_is_refused(tmp_path: Path, make: Callable[..., Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        gather([make(tmp_path / "it")])


def test_a_damaged_table_is_refused_by_name(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "a", scores={0: [1.0]})
    with (path / "metrics.csv").open("a") as file:
        file.write("run,not a step,name,1.0\n")
    with pytest.raises(InputError, match=r"metrics.csv is damaged \(line \d+ is 'run,not a step,name,1.0', expected"):
        gather([path])
    (path / "status.json").write_text("{")
    with pytest.raises(InputError, match=r"status.json is not valid JSON"):
        gather([path])


def test_a_line_cut_by_a_kill_is_no_damage(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "a", scores={0: [1.0, 2.0]})
    with (path / "metrics.csv").open("a") as file:
        file.write("replica-hopper-medium_seed=0,3")
    assert gather([path])[0].score == 2.0


def test_settings_that_differ_make_groups(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [3.0]}, settings=({"beta": 0.1}, {"beta": 0.5}), steps=10)
    write_experiment(tmp_path / "b", scores={0: [5.0]}, dataset="replica:walker2d-medium", environment="walker2d",
                     settings=({"beta": 0.5},), steps=10)  # fmt: skip
    write_experiment(tmp_path / "c", scores={0: [5.0]}, algorithm="td3-bc", steps=10)
    groups = group(gather([tmp_path]))
    assert [(g.method, g.dataset, len(g.runs)) for g in groups] == [
        ("SCORE (beta=0.1)", "replica:hopper-medium", 2),
        ("SCORE (beta=0.5)", "replica:hopper-medium", 2),
        ("SCORE (beta=0.5)", "replica:walker2d-medium", 1),
        ("TD3-BC", "replica:hopper-medium", 1),
    ]
    assert [g.dataset for g in by_method(groups)["SCORE (beta=0.5)"]] == [
        "replica:hopper-medium", "replica:walker2d-medium",
    ]  # fmt: skip


def test_presets_of_data_sets_are_no_settings_that_differ(tmp_path: Path) -> None:
    for name in ("hopper", "walker2d"):
        write_experiment(tmp_path / name, scores={0: [1.0]}, dataset=f"replica:{name}-medium",
                         settings=({"beta": len(name)},))  # fmt: skip
    assert {g.method for g in group(gather([tmp_path]))} == {"SCORE"}


def test_other_lengths_other_rows_and_repetitions_are_never_averaged(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "b", scores={0: [1.0, 2.0]}, steps=20)
    assert {g.method for g in group(gather([tmp_path]))} == {"SCORE (steps=10)", "SCORE (steps=20)"}
    write_experiment(tmp_path / "c", scores={0: [1.0, 2.0]}, steps=20, rows=5000)
    assert len(group(gather([tmp_path / "b", tmp_path / "c"]))) == 2
    write_experiment(tmp_path / "again", scores={0: [9.0], 1: [8.0]}, steps=10)
    groups = group(gather([tmp_path / "a", tmp_path / "again"]))
    assert [len(g.runs) for g in groups] == [1, 2]
    assert all("folder=" in g.method for g in groups), "the same seed twice is a repetition, not a second seed"


def test_an_unknown_algorithm_goes_by_its_name(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, algorithm="of-tomorrow")
    assert group(gather([tmp_path]))[0].method == "of-tomorrow"


def test_without_an_environment_there_is_no_score(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, environment=None, dataset="logs")
    (run,) = gather([tmp_path])
    assert (run.score, run.environment, run.task) == (None, None, None)
    assert run.last(UNCERTAINTY) == 0.1


def test_a_setting_that_a_record_does_not_name_has_its_default(tmp_path: Path) -> None:
    write_experiment(tmp_path / "old", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "new", scores={1: [2.0]}, steps=10, settings=({"alpha": 2.5, "critics": 5},))
    (together,) = group(gather([tmp_path]))
    assert (together.method, len(together.runs)) == ("SCORE", 2)


def test_where_many_settings_differ_defaults_go_without_saying(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, steps=10, settings=({}, {"alpha": 1.0}, {"beta": 0.5}))
    assert {found.method for found in group(gather([tmp_path]))} == {
        "SCORE (beta=0.2, alpha=2.5)", "SCORE (beta=0.2, alpha=1)", "SCORE (beta=0.5, alpha=2.5)"
    }  # fmt: skip
    write_experiment(tmp_path / "b", scores={0: [1.0]}, steps=10, settings=({"critics": 9, "beta": 2.0},))
    assert {found.method for found in group(gather([tmp_path]))} == {
        "SCORE", "SCORE (alpha=1)", "SCORE (beta=0.5)", "SCORE (beta=2, critics=9)"
    }  # fmt: skip


def test_facts_that_are_not_known_tell_nothing_apart(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "b", scores={1: [1.0]}, steps=10, rows=None)
    assert [found.method for found in group(gather([tmp_path]))] == ["SCORE"]


def test_repetitions_are_called_by_what_tells_their_folders_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_experiment(tmp_path / name / "runs", scores={0: [1.0]}, steps=10)
    assert [found.method for found in group(gather([tmp_path]))] == ["SCORE (folder=one)", "SCORE (folder=two)"]
    assert short_names([Path("a/b"), Path("a")]) == {Path("a/b"): "a/b", Path("a"): "a"}
    assert short_names([Path("/x/y")]) == {Path("/x/y"): "/x/y"}


def test_a_killed_run_falls_silent_where_its_measurements_end(tmp_path: Path) -> None:
    """Its status was last written with a checkpoint, before the last measurements, and says that it trains."""
    write_experiment(tmp_path / "a", scores={0: [1.0, 2.0], 1: [1.0, 2.0, 3.0]}, state="running",
                     states={0: "training"})  # fmt: skip
    status = json.loads((tmp_path / "a" / "status.json").read_text())
    status["runs"]["replica-hopper-medium_seed=0"]["step"] = 0
    (tmp_path / "a" / "status.json").write_text(json.dumps(status))
    assert [(run.status, run.step) for run in gather([tmp_path])] == [("training", 20), ("finished", 30)]
    old = time.time() - 2 * found.PATIENCE
    for file in (tmp_path / "a").iterdir():
        os.utime(file, (old, old))
    assert [(run.status, run.step) for run in gather([tmp_path])] == [("silent", 20), ("finished", 30)]


def test_a_slow_run_is_not_taken_for_a_killed_one(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, state="running", states={0: "training"})
    metrics = tmp_path / "a" / "metrics.csv"
    metrics.write_text(metrics.read_text().replace("updates_per_second,100.0", "updates_per_second,0.01"))
    old = time.time() - 2 * found.PATIENCE
    for file in (tmp_path / "a").iterdir():
        os.utime(file, (old, old))
    assert gather([tmp_path])[0].status == "training", "ten of its windows take almost three hours"
