"""A file that this package recorded into the cache, and the checksum of its content beside it.

FILE            the recording
FILE.sha256     its SHA-256, as `sha256sum` writes and checks it

A recording is used only where its content has this checksum. Whatever else is there was damaged, or changed, or is from
a version that wrote no checksum: that is said, and the recording is made anew.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from score_rl.data.sources.reader import file_checksum
from score_rl.disk import private_folder, write_file

DIGITS = re.compile(r"[0-9a-f]{64}")


@contextmanager
def sealing(path: Path) -> Iterator[Path]:
    """Where to write the file. It gets its name at the end, after its checksum lies where it belongs.

    So a process that looks meanwhile, since two record the same, finds no file or one with its checksum.
    """
    private_folder(path.parent)
    unsealed = path.with_name(f".{path.stem}.{os.getpid()}.unsealed{path.suffix}")
    try:
        yield unsealed
        write_file(seal_path(path), f"{file_checksum(unsealed)}  {path.name}\n")
        unsealed.replace(path)
    finally:
        unsealed.unlink(missing_ok=True)


def seal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def broken_seal(path: Path) -> str | None:
    """Why the content of a file that is there cannot be trusted; None if it is what was recorded."""
    if path.is_symlink() or not path.is_file():
        return "it is no ordinary file"
    if hasattr(os, "geteuid") and path.stat().st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    try:
        found = DIGITS.match(seal_path(path).read_text(errors="replace"))
    except OSError:
        found = None
    if found is None:
        return f"no checksum lies beside it, in {seal_path(path).name}"
    if file_checksum(path) != found[0]:
        return "its content has another checksum than when it was recorded"
    return None
