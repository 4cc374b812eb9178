"""One clear sentence, exit code 2, no half-written folder."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest

import score_rl
from score_rl.store.checkpoints import checkpoints
from tests.end_to_end.conftest import SMALL, Outcome, Score, start_process, wait_for
from tests.forbidden import forbidden
from tests.report.folders import write_experiment


@pytest.fixture
def refused(score: Score, tmp_path: Path) -> Callable[..., Any]:
    def check(*arguments: object, says: str) -> Outcome:
        before = set(tmp_path.rglob("*"))
        done = score(*arguments)
        assert done.code == 2, done.out + done.err
        assert says in done.err, done.err
        assert "Traceback" not in done.err
        assert set(tmp_path.rglob("*")) == before, "something was left behind"
        return done

    return check


def write(path: Path, rows: int = 300, **changes: Any) -> Path:
    rng = np.random.default_rng(0)
    arrays = {
        "observations": rng.normal(size=(rows, 11)),
        "next_observations": rng.normal(size=(rows, 11)),
        "actions": rng.uniform(-1, 1, (rows, 3)),
        "rewards": rng.normal(size=rows),
        "terminals": np.zeros(rows, bool),
        "timeouts": np.arange(rows) % 100 == 99,
    } | changes
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            if values is not None:
                file[key] = values
    return path


def test_unknown_names_come_with_the_nearest(refused: Callable[..., Outcome]) -> None:
    refused("train", "--dataset", "replica:hoper-medium", says="'replica:hopper-medium'")
    refused("train", "--dataset", "d4rl:hopper-medum-v2", says="'d4rl:hopper-medium-v2'")
    refused("train", "--algorithm", "scor", says="'score'")
    refused("trian", says="'train'")
    refused("data", "inof", says="'info'")
    refused("evaluate", "nowhere", says="holds no experiment")


def test_memory_that_holds_not_one_run(refused: Callable[..., Outcome]) -> None:
    for limit in ("0", "-2", "nan", "inf"):
        says = f"--memory-limit is {float(limit)}; it must be a number of GiB, more than 0"
        refused("train", *SMALL, "--memory-limit", limit, says=says)
    for seeds in (("0",), ("0", "1")):
        done = refused("train", *SMALL, "--seeds", *seeds, "--memory-limit", "0.0001", says="one run needs")
        assert re.search(r"needs [0-9.]+ (KiB|MiB) on cpu, limited by --memory-limit, where 94.37 KiB may", done.err)


def test_broken_files(refused: Callable[..., Outcome], tmp_path: Path) -> None:
    nothing = np.full((300, 11), np.nan)
    (tmp_path / "text.hdf5").write_text("not HDF5 at all")
    whole = write(tmp_path / "hopper-whole.hdf5").read_bytes()
    (tmp_path / "hopper-cut.hdf5").write_bytes(whole[: len(whole) // 2])
    write(tmp_path / "hopper-keyless.hdf5", rewards=None)
    write(tmp_path / "hopper-nan.hdf5", observations=nothing)
    write(tmp_path / "hopper-shape.hdf5", rewards=np.zeros(7))
    write(tmp_path / "hopper-bounds.hdf5", actions=np.full((300, 3), 1.5))
    write(tmp_path / "hopper-endless.hdf5", timeouts=np.zeros(300, bool))
    train = ("train", "--out", "out", "--dataset")
    refused(*train, "missing.hdf5", says="missing.hdf5")
    refused(*train, "missing.csv", says="missing.csv does not exist")
    refused(*train, "text.hdf5", says="not an HDF5 file")
    refused(*train, "hopper-cut.hdf5", says="truncated")
    refused(*train, "hopper-keyless.hdf5", says="rewards")
    refused(*train, "hopper-nan.hdf5", says="NaN")
    refused(*train, "hopper-shape.hdf5", says="rewards 7")
    refused(*train, "hopper-bounds.hdf5", says="--action-bounds")
    refused(*train, "hopper-endless.hdf5", says="no terminal and no timeout")


def test_requests_that_make_no_sense(refused: Callable[..., Outcome]) -> None:
    refused("train", "--config.betta", "0.3", says="betta")
    refused("train", "--config.critics", "1", says="critics is 1; it must be 2 or more")
    for option in ("--steps", "--eval-every", "--log-every", "--eval-episodes"):
        for count in ("0", "-5"):
            refused("train", option, count, says=f"score: {option} is {count}; it must be 1 or more.")
    refused("train", "--steps", "7", says="score: --steps is 7; it must be a multiple of 2, the algorithm's cycle")
    refused("train", "--config.beta", "-1", says="beta is -1.0; it must be 0 or more")
    refused("train", "--checkpoint-minutes", "-1", says="--checkpoint-minutes is -1.0; it must be 0 or more")
    refused("train", "--steps", "7", "--eval-every", "7", says="multiples of 2")
    refused("train", "--seeds", "1", "1", says="twice")
    refused("train", "--resume", "x", "--seeds", "5", says="leave out --seeds")
    refused("train", "--physics", "moon", says="moon")


def test_a_folder_that_is_taken(score: Score, refused: Callable[..., Outcome], tmp_path: Path) -> None:
    assert score("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL).code == 0
    refused("train", "--dataset", "replica:hopper-medium", "--out", "out", *SMALL, says="--resume out")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("mine")
    refused("train", "--out", "papers", says="not an empty folder")


def test_other_data_than_at_the_start(score: Score, refused: Callable[..., Outcome], tmp_path: Path) -> None:
    file = write(tmp_path / "hopper-mine.hdf5")
    small = [argument for argument in SMALL if argument not in ("--transitions", "3000")]
    assert score("train", "--dataset", file, "--out", "out", *small).code == 0
    write(file, rewards=np.linspace(0, 1, 300))
    refused("train", "--resume", "out", says="not the data this experiment was started with")


def test_a_folder_that_cannot_be_made(refused: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    says = "cannot write to file/below (Not a directory); give another --out"
    refused("train", *SMALL, "--out", "file/below", says=says)
    refused("theory", "run", "green-lights", "--out", "file/below", says="cannot write to file/below/green-lights (Not")
    for name in ("runtime", "sweep-beta"):
        refused("experiment", "run", name, "--out", "file/below", says=f"cannot write to file/below/{name}/trial (Not")
    refused(
        "experiment", "run", "runtime", "--out", "file", says="cannot write to file/runtime/trial (Not a directory)"
    )


def test_data_that_are_gone_when_training_goes_on(
    score: Score, refused: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = write(tmp_path / "hopper-mine.hdf5")
    small = [argument for argument in SMALL if argument not in ("--transitions", "3000")]
    assert score("train", "--dataset", file.name, "--out", "out", *small).code == 0
    file.unlink()
    refused("train", "--resume", "out", says=f"hopper-mine.hdf5 is neither here nor in {tmp_path}, relative to which")
    stored = json.loads((tmp_path / "out" / "experiment.json").read_text())
    del stored["began_in"]  # as older folders
    (tmp_path / "out" / "experiment.json").write_text(json.dumps(stored))
    refused("train", "--resume", "out", says="nor in the folder in which training began")
    write(file)
    assert score("train", "--resume", "out").code == 0


def test_what_is_no_data_set(tmp_path: Path) -> None:
    wrong: Any
    for wrong, words in (
        (3, "a data set is given as int"),
        ([3.5], "a data set is given as float"),
        (
            pl.DataFrame({"a1": [0.5], "r": [1.0], "o": [2.0]}),
            r"such as \{'observations': \['o'\], 'actions': \['a1'\]",
        ),
        ({"observations": [[1.0]]}, "lacks actions and rewards"),
    ):
        with pytest.raises(score_rl.InputError, match=words):
            score_rl.train(wrong, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_belongs_to_somebody_else_is_said(score: Score, tmp_path: Path) -> None:
    theirs = write_experiment(tmp_path / "theirs" / "out", scores={0: [1.0]}).parent
    data, table, policy = (theirs / name for name in ("logs.hdf5", "logs.csv", "policy.npz"))
    commands: list[tuple[object, ...]] = [
        ("data", "check", data), ("data", "import", table, "--out", "logs.hdf5"), ("train", "--resume", theirs / "out"),
        ("status", theirs / "out"), ("judge", theirs / "out"),
        ("export", theirs / "out", "--out", "policy.npz"), ("act", policy, "logs.csv"),
        ("select", "--resume", theirs / "out"),
    ]  # fmt: skip
    for arguments in commands:
        score(*arguments)  # imports what it needs
    with forbidden(theirs):
        for arguments in commands:
            done = score(*arguments)
            assert done.code == 2, arguments
            assert "theirs" in done.err + done.out, (arguments, done.err)
            assert "ermission denied" in done.err + done.out, (arguments, done.err)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk that is soon full: four megabytes."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this machine does not allow mounting")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_is_too_small_is_refused_before_training(score: Score, small_disk: Path) -> None:
    done = score("train", "--dataset", "replica:hopper-medium", *SMALL, "--config.hidden", "256,256",
                 "--out", small_disk / "out")  # fmt: skip
    assert done.code == 2
    assert "free some space" in done.err
    assert "The first 10 updates" not in done.err


def test_a_disk_that_fills_up_ends_training_with_its_checkpoints_whole(small_disk: Path) -> None:
    request = ("train", "--dataset", "replica:hopper-medium", *SMALL, "--config.hidden", "48,48", "--steps", "40000")
    process = start_process(*request, "--out", small_disk / "out")
    wait_for(lambda: len(checkpoints(small_disk / "out" / "fleet-0")) == 2, process)
    with pytest.raises(OSError, match="No space left"):  # a neighbour takes all the rest
        (small_disk / "ballast").write_bytes(bytes(8 * 2**20))
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2, err
    assert "free some space" in err
    assert "Traceback" not in err
    assert score_rl.load(small_disk / "out").run.step > 0
