"""Tables from strangers: refused in one sentence, or imported with exactly the rows and numbers that are in them."""

import csv
import gzip
import io
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet
import pytest

from score_rl.data.catalogue import load_dataset
from score_rl.data.check import check_file
from score_rl.data.readiness import USUAL_SCALING, refuse_unready
from score_rl.data.sources import file_trial
from score_rl.data.tables.frames import open_table
from score_rl.data.tables.importing import Options, import_table, roles_of
from score_rl.data.tables.preview import preview
from score_rl.data.tables.proposal import command, propose
from score_rl.errors import InputError
from tests.drills.tables import FORMATS, hostile_table, sound_columns, write_sound

SECONDS = 10.0  # of this process's time, for one small file: it takes milliseconds, and a busy machine is no hang
ROLES = roles_of(
    ["temp", "flow"], ["valve"], reward="r", episode="trip", time="t", terminal="failed",
)  # fmt: skip
OPTIONS = Options(environment="none")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    file_trial.end_idle()
    monkeypatch.setattr(file_trial, "SECONDS", 1)
    yield
    file_trial.end_idle()


def imported(path: Path, out: Path) -> bool:
    """Whether a table was imported. What comes of it is what another reader finds in it, and `check` says the same as
    `train`."""
    out.unlink(missing_ok=True)
    refused: str | None = None
    try:
        table = open_table(path)
        found = propose(table)
        command(str(path), found, out=str(out), bounds=False)
        preview(table, ROLES, OPTIONS)
        import_table(table, ROLES, out, OPTIONS)
    except InputError as error:
        refused = str(error)
    if refused is not None:
        assert "\n" not in refused
        assert not out.exists()
        return False
    with h5py.File(out) as file:
        written = {key: file[key][()] for key in ("observations", "actions", "rewards", "terminals")}
    expected = read_otherwise(path)
    if expected is not None:
        assert sorted(map(tuple, expected)) == sorted(
            map(tuple, np.column_stack([*written["observations"].T, written["actions"], written["rewards"]]))
        )
    try:
        dataset = load_dataset(out)
        refuse_unready(dataset, "none", [USUAL_SCALING])
    except InputError:
        assert any(finding.level == "error" for finding in check_file(out)), "train refuses what check accepts"
    else:
        assert not any(finding.level == "error" for finding in check_file(out)), "check refuses what train accepts"
    return True


def read_otherwise(path: Path) -> np.ndarray | None:
    """temp, flow, valve and r of every row, read by other libraries; None where these do not read the file."""
    names = ["temp", "flow", "valve", "r"]
    if path.name.endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            columns = [file[name] for name in names]
    elif path.name.endswith(".parquet"):
        try:
            stored = pyarrow.parquet.read_table(path)
        except (pyarrow.ArrowException, OSError):  # such as of a checksum that polars does not look at
            return None
        columns = [np.array(stored[name].to_pylist(), np.float64) for name in names]
    else:
        content = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
        text = content.decode("utf-8-sig", errors="replace")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        lines = [line for line in lines if line]
        places = [[cell.strip() for cell in header].index(name) for name in names]
        columns = [np.array([float(line[place].replace(",", ".")) for line in lines]) for place in places]
    return np.column_stack([np.asarray(column, np.float64).astype(np.float32) for column in columns])


def drill(seeds: range, folder: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for seed in seeds:
        path, done = hostile_table(folder, seed)
        began = time.process_time()
        try:
            accepted = imported(path, folder / "out.hdf5")
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {done}") from error
        assert time.process_time() - began < SECONDS, f"seed {seed}: {done}"
        counted["accepted" if accepted else "refused"] += 1
        counted[f"{path.suffix} {'accepted' if accepted else 'refused'}"] += 1
    return counted


@pytest.mark.parametrize("kind", FORMATS)
def test_sound_tables_are_imported(tmp_path: Path, kind: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        write_sound(tmp_path / f"sound.{kind}", sound_columns(rng), rng)
        assert imported(tmp_path / f"sound.{kind}", tmp_path / "out.hdf5")


def test_hostile_tables(tmp_path: Path) -> None:
    counted = drill(range(80), tmp_path)
    assert min(counted["refused"], counted["accepted"]) > 5, counted


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifteen_hundred_hostile_tables(tmp_path: Path) -> None:
    counted = drill(range(1_000, 2_500), tmp_path)
    print(counted)
    assert counted["refused"] > 500, counted
