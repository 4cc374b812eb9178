"""A folder that this user may not enter: somebody else's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """As in a folder of another user's. Root may enter all folders, so it is somebody else meanwhile."""
    before, user = folder.stat().st_mode, os.geteuid()
    folder.chmod(0)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(user)
        folder.chmod(before)
