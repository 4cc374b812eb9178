"""Where downloaded and built files live, and how a file comes into being whole or not at all."""

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from score_rl.errors import InputError


def cache_folder(cache: Path | None = None) -> Path:
    """The folder given, else $SCORE_RL_CACHE, else score-rl in the platform's folder for caches."""
    if cache is not None:
        return Path(cache)
    if chosen := os.environ.get("SCORE_RL_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "score-rl"


@contextmanager
def whole_file(path: Path, expected_bytes: int) -> Iterator[Path]:
    """A temporary name beside `path` to write to: renamed to `path` when the block succeeds, removed when it fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writable(path, expected_bytes):
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writable(path: Path, expected_bytes: int) -> Iterator[None]:
    """Make the folder for `path`; turn a full or forbidden disk into one sentence, before writing where possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path.parent).free
        if free < expected_bytes:
            raise InputError(
                f"{path} needs {expected_bytes / 1e6:.0f} MB and the disk has {free / 1e6:.0f} MB left: "
                "free some space or set SCORE_RL_CACHE to a folder on another disk."
            )
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            raise InputError(
                f"no space was left on the disk while writing {path}: "
                "free some space or set SCORE_RL_CACHE to a folder on another disk."
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            raise InputError(
                f"{path} cannot be written ({error.strerror}): "
                "choose another place, for cached files with SCORE_RL_CACHE."
            ) from error
        raise
