"""Fetches a large file. A broken download is resumed; the file is checked and appears whole or not at all."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from score_rl.data.progress_bar import byte_progress
from score_rl.data.sources.reader import file_checksum
from score_rl.disk import ANOTHER_CACHE, disk_errors, make_room, private_folder, put_in_place
from score_rl.errors import InputError

BLOCK = 1 << 20
TIMEOUT_S = 30.0
ATTEMPTS = 3  # connections that break off are resumed this many times in all


def fetch(url: str, path: Path, size: int, sha256: str, *, label: str, progress: bool) -> None:
    """Fetch `url` to `path`. After a failure the beginning stays beside it as `.part`, to be resumed."""
    part = path.with_name(path.name + ".part")
    with disk_errors(path, if_full=ANOTHER_CACHE), byte_progress(label, size, progress) as advance:
        private_folder(path.parent)
        make_room(path, size)
        if part.is_symlink() or (part.exists() and not part.is_file()):
            raise InputError(f"{part} is no ordinary file, and nothing is written through it: remove it.")
        if part.exists():
            if part.stat().st_size > size:  # not a beginning of this file
                part.unlink()
            else:
                advance(part.stat().st_size)
        for attempt in range(ATTEMPTS):
            try:
                _resume(url, part, size, advance)
            except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
                if _is_disk_error(error):
                    raise
                if attempt + 1 == ATTEMPTS or isinstance(error, urllib.error.HTTPError):
                    raise InputError(
                        f"{url} could not be fetched ({_reason(error)}): try again when the network is there, "
                        f"or put the file at {path} yourself."
                    ) from error
            if part.exists() and part.stat().st_size >= size:
                break
        _check(part, url, size, sha256)
        put_in_place(part, path)


def _resume(url: str, part: Path, size: int, advance: Callable[[int], None]) -> None:
    """Append the rest of the file to `part`, or begin again if the server cannot resume."""
    have = part.stat().st_size if part.exists() else 0
    if have == size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        if have and not resumed:
            advance(-have)
        with _opened(part, have if resumed else 0) as file:
            left = size - file.tell()
            while block := answer.read(min(BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    part.unlink()
                    raise InputError(
                        f"{url} sends more than the {size} bytes published, so it is not the file it should be: try "
                        "again, or get the file from another mirror."
                    )
                file.write(block)
                advance(len(block))


def _opened(part: Path, keep: int) -> BinaryIO:
    """The file to write on after so many bytes. A link in its place is not followed."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    file = os.fdopen(descriptor, "wb")
    file.truncate(keep)
    file.seek(keep)
    return file


def _check(part: Path, url: str, size: int, sha256: str) -> None:
    found = part.stat().st_size
    if found < size:
        raise InputError(
            f"{url} broke off after {found} of {size} bytes: run the same command again and it goes on from there."
        )
    if found != size or file_checksum(part) != sha256:
        part.unlink()
        raise InputError(
            f"{url} is not the file it should be ({found} bytes with another SHA-256 than the {size} bytes published), "
            "so it was removed: try again, or get the file from another mirror."
        )


def _is_disk_error(error: Exception) -> bool:
    return (
        isinstance(error, OSError)
        and not isinstance(error, urllib.error.URLError | ConnectionError | TimeoutError)
        and error.filename is not None
    ) or getattr(error, "errno", None) == 28


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__)
