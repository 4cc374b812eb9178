"""Two versions of the code beside each other: how fast fleets of the one and of the other train, in one run.

    git worktree add /tmp/before 2a3adbc
    python -m benchmarks.speed.versions --before /tmp/before --called 0.1.0 --out benchmarks/results/speed/h200.json

Each version has a process of its own. Both compile, then take turns, a fleet at a time. Who begins changes from round
to round. The ratio of a round compares turns that follow each other, so a busy machine slows both. A third process has
the earlier version again. Its ratio to the first one is the noise.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import tyro

from .arguments import say
from .timing import Results, median

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Arguments:
    before: Path
    """A checkout of the earlier version."""
    called: str
    """What the earlier version is called in tables."""
    now: Path = ROOT
    """A checkout of the later version."""
    fleets: tuple[str, ...] = ("score:15", "score:75", "td3-bc:15", "cql:15", "iql:15")
    """METHOD:RUNS of each fleet."""
    rounds: int = 7
    """How often all take their turn."""
    seconds: float = 0.6
    """About how long a turn is."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products, as for `score train`."""
    limit: float = 170.0
    """Seconds after which no further round begins; the rounds so far are stored."""
    out: Path | None = None
    """The JSON file to merge the figures into."""


class Version:
    """A process with the fleets of one version."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name, self._process = name, process

    def compiled(self, fleets: Sequence[str]) -> list[dict[str, Any]]:
        """What it says of each fleet, when all are compiled."""
        return [self._answer() for _ in fleets]

    def turn(self, fleet: int) -> float:
        """Let it work for a while; run-steps per second."""
        asking = cast(IO[str], self._process.stdin)
        asking.write(f"{fleet}\n")
        asking.flush()
        return float(self._answer()["rate"])

    def _answer(self) -> dict[str, Any]:
        line = cast(IO[str], self._process.stdout).readline()
        if not line:
            raise SystemExit(f"the process of {self.name} ended; its message stands above")
        return cast(dict[str, Any], json.loads(line))


@contextmanager
def started(name: str, tree: Path, asked: Arguments) -> Iterator[Version]:
    worker = Path(__file__).with_name("version_worker.py")
    command = [sys.executable, str(worker), str(tree), str(asked.seconds), asked.precision, *asked.fleets]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        try:
            yield Version(name, process)
        finally:
            process.terminate()


def ratios(rates: dict[str, list[float]], of: str) -> list[float]:
    """By round, how many times as fast as `before` it was."""
    return [after / before for after, before in zip(rates[of], rates["before"], strict=True)]


def figures(asked: Arguments, about: dict[str, list[dict[str, Any]]], rates: list[dict[str, list[float]]]) -> Any:
    """What is stored: of each fleet the rates, the ratios and their spread."""
    fleets = []
    for number, fleet in enumerate(asked.fleets):
        measured = rates[number]
        later, same = ratios(measured, "now"), ratios(measured, "before again")
        fleets.append(
            {
                "fleet": fleet,
                "run_steps_per_second": {name: median(values) for name, values in measured.items()},
                "rounds": measured,
                "times": median(later),
                "times_by_round": later,
                "noise_by_round": same,
                "bytes": {name: answers[number]["bytes"] for name, answers in about.items()},
                "precision": {name: answers[number]["precision"] for name, answers in about.items()},
            }
        )
    what = f"updates of {asked.called} and of this code in turns; the noise is {asked.called} beside itself"
    return {"what": what, "before": asked.called, "fleets": fleets}


def main(asked: Arguments) -> None:
    began = time.perf_counter()
    results = Results(asked.out)
    trees = {"before": asked.before, "now": asked.now, "before again": asked.before}
    with ExitStack() as stack:
        versions = [stack.enter_context(started(name, tree.resolve(), asked)) for name, tree in trees.items()]
        about = {version.name: version.compiled(asked.fleets) for version in versions}
        say(f"compiled after {time.perf_counter() - began:.0f} s")
        rates: list[dict[str, list[float]]] = [{name: [] for name in trees} for _ in asked.fleets]
        for number in range(asked.rounds):
            if number and time.perf_counter() - began > asked.limit:
                say(f"no time left for rounds {number + 1} to {asked.rounds}")
                break
            for fleet, measured in enumerate(rates):
                for version in versions if number % 2 == 0 else reversed(versions):
                    measured[version.name].append(version.turn(fleet))
            results.keep("versions", figures(asked, about, rates))
    for entry in figures(asked, about, rates)["fleets"]:
        low, high = min(entry["noise_by_round"]), max(entry["noise_by_round"])
        say(
            f"{entry['fleet']}: {entry['times']:.3f} times as fast as {asked.called}; "
            f"{asked.called} beside itself {low:.3f} to {high:.3f}"
        )
    say(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
