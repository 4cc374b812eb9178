"""A folder from a stranger runs no module that this user has not named."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.data.catalogue import load_dataset
from score_rl.errors import InputError
from tests.run.test_stretches import SMALL

MODULE = """
import pathlib
import gymnasium
pathlib.Path(__file__).with_name("ran").touch()
gymnasium.register("Stranger-v0", "gymnasium.envs.mujoco.hopper_v5:HopperEnv", max_episode_steps=5)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A module on the path, which leaves a trace where it runs; and nothing was ever trained with it."""
    (tmp_path / "stranger.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "ran"


@pytest.fixture
def packed(tmp_path: Path, module: Path) -> Path:
    """The folder of an experiment that names it."""
    score_rl.train("replica:hopper-medium", steps=20, out=tmp_path / "out", quiet=True, **SMALL)
    path = tmp_path / "out" / "experiment.json"
    stored: dict[str, Any] = json.loads(path.read_text())
    stored["request"]["environment"], stored["runs"][0]["environment"] = None, "stranger:Stranger-v0"
    path.write_text(json.dumps(stored))
    return tmp_path / "out"


def test_nothing_is_run_for_a_folder(packed: Path, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"names the environment 'stranger:Stranger-v0', which would run the module 'stranger', .* set SCORE_RL_MOD"
    opened = score_rl.load(packed)
    for use in (
        lambda: opened.evaluate(1),
        lambda: score_rl.resume(packed, steps=40, quiet=True),
        lambda: opened.run.export(packed / "policy.npz"),
        lambda: opened.policy(np.zeros(11), check=True),
        lambda: score_rl.judge(opened, quiet=True),
    ):
        with pytest.raises(InputError, match=said):
            use()
    assert not module.exists()
    monkeypatch.setenv("SCORE_RL_MODULES", "another, stranger")
    assert opened.evaluate(1).returns.shape == (1, 1)
    assert module.exists(), "the user has named it"


@pytest.mark.slow
def test_who_trains_with_a_module_can_go_on(tmp_path: Path, module: Path) -> None:
    data = load_dataset("replica:hopper-medium", transitions=200, progress=False)
    options = {**SMALL, "environment": "stranger:Stranger-v0", "eval_episodes": 1, "transitions": None}
    score_rl.train(str(data.source["path"]), steps=20, out=tmp_path / "out", quiet=True, **options)
    resumed = score_rl.resume(tmp_path / "out", steps=40, quiet=True, tensorboard=False)
    assert resumed.evaluate(1).lengths.max() <= 5
