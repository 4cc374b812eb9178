"""Folders that version 0.1.0 wrote load, resume and report as they did there."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import score_rl
from score_rl.engine import compilation
from score_rl.report.grouping import gather
from score_rl.report.page import write_report
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from score_rl.store.records import FORMAT, RunStatus

WRITTEN = Path(__file__).parent / "written_by_0_1_0"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, in another place than where 0.1.0 trained; training looks for `noise.hdf5` in the present folder."""
    shutil.copytree(WRITTEN, tmp_path / "written")
    monkeypatch.chdir(tmp_path / "written")
    return tmp_path / "written"


@pytest.mark.filterwarnings("ignore:.*do not trust the policy")
@pytest.mark.filterwarnings("ignore:.*do not trust its policy")
def test_policies_act_as_they_did(written: Path) -> None:
    stored = np.load("actions.npz")
    runs = [run for name in ("score-stopped", "odd") for run in score_rl.load(name)]
    assert sorted(run.id for run in runs) == sorted(set(stored) - {"observations"})
    for run in runs:
        np.testing.assert_allclose(run.policy(stored["observations"]), stored[run.id], rtol=1e-5, atol=1e-6)


def test_what_was_said_of_runs_is_kept(written: Path) -> None:
    diverged, doubtful = (run.status for run in score_rl.load("odd"))
    assert diverged == RunStatus("diverged", 0, diverged_at=10)
    assert (doubtful.state, doubtful.step) == ("finished", 40)
    assert doubtful.warning is not None
    assert doubtful.warning.startswith("Q is -4.5e+03, but rewards add up to 0 at least")


@pytest.mark.parametrize("name", ["score", "mopo"])
def test_a_stopped_experiment_ends_as_it_did(written: Any, name: str) -> None:
    """SCORE was stopped inside a window, MOPO inside an epoch of its stage."""
    before = score_rl.load(f"{name}-finished")
    after = score_rl.resume(f"{name}-stopped", quiet=True, tensorboard=False)
    assert [run.status for run in after] == [RunStatus("finished", 40)] * len(before)
    (step, ended, _), (expected_step, expected, _) = (
        load_checkpoint(checkpoints(experiment.folder.fleet(0))[0]) for experiment in (after, before)
    )
    assert (step, {*ended} - {"history"}) == (expected_step, {*expected})
    measured, expected_measured = (
        {row[:3]: row.value for row in experiment.metrics if not row.name.startswith("speed/")}
        for experiment in (after, before)
    )
    assert measured.keys() == expected_measured.keys()
    if json.loads(Path("machine.json").read_text()) == {
        "jax": jax.__version__, "processor": compilation.processor_fingerprint()
    }:  # fmt: skip
        for array in expected:
            np.testing.assert_array_equal(ended[array], expected[array], err_msg=array)
    for array in expected:  # other processors and compilers round otherwise
        np.testing.assert_allclose(ended[array], expected[array], rtol=1e-4, atol=1e-5, err_msg=array)
    assert measured == pytest.approx(expected_measured, rel=1e-4, abs=1e-5)


def test_a_finished_experiment_is_made_longer_in_the_present_format(written: Path) -> None:
    stored = json.loads(Path("score-finished", "experiment.json").read_text())
    longer = score_rl.resume("score-finished", steps=60, quiet=True, tensorboard=False)
    assert {run.step for run in longer} == {60}
    rewritten = json.loads(Path("score-finished", "experiment.json").read_text())
    assert (stored["format"], rewritten["format"]) == (1, FORMAT)
    assert rewritten["created"] == stored["created"]
    assert rewritten["provenance"]["versions"] == stored["provenance"]["versions"]
    assert [run["config"] for run in rewritten["runs"]] == [run["config"] for run in stored["runs"]]


def test_they_are_reported(written: Path, tmp_path: Path) -> None:
    page = write_report([written / "score-stopped", written / "odd"], tmp_path / "report").read_text()
    for said in ("interrupted", "diverged", "rewards add up to 0 at least", "critic_learning_rate=1000"):
        assert said in page
    states = {run.folder.name: (run.status, run.step) for run in gather([written])}
    assert states["mopo-stopped"] == ("interrupted", 0)
    assert states["mopo-finished"] == states["score-finished"] == ("finished", 40)
