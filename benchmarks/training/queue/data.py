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
from score_rl.data.sources.replica import replica_path
from score_rl.disk import cache_folder


def file_of(data: DataFolder, name: str) -> Path:
    """Where a data set lies once it is collected. The file appears when it is whole."""
    stored = stored_name(name)
    if stored.startswith("replica:"):
        return replica_path(cache_folder(), stored.removeprefix("replica:"), data.transitions, 0)
    return data.out / f"{stored}.hdf5"


def start_collecting(data: DataFolder, names: Iterable[str], logs: Path) -> dict[str, "subprocess.Popen[bytes]"]:
    """A process for each data set that is not there yet; each writes a log."""
    processes = {}
    for name in dict.fromkeys(names):
        if file_of(data, name).exists():
            continue
        command = [sys.executable, "-m", "benchmarks.training.queue.data", name]
        command += ["--sources", str(data.sources), "--out", str(data.out)]
        command += ["--transitions", str(data.transitions)] if data.transitions else []
        with (logs / f"data-{name}.log").open("ab") as log:
            processes[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    return processes


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
    asked = tyro.cli(Arguments, description=__doc__)
    asked.out.mkdir(parents=True, exist_ok=True)
    DataFolder(asked.sources, asked.out, asked.transitions).collect([asked.name])
