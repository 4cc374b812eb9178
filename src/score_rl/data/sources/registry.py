"""Readers by what stands before the colon of a name, or by how the name of a file ends.

A module is imported when its reader is asked for.
"""

import importlib
from pathlib import Path

from score_rl.data.sources.reader import Reader

MODULES = {
    "replica": "score_rl.data.sources.replica",
    "d4rl": "score_rl.data.sources.d4rl",
    "ogbench": "score_rl.data.sources.ogbench",
    "minari": "score_rl.data.sources.minari",
    ".hdf5": "score_rl.data.sources.hdf5",
    ".h5": "score_rl.data.sources.hdf5",
}
ANY_FILE = ".hdf5"  # files with another ending are read as this
OF_FOLDERS = "minari"
PREFIXES = tuple(key for key in MODULES if not key.startswith("."))


def is_named(dataset: str) -> bool:
    """Whether this is the name of a data set. Otherwise it is the path of a file."""
    prefix, colon, _ = dataset.partition(":")
    return bool(colon) and prefix in PREFIXES


def get_reader(key: str) -> Reader:
    """The reader of names with this prefix, or of files with this ending."""
    module = importlib.import_module(MODULES[key])
    reader = module.READER
    assert isinstance(reader, Reader)
    return reader


def file_reader(path: Path) -> Reader:
    """The reader of a file, or of a folder: those are Minari's."""
    if path.is_dir():
        return get_reader(OF_FOLDERS)
    ending = path.suffix.lower()
    return get_reader(ending if ending in MODULES else ANY_FILE)
