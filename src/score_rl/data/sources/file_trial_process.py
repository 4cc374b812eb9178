"""A process that reads files to see whether that ends: started by `file_trial`, and by nobody else.

It is told a reader, a path and what else is asked in a line. It says what the reader answers, a line for each answer,
and a word when it has survived the file. Each answer is followed by a line that says: go on. It waits for that before
the next answer, and works on this meanwhile.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

BYTES_A_SECOND = 10 << 20  # of processor time: gunzipping is ten times as fast
MEMORY, MEMORY_TIMES = 1 << 30, 110  # bytes, and so many times the file's size
CRASHED = 70  # an exit status


def _main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print into the answers
    for line in sys.stdin:
        reader, name, *request = json.loads(line)
        path, read = Path(name), _find(reader)
        _limit(path.stat().st_size, int(sys.argv[1]))
        try:
            may_say = True
            for answer in read(path, *request) or ():
                if not may_say:
                    sys.stdin.readline()
                answers.write(json.dumps(answer).encode() + b"\n")
                answers.flush()
                may_say = False
            if not may_say:
                sys.stdin.readline()
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a library that is written in Rust stops at an error of its own
            os._exit(CRASHED)
        answers.write(b"survived\n")
        answers.flush()


def _find(reader: str) -> Callable[..., Iterable[Any] | None]:
    """What `refuse_fatal` was given. Its module imports what it needs, before memory is limited."""
    module, _, name = reader.partition(":")
    found: Callable[..., Iterable[Any] | None] = getattr(importlib.import_module(module), name)
    return found


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
