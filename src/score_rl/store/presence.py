"""The disk of a training, which may be away for a while: a network that breaks off, a plug that is pulled.

Whoever writes to the folder of an experiment asks here. While the folder is not there, or the system says that its disk
is gone, the write is tried again. Nothing is made in its place: where a disk is unmounted, the same path leads to
another one.
"""

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from score_rl.errors import InputError

T = TypeVar("T")
Say = Callable[[str], None]
MARK = "experiment.json"  # it is in every folder in which something is written
PATIENCE, PAUSE = 600.0, 1.0  # seconds
AWAY = {
    getattr(errno, name)
    for name in ("EIO", "ENOENT", "ESTALE", "ENOTCONN", "EHOSTDOWN", "EHOSTUNREACH", "ETIMEDOUT", "ENODEV", "ENXIO")
    if hasattr(errno, name)
} | {errno.EROFS}  # what a file system becomes that has met errors


class Presence:
    """Whether the folder of an experiment is there. Without `wait`, nothing is tried twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._say: Say | None = None

    def wait(self, say: Say) -> None:
        """From here on, wait for the disk where it is away."""
        self._say = say

    def write(self, action: Callable[[], T]) -> T:
        """Do what writes to the folder. What it raises otherwise is raised."""
        if self._say is None:
            return action()
        began, told = time.monotonic(), False
        while True:
            problem = self._problem()
            if problem is None:
                try:
                    found = action()
                except (OSError, InputError) as error:
                    problem = _away(error)
                    if problem is None:
                        raise
                else:
                    if told:
                        self._say(f"{self._folder} is back.")
                    return found
            if time.monotonic() - began > PATIENCE:
                self._say = None  # whoever ends now need not wait again
                raise InputError(
                    f"{self._folder} has been away for {PATIENCE / 60:.0f} minutes ({problem}); bring its disk back, "
                    "then go on with `resume`."
                )
            if not told:
                self._say(f"{self._folder} is away ({problem}); training waits for it, {PATIENCE / 60:.0f} minutes.")
                told = True
            time.sleep(PAUSE)

    def _problem(self) -> str | None:
        try:
            (self._folder / MARK).stat()
        except OSError as error:
            return error.strerror
        return None


def _away(error: OSError | InputError) -> str | None:
    """What the system said, if it means that a disk is away."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.strerror if isinstance(cause, OSError) and cause.errno in AWAY else None
