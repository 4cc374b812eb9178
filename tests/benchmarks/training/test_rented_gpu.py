"""The script for a rented GPU, all of it tiny: it trains, is called again, and its parcel goes on elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.training.queue.account import ACCOUNT, read_account
from benchmarks.training.queue.parcels import Unpack, unpack
from benchmarks.training.queue.wanted import stored_runs
from score_rl.report.stored_results import read_stored

pytest.importorskip("ogbench", reason="score-rl[ogbench] is not installed")
SCRIPT = Path(__file__).parents[3] / "benchmarks" / "training" / "rented_gpu.sh"
SAMPLES = "SCORE_RL_D4RL_SAMPLES"


@pytest.mark.slow
@pytest.mark.skipif(SAMPLES not in os.environ, reason=f"{SAMPLES} names no folder with D4RL's files")
def test_what_one_machine_reached_the_next_one_knows(tmp_path: Path) -> None:
    first = called(tmp_path, "first", minutes=8)
    assert "3 jobs finished, 0 failed." in first
    home = Unpack(tmp_path / "first-out", tmp_path / "work", tmp_path / "six-sets", tmp_path / "results")
    unpack(home)
    assert len(read_account(home.results / ACCOUNT)) == 3
    assert {run.algorithm for run in stored_runs(home.results)} == {"bc", "td3-bc"}
    for method in ("bc", "iql"):
        runs = read_stored(home.ogbench / f"ogbench-cube-single-{method}-trial")
        assert [run.finished for run in runs] == [True, True]
    second = called(tmp_path, "second", minutes=2, PARCEL=str(tmp_path / "first-out"))
    assert "Nothing is missing." in second
    assert "nothing that began" in second


def called(folder: Path, name: str, minutes: int, **about: str) -> str:
    """What the script prints on a machine with nothing on it."""
    environment = os.environ | {
        "TRIAL": "1", "WORK": str(folder / f"{name}-work"), "SCORE_RL_CACHE": str(folder / f"{name}-cache"),
        "PYTHON": sys.executable, **about,
    }  # fmt: skip
    command = [str(SCRIPT), os.environ[SAMPLES], str(folder / f"{name}-out"), str(minutes)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
