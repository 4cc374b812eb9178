"""What a cluster costs beside training: the same fleets here, and as tasks.

    python -m benchmarks.cluster.overhead --on processes:1 --out benchmarks/results/cluster/overhead.json

Three trainings tell three costs apart: a short one of one fleet, a short one of several, and a long one of one fleet.

once            of an experiment: the driver connects, and asks machines about themselves
a fleet         its task starts, takes its data, and is gathered
while training  the share by which training itself takes longer: progress files, the driver's looks

Each is trained twice, and the first time fills the caches. The long one is trained once. CPU time is of all processes
that the command started and waited for, so not of Ray's. Wall time tells something only where nothing else runs.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
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


def timed(arguments: list[str]) -> dict[str, float]:
    """Seconds of the clock and of all cores."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", "from score_rl.cli import main; main()", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": time.perf_counter() - began, "cpu": used}


def costs(found: dict[str, dict[str, dict[str, float]]], kind: str) -> dict[str, float]:
    """From differences between tasks and this machine."""
    more = {name: case["tasks"][kind] - case["here"][kind] for name, case in found.items()}
    a_fleet = (more["several"] - more["one"]) / (MANY - 1)
    longer = found["long"]["here"][kind] - found["one"]["here"][kind]
    once, share = more["one"] - a_fleet, (more["long"] - more["one"]) / longer
    return {
        "once, s": once, "a fleet, s": a_fleet, "while training, share": share,
        "of a fleet of 10 minutes, share": a_fleet / FLEET + share,
        "of a fleet of 10 minutes that is alone, share": (once + a_fleet) / FLEET + share,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="processes:1")
    parser.add_argument("--steps", type=int, default=50_000, help="updates of the long training")
    parser.add_argument("--out", type=Path, help="JSON file for the numbers, added to what is in it")
    asked = parser.parse_args()
    cases = {"one": (1, SHORT), "several": (MANY, SHORT), "long": (1, asked.steps)}
    found: dict[str, dict[str, Any]] = {}
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as scratch:
        for warm in (True, False):
            for name, (fleets, steps) in cases.items():
                if warm and name == "long":
                    continue
                shared = ["train", *OPTIONS.split(), "--config.hidden", *hidden(fleets), "--steps", str(steps)]
                for where, on in (("here", []), ("tasks", ["--on", asked.on])):
                    out = Path(scratch) / f"{name}-{where}-{warm}"
                    took = timed([*shared, "--out", str(out), *on])
                    print(f"{'filling caches, ' if warm else ''}{name}, {where}: {took}", flush=True)
                    if not warm:
                        found.setdefault(name, {})[where] = took
                loads.append(os.getloadavg()[0])
    steps = {name: case[1] for name, case in cases.items()}
    result = {kind: costs(found, kind) for kind in ("wall", "cpu")}
    for kind, values in result.items():
        for name, value in values.items():
            print(f"{kind}: {name:<48} {value:.4f}")
    store(asked.out, asked.on, {"steps": steps, "measured": found, "load averages": loads, **result})


if __name__ == "__main__":
    main()
