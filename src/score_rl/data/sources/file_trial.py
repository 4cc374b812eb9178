"""Whether the library for a format survives a file: it is read in a process that may fail.

The libraries for HDF5 and Parquet are not written in Python. A damaged or hostile file can make one loop for ever, take
all memory or crash, and no Python code could stop it. So a file that nobody vouches for is read in a process with
limits on time and memory: once before it is read here (`refuse_fatal`), or there alone (`answers_about`). The process
is kept for the next file.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from score_rl.errors import InputError

SECONDS = 5  # of processor time, for a small file
SECONDS_WITHOUT_LIMITS = 600.0  # of any time for an answer, where the system has no such limits
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # more count as memory
DONE = b"survived\n"
ENDLESS = "does not come to an end"
_idle: "list[subprocess.Popen[bytes]]" = []  # processes that wait for a file


def refuse_fatal(path: Path, format: str, reader: str) -> None:
    """Refuse a file on which the library for its format does not end, or ends the process.

    `reader` is what reads all of a file, "package.module:function". It must leave errors that are met again to others.
    """
    status = path.stat()
    problem = _problem(path.absolute(), reader, status.st_size, status.st_mtime_ns)
    if problem is not None:
        raise _damaged(path, format, problem)


def answers_about(path: Path, format: str, reader: str, *request: Any) -> Iterator[Any]:
    """What a reader answers about a file. It works on the next answer while this one is used.

    The reader takes the path and the request, and yields answers that JSON can hold. A file that it does not survive is
    refused, as by `refuse_fatal`, when it comes to that.
    """
    try:
        yield from _answers(path.absolute(), reader, request)
    except _FatalError as error:
        raise _damaged(path, format, str(error)) from None


class _FatalError(Exception):
    """What became of a process that read a file."""


def _damaged(path: Path, format: str, problem: str) -> InputError:
    return InputError(f"{path} is damaged, and the {format} library {problem} on it: fetch or build it again.")


@lru_cache
def _problem(path: Path, reader: str, size: int, modified: int) -> str | None:
    """What becomes of a process that reads the file; None if it survives. Asked once for as long as the file stays."""
    try:
        for _ in _answers(path, reader, ()):
            pass
    except _FatalError as error:
        return str(error)
    return None


def _answers(path: Path, reader: str, request: Sequence[Any]) -> Iterator[Any]:
    process, is_done = _ready(), False
    try:
        _tell(process, json.dumps([reader, os.fspath(path), *request]))
        while (line := _heard(process)) != DONE:
            yield json.loads(line)
            _tell(process, "")
        is_done = True
    finally:
        if is_done:
            _idle.append(process)
        else:
            _end(process)


def _ready() -> "subprocess.Popen[bytes]":
    """A process that waits for a file: one that is there, or a new one."""
    while _idle:
        process = _idle.pop()
        if process.poll() is None:
            return process
        _end(process)
    return _started()


def _started() -> "subprocess.Popen[bytes]":
    source = str(Path(__file__).resolve().parents[3])
    there = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "score_rl.data.sources.file_trial_process", str(SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=there | ONE_THREAD,
        start_new_session=True,  # Ctrl-C is for who started it
    )


def _tell(process: "subprocess.Popen[bytes]", line: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, and gives no answer
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


def _heard(process: "subprocess.Popen[bytes]") -> bytes:
    """The next line that it says."""
    assert process.stdout is not None
    if sys.platform != "win32" and not select.select([process.stdout], [], [], SECONDS_WITHOUT_LIMITS)[0]:
        raise _FatalError(ENDLESS)
    line = process.stdout.readline()
    if line:
        return line
    code = process.wait()
    if code == -getattr(signal, "SIGXCPU", 0):
        raise _FatalError(ENDLESS)
    raise _FatalError("takes all memory" if code in (1, -9) else "crashes")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):
            stream.close()


def end_idle() -> None:
    """End the processes that wait for a file."""
    while _idle:
        _end(_idle.pop())


atexit.register(end_idle)
