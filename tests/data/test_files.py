"""Files in D4RL's format: reading, writing, environments and bounds, and everything that can be wrong with one."""

import json
import os
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.policies import ladder_policies
from score_rl.data.recording import collect
from score_rl.data.sources.hdf5 import read_hdf5, write_hdf5
from score_rl.data.sources.replica import unit_bounds
from score_rl.errors import InputError

from .recordings import hopper_recording, recording, write


def test_a_file_round_trips(tmp_path: Path) -> None:
    policy = ladder_policies("hopper", [135216])[0]
    rows = collect("hopper", [(policy, 600)], seed=3)
    path = tmp_path / "mine.hdf5"
    write_hdf5(path, rows, environment="hopper", action_bounds=unit_bounds("hopper"), recipe={"seed": 3}, policy=policy)
    dataset = load_dataset(str(path))
    for key in ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts"):
        np.testing.assert_array_equal(getattr(dataset, key), getattr(rows, key))
    assert (dataset.name, dataset.environment, dataset.source["recipe"]) == ("mine", "hopper", {"seed": 3})
    assert len(dataset.source["file_sha256"]) == 64
    assert dataset.source["kind"] == "file"
    json.dumps(dataset.source)
    with h5py.File(path) as file:
        assert {"qpos", "qvel", "action_log_probs"} == set(file["infos"])
        assert file["infos/qpos"].shape == (600, 6)
        assert file["infos/qpos"].dtype == np.float64
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.hdf5"]


def test_a_file_without_next_observations(tmp_path: Path) -> None:
    path = write(tmp_path / "bare.hdf5", recording(next_observations=None))
    dataset = load_dataset(str(path))
    assert len(dataset) == 5 + 3 + 2  # the cut episode and the partial one each lose their last row
    whole = load_dataset(str(write(tmp_path / "whole.hdf5", recording())))
    alive = ~dataset.terminals
    rows = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]
    np.testing.assert_array_equal(dataset.next_observations[alive], whole.next_observations[rows][alive])


def test_the_environment_is_inferred_from_name_and_dimensions(tmp_path: Path) -> None:
    assert load_dataset(str(write(tmp_path / "my_hopper_run.hdf5", hopper_recording()))).environment == "hopper"
    assert load_dataset(str(write(tmp_path / "my_walker2d_run.hdf5", hopper_recording()))).environment is None
    assert load_dataset(str(write(tmp_path / "other.hdf5", hopper_recording()))).environment is None


@pytest.mark.parametrize("name", ["half_cheetah", "HalfCheetah-run", "walker2d"])
def test_spellings_of_a_task(tmp_path: Path, name: str) -> None:
    wide = {"observations": np.ones((12, 17)), "next_observations": np.ones((12, 17)), "actions": np.zeros((12, 6))}
    found = load_dataset(str(write(tmp_path / f"{name}.hdf5", {**recording(), **wide}))).environment
    assert found == ("walker2d" if "walker" in name else "halfcheetah")


def test_the_environment_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "swings.hdf5", recording(actions=np.full((12, 1), 1.7)))
    dataset = load_dataset(str(path), environment="Pendulum-v1")
    assert dataset.environment == "Pendulum-v1"
    np.testing.assert_array_equal(dataset.action_high, [2.0])
    with pytest.raises(InputError, match="swings has 3 observations and 1 actions, but hopper has 11 and 3"):
        load_dataset(str(path), environment="hopper")


def test_unknown_bounds_are_asked_for_and_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "wide.hdf5", recording(actions=np.full((12, 2), -2.5)))
    with pytest.raises(InputError, match=r"actions reach from -2.5 to -2.5 .* or pass `action_bounds`, LOW HIGH"):
        load_dataset(str(path))
    np.testing.assert_array_equal(load_dataset(str(path), action_bounds=(-3, 4)).action_high, [4.0, 4.0])
    with pytest.raises(InputError, match=r"action 0 reaches from -2.5 to -2.5 and leaves its bounds -2 to 2"):
        load_dataset(str(path), action_bounds=(-2, 2))


def test_bounds_of_each_action(tmp_path: Path) -> None:
    path = write(tmp_path / "wide.hdf5", recording(actions=np.tile([120.0, -0.5], (12, 1))))
    dataset = load_dataset(str(path), action_bounds=(0, 250, -1, 1))
    np.testing.assert_array_equal(dataset.action_low, [0.0, -1.0])
    np.testing.assert_array_equal(dataset.action_high, [250.0, 1.0])
    with pytest.raises(InputError, match="`action_bounds` has 6 numbers for 2 actions"):
        load_dataset(str(path), action_bounds=(0, 250, -1, 1, 0, 1))


def test_fewer_transitions_are_spread_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "long.hdf5", recording((5,) * 20, "t" * 20))
    dataset = load_dataset(str(path), transitions=33)
    assert len(dataset) == 33
    assert dataset.terminals.sum() == 6
    assert dataset.timeouts.sum() == 1
    assert load_dataset(str(path), transitions=100).checksum == load_dataset(str(path)).checksum
    with pytest.raises(InputError, match="long has 100 transitions, but 101 were asked for"):
        load_dataset(str(path), transitions=101)
    with pytest.raises(InputError, match="0 transitions were asked for"):
        load_dataset(str(path), transitions=0)


