"""Behaviour policies: stored and read back, and the same as D4RL's."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.data.collection.policies import read_policy
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.errors import InputError
from tests.data.recordings import SAMPLES, file_with_policy, genuine, small_policy


def test_a_policy_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    policy = small_policy()
    with open_hdf5(file_with_policy(tmp_path / "hopper.hdf5", policy)) as file:
        found = read_policy(file, "test")
    assert found.log_std_clip == (-20.0, 2.0)
    observations = np.random.default_rng(1).normal(size=(5, 11)).astype(np.float32)
    noise = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    for ours, theirs in zip(found.act(observations, noise), policy.act(observations, noise), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_damaged_policy(tmp_path: Path) -> None:
    path = file_with_policy(tmp_path / "hopper.hdf5", small_policy())
    for bias, says in (
        (None, "test: metadata/policy lacks fc1/bias"),
        (np.zeros(9), r"metadata/policy/fc1 has weight \(8, 8\) and bias \(9,\)"),
        (np.zeros((8, 1)), r"metadata/policy/fc1/bias has shape \(8, 1\)"),
        (np.full(8, np.nan), "or values that are not finite"),
    ):
        with h5py.File(path, "a") as file:
            del file["metadata/policy/fc1/bias"]
            if bias is not None:
                file["metadata/policy/fc1/bias"] = bias
        with open_hdf5(path) as opened, pytest.raises(InputError, match=says):
            read_policy(opened, "test")
        if bias is None:
            with h5py.File(path, "a") as file:
                file["metadata/policy/fc1/bias"] = np.zeros(1)  # to be replaced


@genuine
@pytest.mark.parametrize("task", ["hopper", "halfcheetah", "walker2d"])
def test_log_probabilities_are_those_that_were_recorded(task: str) -> None:
    with open_hdf5(Path(SAMPLES or "") / f"{task}_medium-v2.hdf5") as file:
        policy = read_policy(file, task)
        observations, actions = file.array("observations"), file.array("actions")
        recorded = file.array("infos/action_log_probs")
    # The noise that makes the recorded action: a policy without noise tells the mean, one with unit noise the rest.
    still = np.arctanh(policy.act(observations, np.zeros_like(actions))[0].astype(np.float64))
    moved = np.arctanh(policy.act(observations, np.ones_like(actions))[0].astype(np.float64))
    noise = (np.arctanh(actions.astype(np.float64)) - still) / (moved - still)
    clear = (np.abs(actions) < 0.99).all(axis=1) & np.isfinite(noise).all(axis=1)
    clear &= (np.abs(still) < 3).all(axis=1) & (np.abs(moved) < 3).all(axis=1)  # else float32 has no digits left
    again, found = policy.act(observations, noise.astype(np.float32))
    assert clear.mean() > 0.2
    np.testing.assert_allclose(again[clear], actions[clear], atol=1e-4)
    np.testing.assert_allclose(found[clear], recorded[clear], atol=0.02)
