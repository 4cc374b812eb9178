"""How fast OGBench's data are recorded on this machine: the table of docs/ogbench.md.

    python -m benchmarks.speed.recording --transitions 50000 --out benchmarks/results/speed/FILE.json

Each recording is made by as many processes as there are cores, and removed unless `--keep` is given. The time counts
all of it: starting the processes, recording, and joining their parts. `make tables` puts the figures into the document.
"""

import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

from score_rl.data.collection.oracle_recording import oracle_versions, record_oracles
from score_rl.data.sources.ogbench import FAMILIES, STEPS, recorded_file, taken_apart
from score_rl.data.sources.sealed_file import sealing
from score_rl.disk import cache_folder
from score_rl.envs.interface import available_cores

from .arguments import say
from .timing import Results


@dataclass(frozen=True)
class Arguments:
    recordings: tuple[str, ...] = ("cube-single-play",)
    """Recordings without "ogbench:", such as scene-play."""
    transitions: int = 50_000
    """Rows of each, rounded up to whole episodes."""
    keep: bool = False
    """Leave the recordings in the cache, where data sets of their names find them."""
    out: Path | None = None
    """The JSON file to merge the figures into."""


def measured(recording: str, transitions: int, keep: bool = False) -> dict[str, object]:
    """Record so many rows once, and say how long it took."""
    asked = taken_apart(f"{recording}-singletask")
    episodes = -(-transitions // (STEPS - 1))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = recorded_file(recording, cache_folder() if keep else Path(folder), episodes, 0)
        path.parent.mkdir(parents=True, exist_ok=True)
        with sealing(path) as unsealed:
            record_oracles(unsealed, asked.recorded_as(), episodes, 0, label=f"recording {recording}", progress=False)
        seconds, size = time.perf_counter() - began, path.stat().st_size
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = episodes * (STEPS - 1)
    return {
        "what": "recording with OGBench's oracles, from the start of the processes to the finished file",
        "rows": rows,
        "published_rows": FAMILIES[asked.environment].episodes * (STEPS - 1),
        "seconds": seconds,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "processes": available_cores(),
        "bytes": size,
        "versions": oracle_versions(),
    }


def main(asked: Arguments) -> None:
    results = Results(asked.out)
    for recording in asked.recordings:
        figures = measured(recording, asked.transitions, asked.keep)
        results.keep("recording", figures, recording)
        say(f"{recording}: {figures['rows']} rows in {figures['seconds']:.0f} s")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
