"""A part of an experiment that goes on in its own folder learns what the whole would have learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_rl
from score_rl.data.dataset import Dataset
from score_rl.run.branching import branch
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from score_rl.store.request import AlgorithmRequest

TINY: dict[str, Any] = {
    "config": {"hidden": (8, 8), "batch_size": 8},
    "environment": "none",
    "log_every": 10,
    "eval_every": 10,
    "tensorboard": False,
    "quiet": True,
}


@pytest.fixture
def data() -> Dataset:
    rng = np.random.default_rng(0)
    ends = np.arange(200) % 20 == 19
    return Dataset.from_arrays(
        {
            "observations": rng.normal(size=(200, 3)),
            "actions": rng.uniform(-1, 1, size=(200, 2)),
            "rewards": rng.normal(size=200),
            "terminals": np.zeros(200),
            "timeouts": ends,
        },
        action_bounds=(-1, 1),
    )


def requests(*betas: float) -> list[AlgorithmRequest]:
    settings = {"hidden": ((8, 8),), "batch_size": (8,)}
    variants = tuple({"beta": beta} for beta in betas)
    return [AlgorithmRequest("score", settings, variants), AlgorithmRequest("bc", settings)]


def test_a_branch_goes_on_as_the_whole_would_have(tmp_path: Path, data: Dataset) -> None:
    options = {**TINY, "config": {}, "seeds": [0, 1]}
    short = score_rl.train(data, algorithm=requests(0.0, 0.2, 0.5), steps=20, out=tmp_path / "short", **options)
    alone = score_rl.train(data, algorithm=requests(0.5)[:1], steps=40, out=tmp_path / "alone", **options)
    part = branch(short, requests(0.5)[:1], tmp_path / "part", quiet=True)
    assert [run.config.beta for run in part] == [0.5, 0.5]
    assert [run.seed for run in part] == [0, 1]
    for run in part:
        whole = next(
            one for one in short if one.algorithm.name == "score" and (one.config.beta, one.seed) == (0.5, run.seed)
        )
        assert run.step == 20
        np.testing.assert_array_equal(run.policy(data.observations), whole.policy(data.observations))
        assert [row[1:] for row in run.metrics] == [row[1:] for row in whole.metrics]
    score_rl.resume(tmp_path / "part", steps=40, tensorboard=False, quiet=True)
    newest = [load_checkpoint(checkpoints(tmp_path / name / "fleet-0")[0]) for name in ("part", "alone")]
    assert newest[0].step == newest[1].step == 40
    for name, array in newest[1].arrays.items():
        if name.startswith("state."):  # another fleet of the same runs: equal up to the order of sums
            np.testing.assert_allclose(newest[0].arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
    assert [run.id for run in score_rl.load(tmp_path / "part")] == [run.id for run in alone]


def test_what_was_not_trained_is_refused(tmp_path: Path, data: Dataset) -> None:
    short = score_rl.train(
        data, algorithm=requests(0.0)[1:], steps=10, out=tmp_path / "short", **{**TINY, "config": {}}
    )
    with pytest.raises(score_rl.InputError, match="has no run like"):
        branch(short, requests(0.5)[:1], tmp_path / "part", quiet=True)
    assert not (tmp_path / "part").exists()