def test_fewer_transitions_of_a_file_that_marks_its_trajectories(tmp_path: Path) -> None:
    arrays = recording((5,) * 20, "c" * 20)
    ends = arrays.pop("timeouts")
    arrays["terminals"] = np.arange(100) % 5 == 2  # solved on the way, in every trajectory
    path = write(tmp_path / "long.hdf5", {**arrays, "trajectory_ends": ends})
    dataset = load_dataset(str(path), transitions=33)
    lengths = dataset.trajectories[:, 1] - dataset.trajectories[:, 0]
    assert sorted(lengths) == [3, 5, 5, 5, 5, 5, 5]
    assert dataset.timeouts.sum() == 1  # where the last one was cut short
    assert dataset.terminals.sum() == 7


def truncated(path: Path) -> Path:
    write(path, recording((50,) * 20, "t" * 20))
    os.truncate(path, path.stat().st_size // 2)
    return path


def text_file(path: Path) -> Path:
    path.write_text("observations,actions\n")
    return path


def group_for_an_array(path: Path) -> Path:
    arrays = recording()
    del arrays["rewards"]
    write(path, arrays)
    with h5py.File(path, "a") as file:
        file.create_group("rewards")
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path, "does not exist: give the path"),
        (lambda path: path.mkdir() or path, "is a folder"),
        (text_file, "is not an HDF5 file .21 bytes of something else."),
        (lambda path: path.touch() or path, r"is not an HDF5 file \(empty\)"),
        (truncated, "is truncated: it ends before its contents do"),
        (group_for_an_array, "rewards is a group"),
        (lambda path: write(path, recording(rewards=None, timeouts=None)), "lacks rewards, timeouts .it has actions, "),
        (lambda path: write(path, recording(rewards=np.full(12, np.nan))), "rewards has NaN .* in 12 of 12 rows"),
        (lambda path: write(path, recording(actions=np.zeros((7, 2)))), "the arrays differ in rows"),
        (lambda path: write(path, recording((4, 4), "pp")), "no terminal and no timeout in 8 rows"),
        (lambda path: write(path, {k: v[:0] for k, v in recording().items()}), "is empty: it has no rows"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, make: Any, words: str) -> None:
    path = make(tmp_path / "bad.hdf5")
    with pytest.raises(InputError, match=words) as caught:
        load_dataset(str(path))
    assert "\n" not in str(caught.value)
    assert "bad" in str(caught.value)


def test_actions_beyond_a_known_task_s_bounds(tmp_path: Path) -> None:
    path = write(tmp_path / "hopper_bad.hdf5", hopper_recording(actions=np.full((12, 3), 1.5)))
    with pytest.raises(InputError, match=r"action 0 reaches .* leaves its bounds -1 to 1 in 12 rows"):
        load_dataset(str(path))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hopper-medium", "replica:hopper-medium"),
        ("replica:hoper-medium", "replica:hopper-medium"),
        ("replica:hopper-full-replay", "replica:hopper-medium-replay"),
        ("d4rl:hopper-medium-v0", "d4rl:hopper-medium-v2"),
        ("minari:hopper-medium", "replica:hopper-medium"),
    ],
)
def test_unknown_names_get_the_nearest_ones(name: str, near: str) -> None:
    with pytest.raises(InputError, match="unknown data set") as caught:
        load_dataset(name)
    assert repr(near) in str(caught.value)


@pytest.mark.parametrize("name", ["logs.csv", "logs.parquet", "logs.npz", "logs/mine", "../logs"])
def test_what_looks_like_a_file_and_is_none_does_not_exist(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^{re.escape(name)} does not exist: give the path of a D4RL-format HDF5"):
        load_dataset(name)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_of_other_formats_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"logs{suffix}"
    path.write_text("observations,actions\n")
    with pytest.raises(
        InputError, match=r"is not an HDF5 file \(21 bytes of something else\): no other format is read"
    ):
        load_dataset(path)


def test_a_given_environment_must_fit_a_replica_too(tmp_path: Path) -> None:
    name = "replica:hopper-random"
    options: dict[str, Any] = {"transitions": 50, "cache": tmp_path, "progress": False}
    assert load_dataset(name, environment="hopper", **options).environment == "hopper"
    with pytest.raises(InputError, match="but walker2d has 17 and 6"):
        load_dataset(name, environment="walker2d", **options)


def test_arrays_that_disagree_are_named_when_fewer_rows_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.hdf5", recording(rewards=np.zeros(11)))
    with pytest.raises(InputError, match="the arrays differ in rows"):
        load_dataset(str(path), transitions=5)


def test_metadata_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.hdf5", {**recording(), "metadata/recipe": "not JSON", "metadata/environment": 7})
    assert read_hdf5(path).metadata.recipe is None
    assert load_dataset(str(path)).environment is None
