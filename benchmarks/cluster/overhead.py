"""What a cluster costs beside training: the same fleets here, and as tasks.

    python -m benchmarks.cluster.overhead --on processes:1 --out benchmarks/results/cluster/overhead.json

Three trainings tell three costs apart: a short one of one fleet, a short one of several, and a long one of one fleet.

once            of an experiment: the driver connects, and asks machines about themselves
a fleet         its task starts, takes its data, and is gathered
while training  the share by which training itself takes longer: progress files, the driver's looks

Both train at the same time, each on half of the cores, which they exchange from round to round. So whatever slows the
machine slows both. A round before the first fills the caches. All that tasks need runs on their half: driver, workers
and Ray itself. Where training has the rest of a machine to itself, it costs less.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cluster.storing import store

OPTIONS = (
    "--dataset replica:hopper-medium --transitions 20000 --environment none --seeds 0 1 2 3 --config.batch-size 128 "
    "--log-every 500 --eval-every 1000 --precision float32 --no-tensorboard --quiet"
)
MANY = 4  # fleets of the second training
SHORT = 1_000  # updates
FLEET = 600.0  # seconds of the fleet for which the share is computed


def hidden(fleets: int) -> list[str]:
    """Networks of another size are another fleet."""
    return [f"{128 - 8 * number},128" for number in range(fleets)]


Times = dict[str, list[float]]  # of a training by where it ran, a number for each round


def timed(arguments: Sequence[str], cores: set[int]) -> float:
    """Seconds of the clock, on these cores."""
    command = [sys.executable, "-c", "from score_rl.cli import main; main()", *arguments]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    return time.perf_counter() - began


def halves() -> tuple[set[int], set[int]]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("both train at the same time: that takes two cores.")
    middle = len(cores) // 2
    return set(cores[:middle]), set(cores[middle : 2 * middle])


def costs(found: Mapping[str, Times]) -> dict[str, float]:
    """From the middle differences between tasks and this machine."""
    more = {name: median(t - h for t, h in zip(of["tasks"], of["here"], strict=True)) for name, of in found.items()}
    a_fleet = (more["several"] - more["one"]) / (MANY - 1)
    longer = median(found["long"]["here"]) - median(found["one"]["here"])
    once, share = more["one"] - a_fleet, (more["long"] - more["one"]) / longer
    return {
        "once, s": once, "a fleet, s": a_fleet, "while training, share": share,
        "of a fleet of 10 minutes, share": a_fleet / FLEET + share,
        "of a fleet of 10 minutes that is alone, share": (once + a_fleet) / FLEET + share,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="processes:1")
    parser.add_argument("--steps", type=int, default=20_000, help="updates of the long training")
    parser.add_argument("--rounds", type=int, default=4, help="an even number, so that both have each half as often")
    parser.add_argument("--out", type=Path, help="JSON file for the numbers, added to what is in it")
    asked = parser.parse_args()
    cases = {"one": (1, SHORT), "several": (MANY, SHORT), "long": (1, asked.steps)}
    found: dict[str, Times] = {name: {"here": [], "tasks": []} for name in cases}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as both:
        for number in range(-1, asked.rounds):
            for name, (fleets, steps) in cases.items():
                if number < 0 and name == "long":
                    continue
                shared = ["train", *OPTIONS.split(), "--config.hidden", *hidden(fleets), "--steps", str(steps)]
                folder = Path(scratch) / f"{name}-{number}"
                here = [*shared, "--out", str(folder / "here")]
                tasks = [*shared, "--out", str(folder / "tasks"), "--on", asked.on]
                took = list(both.map(timed, (here, tasks), halves()[:: -1 if number % 2 else 1]))
                print(f"round {number}, {name}: here {took[0]:.2f} s, as tasks {took[1]:.2f} s", flush=True)
                if number >= 0:
                    for where, seconds in zip(("here", "tasks"), took, strict=True):
                        found[name][where].append(seconds)
    lengths: dict[str, Any] = {name: case[1] for name, case in cases.items()}
    result = costs(found)
    for name, value in result.items():
        print(f"{name:<48} {value:.4f}")
    store(asked.out, asked.on, {"steps": lengths, "seconds": found, **result})


if __name__ == "__main__":
    main()
