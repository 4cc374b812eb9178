"""A data set comes to a machine once, and is what it should be."""

from pathlib import Path

import pytest

from score_rl.cluster.data import CACHE, copy_shared, obtain, pack
from score_rl.cluster.orders import DataEntry
from score_rl.errors import MachineError
from tests.judge import linear_plant


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataEntry:
    """As the driver packs it; the cache of the machine is empty."""
    monkeypatch.setenv("SCORE_RL_CACHE", str(tmp_path / "cache"))
    logs = linear_plant.logs(3)
    (made,) = pack([logs, logs], tmp_path / "parts")
    assert made.checksum == logs.checksum
    return made


def test_it_is_fetched_once_for_all_tasks_of_a_machine(entry: DataEntry) -> None:
    fetched: list[Path] = []

    def fetch(entry: DataEntry, target: Path) -> None:
        fetched.append(target)
        copy_shared(entry, target)

    for _ in range(3):
        assert obtain(entry, fetch).checksum == entry.checksum
    assert len(fetched) == 1


def test_what_was_damaged_in_the_cache_is_fetched_again(entry: DataEntry, tmp_path: Path) -> None:
    obtain(entry, copy_shared)
    (kept,) = (tmp_path / "cache" / CACHE).glob("*.hdf5")
    content = bytearray(kept.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    kept.write_bytes(content)
    assert obtain(entry, copy_shared).checksum == entry.checksum


def test_other_data_under_its_name_are_refused(entry: DataEntry, tmp_path: Path) -> None:
    (other,) = pack([linear_plant.logs(3, seed=9)], tmp_path / "other")
    Path(entry.file).write_bytes(Path(other.file).read_bytes())
    with pytest.raises(MachineError, match="did not arrive whole"):
        obtain(entry, copy_shared)


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    entry: DataEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = DataEntry(entry.name, entry.checksum, entry.environment, entry.file, 10**18)
    with pytest.raises(MachineError, match="MB left"):
        obtain(huge, lambda *_: pytest.fail("it was fetched"))
