"""Files from strangers: no traceback, no hang, one verdict, nothing repaired in silence, memory bounded by the file."""

import resource
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.check import check_file
from score_rl.data.readiness import USUAL_SCALING, refuse_unready
from score_rl.data.sources import file_trial
from score_rl.errors import InputError
from tests.drills import hdf5_files
from tests.drills.hdf5_files import CHANGES, hostile_file, packed_large, seed_file

SECONDS = 10.0  # of this process's time, for one small file: it takes milliseconds, and a busy machine is no hang
BYTES = 1 << 30  # that reading small files may add to the process


def verdict(path: Path) -> str | None:
    """What `score train` says of a file; None where it would begin."""
    try:
        dataset = load_dataset(path)
        refuse_unready(dataset, dataset.environment, [USUAL_SCALING])
    except InputError as error:
        return str(error)
    with h5py.File(path) as file:  # nothing was repaired: what is trained on is what the file says
        rows = dataset.recorded_rows(np.arange(len(dataset)))
        np.testing.assert_array_equal(dataset.rewards, np.ravel(file["rewards"][()])[rows].astype(np.float32))
        np.testing.assert_array_equal(dataset.observations, file["observations"][()][rows].astype(np.float32))
    return None


def drill(seeds: range, folder: Path) -> Counter[str]:
    """Read and check the files of these seeds."""
    counted: Counter[str] = Counter()
    for seed in seeds:
        path = folder / "drill.hdf5"
        path.unlink(missing_ok=True)
        done = hostile_file(path, seed)
        began = time.process_time()
        refusal = verdict(path)
        findings = check_file(path)
        assert time.process_time() - began < SECONDS, f"seed {seed}, {done}"
        errors = [finding.message for finding in findings if finding.level == "error"]
        assert bool(errors) == (refusal is not None), f"seed {seed}, {done}: {refusal} but {errors}"
        for message in (refusal or "", *(finding.message for finding in findings)):
            assert message.isprintable(), f"seed {seed}, {done}: {message!r}"
        counted["refused" if refusal else "accepted"] += 1
    return counted


def test_sound_files_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the drill would refuse everything and prove nothing."""
    monkeypatch.setattr(hdf5_files, "CHANGES", ())
    for seed in range(12):
        seed_file(tmp_path / "drill.hdf5", hdf5_files.random.Random(seed))
        assert verdict(tmp_path / "drill.hdf5") is None


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On some files the library never ends; a second is enough to see that."""
    file_trial.end_idle()
    monkeypatch.setattr(file_trial, "SECONDS", 1)
    yield
    file_trial.end_idle()


def test_a_file_on_which_the_library_never_ends(tmp_path: Path) -> None:
    """A list of strings that leads back into itself. In Python nothing could stop that."""
    hostile_file(tmp_path / "drill.hdf5", 950)
    assert "is damaged, and the HDF5 library does not come to an end on it" in str(verdict(tmp_path / "drill.hdf5"))
    seed_file(tmp_path / "sound.hdf5", hdf5_files.random.Random(0))
    assert verdict(tmp_path / "sound.hdf5") is None, "another process reads the next file"


def test_a_file_on_which_the_library_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the process ends nothing else."""
    monkeypatch.setattr(file_trial.sys, "executable", shutil.which("false"))
    seed_file(tmp_path / "sound.hdf5", hdf5_files.random.Random(0))
    assert "is damaged, and the HDF5 library " in str(verdict(tmp_path / "sound.hdf5"))


def test_hostile_files(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counted = drill(range(150), tmp_path)
    assert min(counted["refused"], counted["accepted"]) > 15, counted
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < BYTES


@pytest.mark.slow
def test_three_thousand_hostile_files(tmp_path: Path) -> None:
    counted = drill(range(1_000, 4_000), tmp_path)
    assert counted["refused"] > 1_000, counted


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES[10:]), ids=lambda change: str(change.__name__))
def test_a_change_is_made(tmp_path: Path, change: hdf5_files.Change) -> None:
    """A change that silently does nothing would drill nothing."""
    path = tmp_path / "drill.hdf5"
    for seed in range(3):
        path.unlink(missing_ok=True)
        seed_file(path, hdf5_files.random.Random(seed))
        before = path.read_bytes()
        change(path, hdf5_files.random.Random(seed))
        assert path.read_bytes() != before


def test_gigabytes_packed_into_kilobytes_are_refused_without_being_unpacked(tmp_path: Path) -> None:
    seed_file(tmp_path / "drill.hdf5", hdf5_files.random.Random(0))
    packed_large(tmp_path / "drill.hdf5", hdf5_files.random.Random(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "declares 1,073,741,824 bytes, more than a file of" in str(verdict(tmp_path / "drill.hdf5"))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < BYTES / 4
