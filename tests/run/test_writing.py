"""Checkpoints are written while training goes on: a slow disk costs checkpoints, not time; a full one is heard of."""

import time
from pathlib import Path

import numpy as np
import pytest

import score_rl
from score_rl.errors import InputError
from score_rl.run import checkpoint_writer
from score_rl.run.experiment import Experiment
from score_rl.store.checkpoints import checkpoints, load_checkpoint

WINDOWS = 30


def train(out: Path) -> Experiment:
    return score_rl.train(
        "replica:hopper-medium", steps=10 * WINDOWS, log_every=10, eval_every=10 * WINDOWS, eval_episodes=1,
        transitions=2_000, config={"hidden": (16, 16), "batch_size": 16}, checkpoint_minutes=0, out=out, quiet=True,
    )  # fmt: skip


def test_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path / "quick")
    written: list[int] = []
    save = checkpoint_writer.save_checkpoint

    def slow(folder: Path, step: int, arrays: dict[str, np.ndarray], about: dict[str, list[str] | str]) -> Path:
        time.sleep(0.1)
        written.append(step)
        return save(folder, step, arrays, about)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", slow)
    train(tmp_path / "slow")
    assert 1 <= len(written) < WINDOWS
    assert written == sorted(written)
    assert written[-1] == 10 * WINDOWS
    quick, late = (load_checkpoint(checkpoints(tmp_path / name / "fleet-0")[0]) for name in ("quick", "slow"))
    assert quick[0] == late[0] == 10 * WINDOWS
    trained = quick[1].keys() - {checkpoint_writer.HISTORY}  # the copy of the measurements has speeds by the clock
    assert all((quick[1][name] == late[1][name]).all() for name in trained)


def test_a_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    save = checkpoint_writer.save_checkpoint

    def full(folder: Path, step: int, arrays: dict[str, np.ndarray], about: dict[str, list[str] | str]) -> Path:
        if written:
            raise InputError("no space left")
        written.append(step)
        return save(folder, step, arrays, about)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", full)
    with pytest.raises(InputError, match="no space left"):
        train(tmp_path)
    assert load_checkpoint(checkpoints(tmp_path / "fleet-0")[0])[0] == written[0]
