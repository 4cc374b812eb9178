"""Recording afresh with the policy in a file."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.collection.policies import D4RL_LOG_STD, SquashedGaussian, read_policy, write_policy
from score_rl.data.recollect import recollect
from score_rl.data.sources.d4rl import d4rl_facts
from score_rl.errors import InputError

from .recordings import hopper_recording, recording, write

SAMPLES = os.environ.get("SCORE_RL_D4RL_SAMPLES")
genuine = pytest.mark.skipif(
    not SAMPLES, reason="SCORE_RL_D4RL_SAMPLES does not name a folder with genuine D4RL v2 excerpts"
)


def small_policy(observations: int = 11, actions: int = 3, hidden: int = 8) -> SquashedGaussian:
    generator = np.random.default_rng(0)
    sizes = {
        "fc0": (hidden, observations),
        "fc1": (hidden, hidden),
        "last_fc": (actions, hidden),
        "last_fc_log_std": (actions, hidden),
    }
    weights = {
        layer: (generator.normal(size=size).astype(np.float32) / 4, np.zeros(size[0], np.float32))
        for layer, size in sizes.items()
    }
    return SquashedGaussian(weights, D4RL_LOG_STD)


def file_with_policy(path: Path, policy: SquashedGaussian) -> Path:
    """A file as D4RL publishes them: with a policy, and without the range of its log standard deviation."""
    write(path, hopper_recording())
    with h5py.File(path, "a") as file:
        write_policy(file.create_group("metadata/policy"), policy)
        del file["metadata/policy/log_std_clip"]
    return path


def test_a_policy_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    policy = small_policy()
    with h5py.File(file_with_policy(tmp_path / "hopper.hdf5", policy)) as file:
        found = read_policy(file, "test")
    assert found.log_std_clip == (-20.0, 2.0)
    observations = np.random.default_rng(1).normal(size=(5, 11)).astype(np.float32)
    noise = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    for ours, theirs in zip(found.act(observations, noise), policy.act(observations, noise), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_new_recording_is_a_file_like_the_one_it_came_from(tmp_path: Path) -> None:
    source = file_with_policy(tmp_path / "hopper_mine.hdf5", small_policy())
    out = tmp_path / "new" / "again.hdf5"
    dataset = recollect(source, out, transitions=400, seed=2, progress=False)
    assert (dataset.name, dataset.environment, len(dataset)) == ("again", "hopper", 400)
    recipe = dataset.source["recipe"]
    assert (recipe["seed"], recipe["physics"], recipe["transitions"]) == (2, "d4rl", 400)
    assert dataset.checksum == load_dataset(str(out)).checksum
    assert recollect(source, tmp_path / "same", transitions=400, seed=2, progress=False).checksum == dataset.checksum
    from_new = recollect(out, tmp_path / "third", transitions=400, seed=2, progress=False)
    assert from_new.checksum == dataset.checksum
    stock = recollect(source, tmp_path / "stock", transitions=400, seed=2, physics="stock", progress=False)
    assert stock.checksum != dataset.checksum


def test_what_cannot_be_recollected(tmp_path: Path) -> None:
    source = file_with_policy(tmp_path / "hopper_mine.hdf5", small_policy())
    with pytest.raises(InputError, match="exists already"):
        recollect(source, source, transitions=10)
    with pytest.raises(InputError, match="unknown physics"):
        recollect(source, tmp_path / "out", transitions=10, physics="old")
    with pytest.raises(InputError, match="0 transitions"):
        recollect(source, tmp_path / "out", transitions=0)
    with pytest.raises(InputError, match="but walker2d has 17 and 6"):
        recollect(source, tmp_path / "out", transitions=10, environment="walker2d")
    with pytest.raises(InputError, match="unknown locomotion task 'hoper'"):
        recollect(source, tmp_path / "out", transitions=10, environment="hoper")
    nameless = source.rename(tmp_path / "mine.hdf5")
    with pytest.raises(InputError, match="does not say which task"):
        recollect(nameless, tmp_path / "out", transitions=10)
    with pytest.raises(InputError, match="holds no behaviour policy"):
        recollect(write(tmp_path / "hopper_bare.hdf5", recording()), tmp_path / "out", transitions=10)
    assert not (tmp_path / "out").exists()


def test_a_damaged_policy(tmp_path: Path) -> None:
    source = file_with_policy(tmp_path / "hopper_mine.hdf5", small_policy())
    with h5py.File(source, "a") as file:
        del file["metadata/policy/fc1/bias"]
    with pytest.raises(InputError, match="metadata/policy lacks fc1/bias"):
        recollect(source, tmp_path / "out", transitions=10)
    with h5py.File(source, "a") as file:
        file["metadata/policy/fc1/bias"] = np.zeros(9)
    with pytest.raises(InputError, match=r"metadata/policy/fc1 has weight \(8, 8\) and bias \(9,\)"):
        recollect(source, tmp_path / "out", transitions=10)


@genuine
@pytest.mark.parametrize("task", ["hopper", "halfcheetah", "walker2d"])
def test_log_probabilities_are_those_that_were_recorded(task: str) -> None:
    with h5py.File(Path(SAMPLES or "") / f"{task}_medium-v2.hdf5") as file:
        policy = read_policy(file, task)
        observations, actions = file["observations"][()], file["actions"][()]
        recorded = file["infos/action_log_probs"][()]
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


@genuine
@pytest.mark.parametrize(
    ("task", "transitions"),
    [
        ("hopper", 15_000),
        pytest.param("hopper", 150_000, marks=pytest.mark.slow),
        pytest.param("halfcheetah", 100_000, marks=pytest.mark.slow),
        pytest.param("walker2d", 100_000, marks=pytest.mark.slow),
    ],
)
def test_returns_are_those_that_were_published(task: str, transitions: int, tmp_path: Path) -> None:
    source = Path(SAMPLES or "") / f"{task}_medium-v2.hdf5"
    dataset = recollect(source, tmp_path / "again.hdf5", transitions=transitions, progress=False)
    values, complete = dataset.returns()
    published = d4rl_facts(f"{task}-medium-v2").returns
    assert published is not None
    error = published["std"] / np.sqrt(complete.sum())
    assert abs(values[complete].mean() - published["mean"]) < 4.5 * error
