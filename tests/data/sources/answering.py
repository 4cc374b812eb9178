"""Readers for `file_trial`, run in its process."""

import os
from collections.abc import Iterator
from pathlib import Path


def lines(path: Path, most: int) -> Iterator[str]:
    """Some lines of a text, and after them the process's number."""
    yield from path.read_text().splitlines()[:most]
    yield str(os.getpid())


def crash(path: Path) -> Iterator[str]:
    """An answer, and then none."""
    yield path.name
    os._exit(70)
