"""Runs that do not fit into memory are trained in parts, with the same results."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import score_rl
from score_rl import engine
from score_rl.algorithms.registry import get_algorithm
from score_rl.engine.memory import GIBIBYTE, SHARE, measured_need
from score_rl.errors import InputError, Stopped
from score_rl.run import launch
from score_rl.run.fleets import memory_errors

OPTIONS: dict[str, Any] = {
    "seeds": range(5), "transitions": 2000, "steps": 60, "eval_every": 30, "log_every": 10, "eval_episodes": 1,
    "config": {"hidden": (16, 16), "batch_size": 16}, "quiet": True, "tensorboard": False,
}  # fmt: skip


def limit_for(runs: Any) -> Any:
    """GiB into which so many runs of OPTIONS fit."""
    data = score_rl.load_dataset("replica:hopper-medium", transitions=2000)
    made = engine.make_runs(get_algorithm("score"), [data], seeds=OPTIONS["seeds"], settings=[OPTIONS["config"]])
    return (measured_need(made[0], 10).of(made[:runs]) / SHARE + 1) / GIBIBYTE


def states(experiment: Any) -> Any:
    return {run.id: [np.asarray(leaf) for leaf in jax.tree.leaves(run.state.critics)] for run in experiment}


@pytest.mark.slow
def test_results_do_not_depend_on_the_split_and_resume_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = score_rl.train("replica:hopper-medium", out=tmp_path / "whole", **OPTIONS)
    assert {run.record.fleet for run in whole} == {0}
    limit = limit_for(2)

    class Impatient(launch.StopRequest):
        """Stops in the second fleet."""

        asked = property(lambda self: len(list((tmp_path / "parts").glob("fleet-1/*"))) > 0, lambda self, value: None)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "StopRequest", Impatient)
        with pytest.raises(Stopped):
            score_rl.train(
                "replica:hopper-medium", out=tmp_path / "parts", memory_limit=limit, checkpoint_minutes=0, **OPTIONS
            )
    resumed = score_rl.resume(tmp_path / "parts", quiet=True, tensorboard=False)
    assert [(run.record.fleet, run.record.position) for run in resumed] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert {run.status.state for run in resumed} == {"finished"}
    expected, found = states(whole), states(resumed)
    for name, leaves in expected.items():
        for mine, other in zip(leaves, found[name], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    for run in whole:
        np.testing.assert_allclose(
            run.metrics.curve("train/q")[1], resumed[run.id].metrics.curve("train/q")[1], rtol=1e-3
        )


def test_a_fleet_leaves_no_memory_behind(tmp_path: Path) -> None:
    """Parts are trained one after the other: what the first held must be gone before the second."""
    before = sum(array.nbytes for array in jax.live_arrays())
    score_rl.train("replica:hopper-medium", out=tmp_path / "run", **OPTIONS)
    after = sum(array.nbytes for array in jax.live_arrays())
    assert after - before < 10_000


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_must_be_positive(tmp_path: Path, limit: Any) -> None:
    with pytest.raises(InputError, match="`memory_limit`"):
        score_rl.train(out=tmp_path / "run", memory_limit=limit)


def test_networks_that_nothing_could_hold_are_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    """One run alone was found out by the system: a traceback in a folder that was made."""
    huge = OPTIONS | {"seeds": [0], "config": {"hidden": (3_000_000, 3_000_000), "batch_size": 16}}
    with pytest.raises(
        InputError, match=r"the networks of one run take .* in all; give smaller ones \(`config.hidden`"
    ):
        score_rl.train("replica:hopper-medium", out=tmp_path / "out", **huge)
    assert not (tmp_path / "out").exists()


def test_a_device_without_memory_left_is_one_sentence(tmp_path: Path) -> None:
    said = r"no memory was left while training in .*: free some memory and go on"
    with pytest.raises(InputError, match=said), memory_errors(tmp_path):
        jax.numpy.zeros(2**45).block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError), memory_errors(tmp_path):
        raise jax.errors.JaxRuntimeError("INTERNAL: a defect")
