"""What every reader takes and gives, whatever it reads.

A reader finds the columns of a recording and says what its source knows of them. It checks nothing about the numbers:
`score_rl.data.loading` completes what it found, and `make_dataset` refuses what cannot be used.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from score_rl.data.columns import Bounds
from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.trajectories import Recorded
from score_rl.errors import InputError


class Request(NamedTuple):
    """What is asked of a reader, beside the name."""

    transitions: int | None  # of a data set that is recorded on request; others are shortened after reading
    seed: int  # of such a recording
    cache: Path  # the folder for files that are fetched or recorded
    progress: bool  # whether to show a progress bar


@dataclass(frozen=True)
class Recording:
    """What a reader found: the columns as they are stored, and what the source says of them."""

    columns: Mapping[str, np.ndarray]  # named as the arguments of `make_dataset`
    origin: Mapping[str, Any]  # JSON-able; stored beside every result
    label: str  # a task's name in it tells the environment, if nothing else does
    environment: str | None = None  # "none": it is known that there is none
    names_module: bool = False  # whether the reader itself says which module knows the environment; no file may
    action_bounds: Bounds | None = None
    labels: Labels = NO_LABELS
    recorded: Recorded | None = None  # of a saved data set: what was known before rows were dropped


@dataclass(frozen=True)
class NamedDataset:
    """One data set that has a name."""

    name: str
    environment: str
    rows: int
    origin: str  # the server, or that it is recorded on this machine
    file: Path  # where it is, or will be, cached
    cached: bool


@dataclass(frozen=True)
class Reader:
    """One kind of source."""

    read: Callable[[str, Request], Recording]  # takes a path, or a name without what stands before the colon
    names: Callable[[Path], list[NamedDataset]] = lambda cache: []  # every name it knows, given the cache folder
    takes_transitions: bool = False  # whether it gives as many rows as are asked for


def refuse_unprintable(path: Path) -> None:
    """Runs are called by the name of their file."""
    if not path.stem.isprintable():
        raise InputError(f"{path.name!r} cannot be printed, and runs are called by it: rename the file.")


def file_facts(path: Path) -> dict[str, Any]:
    """What a stored result says of the file that its data came from."""
    return {"path": str(path), "bytes": path.stat().st_size, "file_sha256": file_checksum(path)}


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, computed once for as long as the file stays as it is."""
    status = path.stat()
    return _checksum(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _checksum(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
