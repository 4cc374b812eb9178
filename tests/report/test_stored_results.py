"""The one format of stored results: what is written is read again, and what is no result is refused."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.report.grouping import distinct, gather, group
from score_rl.report.results import SCORE, UNCERTAINTY
from score_rl.report.stored_results import read_stored, store_results
from tests.report.folders import write_experiment

STORED = Path(__file__).parents[2] / "benchmarks" / "results"


def test_stored_results_say_the_same_as_the_experiments(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0, 2.0, 3.25]}, settings=({"beta": 0.1}, {"beta": 0.5}))
    write_experiment(tmp_path / "b", scores={7: [4.0]}, algorithm="bc", state="failed", states={7: "training"},
                     error="why")  # fmt: skip
    before = gather([tmp_path])
    store_results(before, tmp_path / "stored", (SCORE, UNCERTAINTY), every=20)
    after = gather([tmp_path / "stored"])
    assert len(after) == len(before) == 3
    for one, other in zip(before, after, strict=True):
        for name in ("name", "algorithm", "dataset", "task", "seed", "config", "status", "step", "steps", "error",
                     "settings", "score", "provenance", "created", "fresh_scores"):  # fmt: skip
            assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_array_equal(after[0].curves[SCORE].steps, [20, 30])
    assert set(after[0].curves) == {SCORE, UNCERTAINTY}
    assert [g.method for g in group(after)] == [g.method for g in group(before)]


def test_scores_in_fresh_episodes_belong_to_their_runs(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [2.0]}, steps=10)
    first, second = gather([tmp_path / "a"])
    store_results([first, dataclasses.replace(second, fresh_scores={100: 2.5, 10: 3.5})], tmp_path / "stored")
    assert [run.fresh_scores for run in read_stored(tmp_path / "stored")] == [{}, {100: 2.5, 10: 3.5}]


def test_a_folder_of_several_experiments_keeps_them_apart_when_it_is_stored_again(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "b", scores={1: [2.0, 3.0]}, steps=20)
    store_results(gather([tmp_path / "a", tmp_path / "b"]), tmp_path / "once")
    store_results(read_stored(tmp_path / "once"), tmp_path / "again")
    assert [run.request["steps"] for run in read_stored(tmp_path / "again")] == [10, 20]
    for name in ("summary.json", "curves.csv"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_runs_that_choose_settings_are_averaged_with_no_result(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [3.0]}, steps=10)
    reported, other = gather([tmp_path / "a"])
    choosing = dataclasses.replace(other, request={**other.request, "chooses_settings": True})
    store_results([reported, choosing], tmp_path / "stored")
    groups = group(gather([tmp_path / "stored"]))
    assert [(found.method, found.final(SCORE).tolist()) for found in groups] == [
        ("SCORE", [1.0]), ("SCORE (used=to choose)", [3.0])
    ]  # fmt: skip


@pytest.mark.parametrize("folder", sorted(STORED.rglob("curves.csv")), ids=lambda path: str(path.parent.name))
def test_the_repositorys_own_results_are_readable_and_say_where_they_come_from(folder: Path) -> None:
    if not (folder.parent / "summary.json").exists():
        assert folder.parents[1].name == "independent", "d3rlpy's, which are no runs of this package"
        return
    runs = read_stored(folder.parent)
    assert runs
    for run in runs:
        assert run.finished
        assert run.score is not None
        assert run.task or (run.environment or "").startswith("ogbench")
        assert {"code", "versions", "device"} <= set(run.provenance)
        assert run.data.get("checksum") or run.chooses_settings, "grids of 0.1.0 kept no checksums"
        assert run.config
        assert run.step == run.steps == run.request["steps"]


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ("{", "is not a stored result"),
        ("{}", "was stored in format None"),
        (json.dumps({"request": {}, "results": {}}), "was stored in format None"),
        (json.dumps({"format": 3, "runs": []}), "was stored in format 3, this version reads format 2"),
        (json.dumps({"format": 2, "experiments": [], "runs": [{"experiment": 0}]}), "is not a stored result"),
    ],
)
def test_what_is_no_stored_result_is_refused(tmp_path: Path, summary: Any, message: str) -> None:
    (tmp_path / "summary.json").write_text(summary)
    (tmp_path / "curves.csv").write_text("run,step,name,value\n")
    with pytest.raises(InputError, match=message):
        gather([tmp_path])


def test_one_run_that_several_folders_hold_is_one_run(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [2.0]}, steps=10)
    runs = gather([tmp_path / "a"])
    store_results(runs, tmp_path / "stored" / "x" / "runs")
    store_results(runs[:1], tmp_path / "stored" / "y" / "runs", (SCORE, UNCERTAINTY))
    everything = gather([tmp_path])
    assert len(everything) == 5
    assert [(run.seed, run.folder.name) for run in distinct(everything)] == [(0, "a"), (1, "a")]
    curves = tmp_path / "stored" / "y" / "runs" / "curves.csv"
    curves.write_text(curves.read_text().replace("evaluation/score,1", "evaluation/score,3"))
    assert len(distinct(gather([tmp_path]))) == 3, "what says something else is not the same run"
