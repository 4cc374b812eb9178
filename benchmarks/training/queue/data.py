"""The data sets of the queue: where each lies, and collecting those that are missing, side by side.

    python -m benchmarks.training.queue.data hopper-medium --sources FOLDER --out FOLDER    one data set

Medium sets are recorded with the policies in D4RL's own files, random sets with uniform actions.
"""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks.training.jobs import DataFolder, stored_name
from benchmarks.training.sharing import end_of, stop_with_parent
from score_rl.data.sources.replica import replica_path
from score_rl.disk import cache_folder

AT_ONCE = 3  # data sets that are collected side by side


def file_of(data: DataFolder, name: str) -> Path:
    """Where a data set lies once it is collected. The file appears when it is whole."""
    stored = stored_name(name)
    if stored.startswith("replica:"):
        return replica_path(cache_folder(), stored.removeprefix("replica:"), data.transitions, 0)
    return data.out / f"{stored}.hdf5"


class Collecting:
    """Data sets that are missing, collected in the order in which they are wanted, some of them side by side.

    Each is a process that writes a log. Where only a few share the cores, training can begin early.
    """

    def __init__(self, data: DataFolder, names: Iterable[str], logs: Path) -> None:
        self._data, self._logs = data, logs
        self._waiting = [name for name in dict.fromkeys(names) if not file_of(data, name).exists()]
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def go_on(self) -> dict[str, str]:
        """Start what there is room for. The data sets that could not be collected since the last call, and why."""
        failed = {}
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[name]
                if code:
                    failed[name] = end_of(self._log(name))
        while self._waiting and len(self._running) < AT_ONCE:
            name = self._waiting.pop(0)
            self._running[name] = self._start(name)
        return failed

    def end(self) -> None:
        for process in self._running.values():
            process.terminate()
            process.wait()

    def _start(self, name: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "benchmarks.training.queue.data", name]
        command += ["--sources", str(self._data.sources), "--out", str(self._data.out)]
        command += ["--transitions", str(self._data.transitions)] if self._data.transitions else []
        with self._log(name).open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _log(self, name: str) -> Path:
        return self._logs / f"data-{name}.log"


@dataclass(frozen=True)
class Arguments:
    name: Annotated[str, tyro.conf.Positional]
    """Of the data set, as the paper has it."""
    sources: Path
    """Where halfcheetah_medium-v2.hdf5 and its like are."""
    out: Path
    """Where medium sets go; random ones go to the cache."""
    transitions: int | None = None


if __name__ == "__main__":
    stop_with_parent()
    asked = tyro.cli(Arguments, description=__doc__)
    asked.out.mkdir(parents=True, exist_ok=True)
    DataFolder(asked.sources, asked.out, asked.transitions).collect([asked.name])
