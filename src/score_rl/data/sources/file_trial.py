"""Whether the library for a format survives a file: it is read in a process that may fail.

The libraries for HDF5 and Parquet are not written in Python. A damaged or hostile file can make one loop for ever, take
all memory or crash, and no Python code could stop it. So a file that nobody vouches for is read once in a process with
limits on time and memory. The process is kept for the next file.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from score_rl.errors import InputError

SECONDS = 5  # of processor time, for a small file
SECONDS_WITHOUT_LIMITS = 600.0  # of any time, where the system has no such limits
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # more count as memory
_asking = threading.Lock()
_process: "subprocess.Popen[bytes] | None" = None


def refuse_fatal(path: Path, format: str, reader: str) -> None:
    """Refuse a file on which the library for its format does not end, or ends the process.

    `reader` is what reads all of a file, "package.module:function". It must leave errors that are met again to others.
    """
    status = path.stat()
    problem = _problem(path.absolute(), reader, status.st_size, status.st_mtime_ns)
    if problem is not None:
        raise InputError(f"{path} is damaged, and the {format} library {problem} on it: fetch or build it again.")


@lru_cache
def _problem(path: Path, reader: str, size: int, modified: int) -> str | None:
    """What becomes of a process that reads the file; None if it survives. Asked once for as long as the file stays."""
    with _asking:
        process = _started()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps([reader, os.fspath(path)]).encode() + b"\n")
            process.stdin.flush()
        if sys.platform != "win32" and not select.select([process.stdout], [], [], SECONDS_WITHOUT_LIMITS)[0]:
            _end()
            return "does not come to an end"
        if process.stdout.readline():
            return None
        code = process.wait()
        _end()
    if code == -getattr(signal, "SIGXCPU", 0):
        return "does not come to an end"
    return "takes all memory" if code in (1, -9) else "crashes"


def _started() -> "subprocess.Popen[bytes]":
    global _process
    if _process is None or _process.poll() is not None:
        _end()
        source = str(Path(__file__).resolve().parents[3])
        there = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
        _process = subprocess.Popen(
            [sys.executable, "-m", "score_rl.data.sources.file_trial_process", str(SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=there | ONE_THREAD,
            start_new_session=True,  # Ctrl-C is for who started it
        )
        atexit.register(_end)
    return _process


def _end() -> None:
    global _process
    if _process is not None:
        _process.kill()
        _process.wait()
        for stream in (_process.stdin, _process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        _process = None
