"""A process that reads HDF5 files to see whether that ends: started by `hdf5_trial`, and by nobody else.

It is told one path a line, and says a word for each file that it survives.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from score_rl.data.sources.hdf5 import read_everything

BYTES_A_SECOND = 10 << 20  # of processor time: gunzipping is ten times as fast
MEMORY, MEMORY_TIMES = 1 << 30, 110  # bytes, and so many times the file's size


def _main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print into the answers
    for line in sys.stdin:
        path = Path(json.loads(line))
        _limit(path.stat().st_size, int(sys.argv[1]))
        read_everything(path)
        answers.write(b"survived\n")
        answers.flush()


def _limit(size: int, least_seconds: int) -> None:
    """Processor time and memory from here on."""
    try:
        import resource
    except ImportError:  # Windows
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(usage.ru_utime + usage.ru_stime) + 1 + least_seconds + size // BYTES_A_SECOND
    _set(resource, resource.RLIMIT_CPU, seconds)
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _set(resource, resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY + MEMORY_TIMES * size)


def _set(resource: Any, which: int, soft: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    _main()
