"""The environment, the bounds and the number of rows that a recording is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.errors import InputError

from .recordings import hopper_recording, recording, write


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


def test_actions_beyond_a_known_task_s_bounds(tmp_path: Path) -> None:
    path = write(tmp_path / "hopper_bad.hdf5", hopper_recording(actions=np.full((12, 3), 1.5)))
    with pytest.raises(InputError, match=r"action 0 reaches .* leaves its bounds -1 to 1 in 12 rows"):
        load_dataset(str(path))


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
