"""What is written is read back."""

import json
from pathlib import Path

import h5py
import numpy as np

from score_rl.data.catalogue import load_dataset
from score_rl.data.collection.policies import ladder_policies
from score_rl.data.collection.recorder import collect
from score_rl.data.collection.writing import unit_bounds, write_hdf5


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
