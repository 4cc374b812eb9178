"""Files in D4RL's format, and everything that can be wrong with one."""

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.labels import Labels
from score_rl.data.sources.hdf5 import open_hdf5, read_metadata, write_labels
from score_rl.errors import InputError
from tests.data.recordings import hopper_recording, recording, write


def test_a_file_without_next_observations(tmp_path: Path) -> None:
    path = write(tmp_path / "bare.hdf5", recording(next_observations=None))
    dataset = load_dataset(str(path))
    assert len(dataset) == 5 + 3 + 2  # the cut episode and the partial one each lose their last row
    whole = load_dataset(str(write(tmp_path / "whole.hdf5", recording())))
    alive = ~dataset.terminals
    rows = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]
    np.testing.assert_array_equal(dataset.next_observations[alive], whole.next_observations[rows][alive])


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


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_of_other_formats_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"logs{suffix}"
    path.write_text("observations,actions\n")
    with pytest.raises(InputError, match=r"21 bytes of something else.*score data import makes one of a table"):
        load_dataset(path)


def test_metadata_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.hdf5", {**recording(), "metadata/recipe": "not JSON", "metadata/environment": 7})
    with open_hdf5(path) as file:
        assert read_metadata(file).recipe is None
    assert load_dataset(str(path)).environment is None


def test_names_units_and_times_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "named.hdf5", recording(times=np.arange(12)))
    with h5py.File(path, "a") as file:
        write_labels(file.create_group("metadata"), Labels(("a", "b", "c"), ("u °C", "v"), {"a": "K"}))
    dataset = load_dataset(path)
    assert (dataset.observation_names, dataset.action_names) == (("a", "b", "c"), ("u °C", "v"))
    assert dataset.units == {"a": "K"}
    write(path, recording(times=np.arange(12)[::-1]))
    with pytest.raises(InputError, match="named: 9 of 12 rows are not later than the row before"):
        load_dataset(path)


def test_a_file_can_say_that_it_has_no_environment(tmp_path: Path) -> None:
    path = write(tmp_path / "hopper-logs.hdf5", hopper_recording())
    assert load_dataset(path).environment == "hopper"
    with h5py.File(path, "a") as file:
        file["metadata/environment"] = "none"
    assert load_dataset(path).environment is None
