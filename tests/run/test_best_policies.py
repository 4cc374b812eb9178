"""The policy with the best evaluation is kept where that was asked for, and the last one stays the result."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import score_rl
from score_rl.store.checkpoints import best_path, load_checkpoint, save_checkpoint
from tests.end_to_end.conftest import Score, score

__all__ = ["score"]  # a fixture

NAME = "score_rl_tests/Best-v0"
ASKED: dict[str, Any] = {
    "dataset": "pendulum.hdf5", "algorithm": "bc", "seeds": [0, 1], "steps": 40, "eval_every": 10, "log_every": 10,
    "eval_episodes": 2, "config": {"hidden": (8, 8), "batch_size": 8, "learning_rate": 0.1}, "checkpoint_minutes": 0,
    "environment": NAME, "action_bounds": (-2, 2), "quiet": True, "tensorboard": False,
}  # fmt: skip


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: Score) -> Any:
    gymnasium.register(NAME, entry_point="gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=20)
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(200, 3))
    data = score_rl.Dataset.from_arrays(
        {
            "observations": observations, "actions": np.clip(observations[:, :1], -2, 2),
            "rewards": rng.normal(size=200), "episodes": np.arange(200) // 20, "times": np.arange(200),
        },
        action_bounds=(-2, 2), name="pendulum",
    )  # fmt: skip
    asked = {key: value for key, value in ASKED.items() if key != "action_bounds"} | {"dataset": data}
    yield score_rl.train(out="runs", keep_best=True, **asked)
    gymnasium.registry.pop(NAME)


def returns(run: Any) -> dict[int, float]:
    steps, values = run.metrics.curve("evaluation/return")
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def test_the_best_policy_is_kept_beside_the_last(trained: Any, score: Score) -> None:
    best = {}
    for run in trained:
        measured = returns(run)
        assert len(measured) == 4
        best[run.id] = max(measured, key=lambda step: measured[step])
        kept = load_checkpoint(best_path(trained.path / "fleet-0", run.record.position))
        assert (kept.step, kept.about["value"]) == (best[run.id], measured[best[run.id]])
        assert run.step == 40, "the last policy stays the result"
    assert any(step < 40 for step in best.values()), "else this shows nothing"
    run = next(run for run in trained if best[run.id] < 40)
    last, chosen = run.evaluate(3), run.evaluate(3, step="best")
    assert not np.array_equal(last.returns, chosen.returns)
    np.testing.assert_array_equal(run.evaluate(3, step=40).returns, last.returns)
    shown = score("evaluate", "runs", "--step", "best", "--episodes", "2")
    assert shown.code == 0, shown.err
    assert "The result is the last policy." in shown.out
    for step in best.values():
        assert str(step) in shown.out
    assert "The result is" not in score("evaluate", "runs", "--episodes", "2").out
    refused = score("evaluate", "runs", "--step", "10")
    assert refused.code == 2
    assert "keeps the policies of 40, 30; give one of these, or best" in refused.err
    assert "give a number of updates, or best" in score("evaluate", "runs", "--step", "last").err


def test_going_on_keeps_the_best_of_all(trained: Any) -> None:
    before = {run.id: max(returns(run).values()) for run in trained}
    longer = score_rl.resume("runs", steps=80, quiet=True, tensorboard=False)
    for run in longer:
        kept = load_checkpoint(best_path(longer.path / "fleet-0", run.record.position))
        assert kept.about["value"] == max(returns(run).values()) >= before[run.id]


def test_a_checkpoint_that_is_written_meanwhile_removes_nothing_of_it(tmp_path: Path) -> None:
    """It removes the parts of files that a kill has left beside it."""
    part = best_path(tmp_path, 0).parent / ".0.safetensors.part"
    part.parent.mkdir()
    part.touch()
    save_checkpoint(tmp_path, 10, {"state.x": np.zeros(2, np.float32)}, {})
    assert part.exists()


def test_a_damaged_best_policy_is_refused(trained: Any) -> None:
    path = best_path(trained.path / "fleet-0", 0)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(score_rl.InputError, match="is damaged"):
        trained[0].evaluate(1, step="best")
    with pytest.raises(score_rl.InputError, match="is damaged"):
        score_rl.resume("runs", steps=80, quiet=True)


def test_without_a_simulator_none_is_the_best(trained: Any) -> None:
    asked = ASKED | {"dataset": str(trained.path / "data" / "pendulum.hdf5"), "environment": "none"}
    with pytest.raises(score_rl.InputError, match="`keep_best` needs evaluations in a simulator"):
        score_rl.train(out="others", keep_best=True, **asked)
    with pytest.raises(score_rl.InputError, match="no best policy of"):
        score_rl.train(out="plain", **{**ASKED, "dataset": asked["dataset"]})[0].evaluate(1, step="best")
