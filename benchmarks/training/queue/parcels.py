"""Results and unfinished jobs in a few files of limited size, for machines that one leaves with little luggage.

    python -m benchmarks.training.queue.parcels pack FOLDER --files 4 --mib 15
    python -m benchmarks.training.queue.parcels unpack FOLDER

Results come first, then OGBench's, then logs. Then come unfinished jobs, the cheapest to carry first, each with the
newest checkpoint of every fleet. What no longer fits is named. Data are not packed: they are collected again.
"""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from score_rl.errors import InputError

from .account import ACCOUNT, add_to_account, read_account
from .conditions import MEASURED, RESULTS, WORK

PART = "queue.tar.{:02d}"
CHECKPOINTS = "step-*.safetensors"
MIB = 2**20
RESULTS_OF_OGBENCH = "results"  # in the folder of benchmarks.training.ogbench


@dataclass(frozen=True)
class Pack:
    """Write results, logs and unfinished jobs into a folder, in files of limited size."""

    folder: Annotated[Path, tyro.conf.Positional]
    work: Path = WORK
    results: Path = RESULTS
    ogbench: Path | None = None
    """OUT of benchmarks.training.ogbench: its results and logs. Its checkpoints are too large to carry."""
    files: int = 4
    mib: float = 15.0
    """Size of each file."""


@dataclass(frozen=True)
class Unpack:
    """Put what was packed where the queue goes on from it."""

    folder: Annotated[Path, tyro.conf.Positional]
    work: Path = WORK
    results: Path = RESULTS
    ogbench: Path = MEASURED
    """Where OGBench's results go."""


@dataclass(frozen=True)
class Bundle:
    """Files that are packed together or not at all."""

    name: str
    files: tuple[tuple[Path, Path], ...]  # where each lies, and its name in the parcel

    @property
    def size(self) -> int:
        """At most, in the parcel."""
        return sum(path.stat().st_size + 2 * tarfile.BLOCKSIZE for path, _ in self.files)


def pack(asked: Pack) -> list[str]:
    """The names of what did not fit."""
    limit, size = int(asked.files * asked.mib * MIB), int(asked.mib * MIB)
    left, stream = [], io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for bundle in bundles(asked):
            if stream.tell() + bundle.size + tarfile.RECORDSIZE > limit:
                left.append(bundle.name)
                continue
            for path, name in bundle.files:
                tar.add(path, str(name))
    content = stream.getvalue()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(content), size)):
        (asked.folder / PART.format(number)).write_bytes(content[start : start + size])
    return left


def bundles(asked: Pack) -> Iterator[Bundle]:
    """Everything there is to carry, the most valuable first."""
    yield from _by_folder("results", asked.results)
    if asked.ogbench is not None:
        yield from _by_folder("ogbench", asked.ogbench / RESULTS_OF_OGBENCH)
        told = tuple((path, Path("logs", path.name)) for path in sorted(asked.ogbench.glob("*.log")))
        yield Bundle("OGBench's logs", told)
    logs = asked.work / "logs"
    yield Bundle("logs", tuple((path, Path("logs", path.relative_to(logs))) for path in _files(logs)))
    jobs = asked.work / "jobs"
    unfinished = [
        Bundle(folder.name, tuple((path, Path("jobs", path.relative_to(jobs))) for path in _of_job(folder)))
        for folder in sorted(jobs.glob("*"))
        if folder.is_dir()
    ]
    yield from sorted(unfinished, key=lambda bundle: bundle.size)


def _by_folder(place: str, results: Path) -> Iterator[Bundle]:
    """What lies in a folder of results itself, and then a bundle for each folder in it."""
    paths = sorted(results.iterdir()) if results.is_dir() else []
    alone = tuple((path, Path(place, path.name)) for path in paths if path.is_file())
    yield Bundle(f"{place}, single files", alone)
    for folder in (path for path in paths if path.is_dir()):
        yield Bundle(folder.name, tuple((path, Path(place, path.relative_to(results))) for path in _files(folder)))


def unpack(asked: Unpack) -> None:
    parts = sorted(asked.folder.glob("queue.tar.*"))
    if not parts:
        raise InputError(f"{asked.folder} holds nothing that the queue has packed (no queue.tar.00).")
    places = {
        "results": asked.results, "ogbench": asked.ogbench, "logs": asked.work / "logs", "jobs": asked.work / "jobs",
    }  # fmt: skip
    account = asked.results / ACCOUNT
    before = read_account(account)
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
        for member in tar:
            room, _, name = member.name.partition("/")
            if room in places and member.isfile():
                member.name = name
                tar.extract(member, places[room], filter="data")
    brought = [entry for entry in read_account(account) if entry not in before]
    account.unlink(missing_ok=True)
    if before or brought:
        add_to_account(account, [*before, *brought])


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _of_job(folder: Path) -> Iterator[Path]:
    """All files of a job but older checkpoints."""
    for path in _files(folder):
        newest = max(path.parent.glob(CHECKPOINTS), default=path)
        if not path.match(CHECKPOINTS) or path == newest:
            yield path


if __name__ == "__main__":
    chosen = tyro.extras.subcommand_cli_from_dict({"pack": Pack, "unpack": Unpack}, description=__doc__)
    try:
        if isinstance(chosen, Unpack):
            unpack(chosen)
        else:
            for name in pack(chosen):
                print(f"{name} did not fit")
    except InputError as mistake:
        raise SystemExit(str(mistake)) from None
