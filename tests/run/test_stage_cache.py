"""Results of stages in the cache: what is found is what was kept, of this very run, or nothing."""

from pathlib import Path

import jax
import numpy as np
import pytest

from score_rl.algorithms.registry import get_algorithm
from score_rl.engine.runs import Run
from score_rl.run.messages import Announcer
from score_rl.run.stage_cache import cache_path, find_result, keep_result
from tests.run.conftest import recording

MOPO = get_algorithm("mopo")
STAGE = MOPO.stages[0]
RESULT = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.ones(1, np.int32)}
SHAPES = {name: jax.ShapeDtypeStruct((2, *array.shape), array.dtype) for name, array in RESULT.items()}  # of two runs


def run_of(seed: int, **settings: float) -> Run:
    dataset = recording()
    return Run(f"{dataset.name}-{seed}", MOPO, dataset, seed, MOPO.Config(**settings))


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    keep_result(run_of(0), STAGE, RESULT, Announcer(quiet=True))
    return cache_path(run_of(0), STAGE)


def test_what_was_kept_is_found(kept: Path) -> None:
    found = find_result(run_of(0), STAGE, SHAPES, Announcer(quiet=True))
    assert found is not None
    for name, array in RESULT.items():
        np.testing.assert_array_equal(found[name], array)
    assert find_result(run_of(1), STAGE, SHAPES, Announcer(quiet=True)) is None


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "another run's", "another shape"])
def test_what_is_damaged_is_said_and_made_again(kept: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(kept.read_bytes())
    if damage == "flipped":
        content[-3] ^= 1
    elif damage == "another run's":
        other = run_of(0, dynamics_learning_rate=2e-3)
        keep_result(other, STAGE, RESULT, Announcer(quiet=True))
        content = bytearray(cache_path(other, STAGE).read_bytes())
    elif damage == "another shape":
        keep_result(run_of(0), STAGE, {**RESULT, "w": np.ones((3, 2), np.float32)}, Announcer(quiet=True))
        content = bytearray(kept.read_bytes())
    kept.write_bytes(content[: {"cut": len(content) // 2, "empty": 0}.get(damage, len(content))])
    assert find_result(run_of(0), STAGE, SHAPES, Announcer(quiet=False)) is None
    assert "damaged" in capsys.readouterr().err
