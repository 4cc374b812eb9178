"""Results and unfinished jobs in a few files of limited size, for machines that one leaves with little luggage.

    python -m benchmarks.training.queue.parcels pack FOLDER --files 4 --mib 15
    python -m benchmarks.training.queue.parcels unpack FOLDER --files 4 --mib 15

Results and logs come first. Then come unfinished jobs, the cheapest to carry first, each with the newest checkpoint of
every fleet; those that no longer fit are named. Data are not packed: they are collected again.
"""

import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from score_rl.errors import InputError

from .conditions import RESULTS, WORK

PART = "queue.tar.{:02d}"
CHECKPOINTS = "step-*.safetensors"
MIB = 2**20


@dataclass(frozen=True)
class Pack:
    """Write results, logs and unfinished jobs into a folder, in files of limited size."""

    folder: Annotated[Path, tyro.conf.Positional]
    work: Path = WORK
    results: Path = RESULTS
    files: int = 8
    mib: float = 16.0
    """Size of each file."""


@dataclass(frozen=True)
class Unpack:
    """Put what was packed where the queue goes on from it."""

    folder: Annotated[Path, tyro.conf.Positional]
    work: Path = WORK
    results: Path = RESULTS


def pack(asked: Pack) -> list[str]:
    """The names of unfinished jobs that did not fit."""
    limit, size = int(asked.files * asked.mib * MIB), int(asked.mib * MIB)
    first = [(path, Path("results") / path.relative_to(asked.results)) for path in _files(asked.results)]
    logs = asked.work / "logs"
    first += [(path, Path("logs") / path.relative_to(logs)) for path in _files(logs)]
    jobs = {folder: list(_of_job(folder)) for folder in sorted((asked.work / "jobs").glob("*")) if folder.is_dir()}
    left, stream = [], io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        _add(tar, first)
        if stream.tell() > limit:
            raise InputError(f"the results alone take {stream.tell()} bytes, and {limit} are allowed; raise --mib.")
        for folder, files in sorted(jobs.items(), key=lambda item: sum(path.stat().st_size for path in item[1])):
            room = sum(path.stat().st_size + 2 * tarfile.BLOCKSIZE for path in files)
            if stream.tell() + room + tarfile.RECORDSIZE > limit:
                left.append(folder.name)
                continue
            _add(tar, [(path, Path("jobs") / path.relative_to(asked.work / "jobs")) for path in files])
    content = stream.getvalue()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(content), size)):
        (asked.folder / PART.format(number)).write_bytes(content[start : start + size])
    return left


def unpack(asked: Unpack) -> None:
    parts = sorted(asked.folder.glob("queue.tar.*"))
    if not parts:
        raise InputError(f"{asked.folder} holds nothing that the queue has packed (no queue.tar.00).")
    places = {"results": asked.results, "logs": asked.work / "logs", "jobs": asked.work / "jobs"}
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
        for member in tar:
            room, _, name = member.name.partition("/")
            if room in places and member.isfile():
                member.name = name
                tar.extract(member, places[room], filter="data")


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _of_job(folder: Path) -> Iterator[Path]:
    """All files of a job but older checkpoints."""
    for path in _files(folder):
        newest = max(path.parent.glob(CHECKPOINTS), default=path)
        if not path.match(CHECKPOINTS) or path == newest:
            yield path


def _add(tar: tarfile.TarFile, files: Iterable[tuple[Path, Path]]) -> None:
    for path, name in files:
        tar.add(path, str(name))


if __name__ == "__main__":
    chosen = tyro.extras.subcommand_cli_from_dict({"pack": Pack, "unpack": Unpack}, description=__doc__)
    if isinstance(chosen, Unpack):
        unpack(chosen)
    else:
        for name in pack(chosen):
            print(f"{name} did not fit: it begins anew elsewhere")
