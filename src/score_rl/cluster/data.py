"""Data sets on their way to machines: each goes to a machine once, and its checksum is compared there."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from score_rl.cluster.orders import DataEntry
from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.saving import save_dataset
from score_rl.disk import cache_folder, private_folder, replacing
from score_rl.errors import InputError, MachineError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DATA = "data"  # in the folder of the parts
CACHE = "cluster-data"

Fetch = Callable[[DataEntry, Path], None]  # writes the file of a data set to a path


def pack(datasets: Iterable[Dataset], parts: Path) -> tuple[DataEntry, ...]:
    """Write each data set beside the parts, as it is trained on, for machines to take."""
    entries = []
    for dataset in {dataset.checksum: dataset for dataset in datasets}.values():
        file = parts / DATA / f"{dataset.checksum}.hdf5"
        if not file.exists():
            save_dataset(dataset, file)
        entries.append(
            DataEntry(dataset.name, dataset.checksum, dataset.environment, str(file.absolute()), file.stat().st_size)
        )
    return tuple(entries)


def copy_shared(entry: DataEntry, target: Path) -> None:
    """From storage that is shared."""
    with Path(entry.file).open("rb") as source, target.open("wb") as file:
        while block := source.read(1 << 24):
            file.write(block)


def obtain(entry: DataEntry, fetch: Fetch) -> Dataset:
    """The data set, from this machine's cache; fetched if it is not there or is not what it should be."""
    file = private_folder(cache_folder() / CACHE) / f"{entry.checksum}.hdf5"
    with _alone(file.with_suffix(".lock")):
        found = _load(entry, file) if file.exists() else None
        if found is None:
            with replacing(file, entry.size) as temporary:
                fetch(entry, temporary)
            found = _load(entry, file)
    if found is None:
        raise MachineError(
            f"{entry.name} did not arrive whole: {file} is not the data set with checksum {entry.checksum[:12]}; "
            "check the storage of this machine."
        )
    return found


def _load(entry: DataEntry, file: Path) -> Dataset | None:
    """None if the file holds anything but this data set."""
    try:
        loaded = load_dataset(file, environment=entry.environment, progress=False)
    except InputError:
        return None
    if loaded.checksum != entry.checksum:
        return None
    return dataclasses.replace(loaded, name=entry.name, environment=entry.environment)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One task of a machine at a time, where there are locks: others wait, and find the file."""
    with lock.open("a") as file:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a disk without locks: then two may fetch the same
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield
