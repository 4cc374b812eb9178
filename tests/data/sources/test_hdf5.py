"""Files in D4RL's format, and everything that can be wrong with one."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.check import check_file
from score_rl.data.labels import Labels
from score_rl.data.sources.hdf5 import read_metadata, write_labels
from score_rl.data.sources.hdf5_file import open_hdf5
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


def changed(path: Path, change: Callable[[h5py.File], object], **columns: Any) -> Path:
    write(path, recording(**columns))
    with h5py.File(path, "a") as file:
        change(file)
    return path


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((12,), "f4")
    layout[...] = h5py.VirtualSource("missing.hdf5", "rewards", (12,))
    file.create_virtual_dataset("rewards", layout)


def in_part(file: h5py.File) -> None:
    file.create_dataset("rewards", (12,), "f4", chunks=(4,))[:4] = 1


def huge(file: h5py.File) -> None:
    file.create_dataset("rewards", (1_500_000_000_000,), "f8", chunks=(8,))[:8] = 1


PASSWORDS = [("/etc/passwd", 0, h5py.h5f.UNLIMITED)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.__setitem__("rewards", h5py.ExternalLink("/etc/passwd", "/x")), "external link, to the file /etc"),
        (lambda f: f.create_dataset("rewards", (12,), "u1", external=PASSWORDS), "external storage, the file /etc/pas"),
        (virtual, "rewards is a virtual data set, made of other files: none of them is read"),
        (lambda f: f.create_dataset("rewards", (12,), "f4"), "was never written, and what is missing would be re"),
        (in_part, "was written only in part, and what is missing would be read as zeros"),
        (huge, "rewards was written only in part"),
        (lambda f: f.__setitem__("rewards", h5py.SoftLink("/nowhere")), "a link to something that is not in the file"),
        (lambda f: f.__setitem__("rewards", h5py.SoftLink("/rewards")), "a link that leads in a circle"),
        (lambda f: f.__setitem__("rewards", h5py.Empty("f4")), r"has no content \(a null data set\)"),
        (lambda f: f.__setitem__("rewards", np.dtype("f4")), "is a type, but an array is expected"),
        (lambda f: f.__setitem__("rewards", np.zeros(12, "S3")), "rewards holds |S3, but numbers are expected"),
        (lambda f: f.__setitem__("rewards", np.zeros(12, "c8")), "holds complex64, but numbers are expected"),
    ],
)  # fmt: skip
def test_what_lies_elsewhere_or_nowhere_is_refused_in_reader_and_check(
    tmp_path: Path, change: Callable[[h5py.File], object], words: str
) -> None:
    path = changed(tmp_path / "bad.hdf5", change, rewards=None)
    with pytest.raises(InputError, match=words) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(f"{path}: rewards ")
    assert [(finding.level, finding.message) for finding in check_file(path)] == [("error", str(caught.value))]


def test_a_link_within_the_file_is_followed(tmp_path: Path) -> None:
    plain = load_dataset(write(tmp_path / "plain.hdf5", recording()))

    def linked(file: h5py.File) -> None:
        file.move("rewards", "aside/deep/costs")
        file["rewards"] = h5py.SoftLink("aside/near")
        file["aside/near"] = h5py.SoftLink("deep/./costs")  # from where it stands

    assert load_dataset(changed(tmp_path / "linked.hdf5", linked)).checksum == plain.checksum


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("environment", 7, "environment is int64, but a text is expected: correct or remove it"),
        ("environment", h5py.Empty("S5"), "has no content"),
        ("environment", np.bytes_(b"\xff\xfe"), "environment is damaged .*can't decode byte"),
        ("environment", "\x1b[2Jhopper", r"environment is '\\x1b\[2Jhopper', which cannot be printed"),
        ("environment", "os:system-v0", "which would run the module 'os': pass `environment` yourself"),
        ("environment", "Pendulum-v1", "has 3 observations and 2 actions, but Pendulum-v1 has 3 and 1"),
        ("environment", "hopper", "has 3 observations and 2 actions, but hopper has 11 and 3"),
        ("environment", "Nowhere-v3", "unknown environment 'Nowhere-v3'"),
        ("action_low", -1.0, "has metadata/action_low and lacks metadata/action_high: store both"),
        ("units", "[" * 100_000, "metadata/units is no JSON object of names and units"),
        ("units", '{"a": {}}', "metadata/units is no JSON object of names and units"),
        ("observation_names", "a", "observation_names is one text, but a list of names is expected"),
    ],
)
def test_metadata_of_another_kind_is_refused(tmp_path: Path, key: str, value: Any, words: str) -> None:
    path = changed(tmp_path / "odd.hdf5", lambda file: file.__setitem__(f"metadata/{key}", value))
    (error,) = (finding.message for finding in check_file(path) if finding.level == "error")
    assert re.search(words, error), error


def test_rewards_of_one_column_are_read_with_a_note(tmp_path: Path) -> None:
    """As in D4RL's medium_replay of version 1."""
    plain = load_dataset(write(tmp_path / "plain.hdf5", recording()))
    path = write(tmp_path / "column.hdf5", recording(rewards=recording()["rewards"][:, None]))
    dataset = load_dataset(path)
    assert dataset.checksum == plain.checksum
    assert dataset.source["notes"] == ["rewards is stored with shape (12, 1) and was read as one number to a row."]
    assert any("was read as one number to a row" in finding.message for finding in check_file(path))
    assert not any(finding.level == "error" for finding in check_file(path))


def test_metadata_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.hdf5", {**recording(), "metadata/recipe": "not JSON"})
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
