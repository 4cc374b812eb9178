"""One process at a time trains in a folder, and others can see whether it still does.

The operating system locks a small file and unlocks it when the process ends, however it ends. Where there are no such
locks (Windows, some network disks), nothing is known and nothing is refused.

The package `filelock` does worse here: it fails on a network disk without locks (ENOLCK, EOPNOTSUPP), and it has no
shared lock, so that who only looks needs permission to write and can keep training from starting. It would lock on
Windows, which this module does not.
"""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from score_rl.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILE = "training.lock"
ATTEMPTS, PAUSE = 5, 0.1  # in seconds


@contextmanager
def held(folder: Path, name: str = FILE) -> Iterator[None]:
    """Hold the lock of a folder. Refused while another process has it: both would write the same files."""
    try:
        file = _opened(folder / name, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise InputError(f"cannot write into {folder} ({error.strerror}).") from error
    with file:
        if not _locked_in_time(file.fileno()):
            file.seek(0)
            raise InputError(f"{folder} is being trained{_told(file.read())}; wait for it, or stop it first.")
        with suppress(OSError):  # a full disk: then nobody is told who it is
            file.truncate(0)
            file.write(json.dumps({"process": os.getpid(), "machine": platform.node()}) + "\n")
            file.flush()
        yield


def is_held(folder: Path, name: str = FILE) -> bool | None:
    """Whether a process trains in a folder. None where that cannot be known: on another machine, or without locks."""
    try:
        with _opened(folder / name, os.O_RDONLY) as file:
            if _read(file.read()).get("machine") != platform.node():
                return None
            got = _lock(file.fileno(), shared=True)
            return None if got is None else not got
    except OSError:
        return None


def _opened(path: Path, how: int) -> IO[str]:
    """The lock's file; no link is followed, and no pipe is waited for: a stranger may have packed the folder."""
    safely = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    number = os.open(path, how | safely, 0o666)
    return os.fdopen(number, "r" if how == os.O_RDONLY else "r+", errors="replace")


def _lock(number: int, *, shared: bool) -> bool | None:
    """Try to lock an open file: False if another process has it, None where there are no locks.

    Closing the file unlocks it.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a disk without locks
        return None
    return True


def _locked_in_time(number: int) -> bool:
    """False if another process keeps the lock. One that only looks has it for a moment, so this tries again."""
    for _ in range(ATTEMPTS):
        if _lock(number, shared=False) is not False:
            return True
        time.sleep(PAUSE)
    return False


def _read(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # being written just now, or by somebody else
        return {}
    return found if isinstance(found, dict) else {}


def _told(text: str) -> str:
    holder = _read(text)
    return f" by process {holder['process']} on {holder['machine']}" if {"process", "machine"} <= holder.keys() else ""
