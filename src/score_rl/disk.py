"""Where downloaded and built files live, and the one way in which this package writes a file: whole or not at all."""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path

from score_rl.errors import InputError, MachineError

ANOTHER_CACHE = "free some space or set SCORE_RL_CACHE to a folder on another disk"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR)
TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)
PRIVATE, OTHERS = 0o700, 0o077  # what a folder of the cache allows, and what it never does


def cache_folder(cache: Path | None = None) -> Path:
    """The folder given, else $SCORE_RL_CACHE, else score-rl in the platform's folder for caches."""
    if cache is not None:
        return Path(cache)
    if chosen := os.environ.get("SCORE_RL_CACHE"):
        return Path(chosen).expanduser()
    return user_cache_path("score-rl", appauthor=False, opinion=False)


def private_folder(folder: Path) -> Path:
    """A folder of the cache, made if it is not there: its user's, and nobody else can read or write in it.

    Whoever can write into the cache can put programs there that this user then runs. So a folder of somebody else is
    refused, and one that others could reach is closed to them.
    """
    with disk_errors(folder, if_full=ANOTHER_CACHE):
        for place in (*reversed(folder.parents), folder):
            with suppress(FileExistsError):
                place.mkdir(mode=PRIVATE)
        status = folder.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise MachineError(f"{folder} is no folder: remove it, or set SCORE_RL_CACHE to another place.")
        if not hasattr(os, "geteuid"):  # Windows: folders of a user are closed to others
            return folder
        if status.st_uid != os.geteuid():
            raise MachineError(
                f"{folder} belongs to {_user(status.st_uid)}, and nothing of another user's cache is trusted: set "
                "SCORE_RL_CACHE to a folder of your own."
            )
        if stat.S_IMODE(status.st_mode) & OTHERS:
            folder.chmod(PRIVATE)
    return folder


def is_there(path: Path) -> bool:
    """Whether a file of a cache can be seen. What lies in somebody else's is not there for this user."""
    try:
        return path.exists()
    except OSError:
        return False


def _user(number: int) -> str:
    """Who that is, as far as this machine knows."""
    try:
        import pwd

        return f"user {pwd.getpwuid(number).pw_name}"
    except (ImportError, KeyError):
        return f"user number {number}"


def write_file(path: Path, content: bytes | str, *, if_full: str = "free some space") -> None:
    """Replace a file in one step: readers see the old one or the new one, never a part of it.

    `if_full` is what a user should do where the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, if_full=if_full) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path, size: int = 0, *, if_full: str = ANOTHER_CACHE) -> Iterator[Path]:
    """A temporary name beside `path` to write to. It replaces `path` when the block ends, and goes if the block fails.

    `size` is how many bytes are to come, as far as that is known.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with disk_errors(path, if_full=if_full):
        make_room(path, size)
        try:
            yield temporary
            put_in_place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def put_in_place(temporary: Path, path: Path) -> None:
    """Give a whole file its name.

    Its content is on the disk before it has the name, so that a power cut leaves the old file or the new one.
    """
    _flush(temporary)
    temporary.replace(path)
    if sys.platform != "win32":  # there, folders cannot be flushed
        _flush(path.parent)


def make_room(path: Path, size: int) -> None:
    """Make the folder for a file of so many bytes; refuse a disk that is too small for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise MachineError(
            f"{path} needs {size / 1e6:.0f} MB and the disk has {free / 1e6:.0f} MB left: {ANOTHER_CACHE}."
        )


@contextmanager
def disk_errors(path: Path, *, if_full: str) -> Iterator[None]:
    """Turn a full or forbidden disk into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL or "No space left" in str(error):  # HDF5's errors have no number
            raise MachineError(f"no space was left on the disk while writing {path}: {if_full}.") from error
        if error.errno in TOO_MANY_OPEN:
            raise MachineError(too_many_open(path)) from error
        if error.errno in FORBIDDEN:
            raise MachineError(
                f"{path} cannot be written ({error.strerror}): "
                "choose another place, for cached files with SCORE_RL_CACHE."
            ) from error
        raise


def too_many_open(path: Path) -> str:
    return (
        f"{path} cannot be opened: too many files are open; raise the limit (ulimit -n), or train fewer runs at once."
    )


def read_own(path: Path, advice: str) -> str:
    """The text of a file in a folder of results, which a stranger may have packed.

    A link is not followed: it could name any file of this machine, and a report would show what that holds.
    """
    if path.is_symlink():
        raise InputError(f"{path} is a link, and none is followed here; put the file itself there.")
    try:
        if not path.is_file():
            raise InputError(f"{path} is no ordinary file; {advice}.")
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged (it is no text, from byte {error.start} on); {advice}.") from error
    except OSError as error:
        if error.errno in TOO_MANY_OPEN:
            raise InputError(too_many_open(path)) from error
        raise InputError(f"{path} cannot be read ({error.strerror}); {advice}.") from error


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
