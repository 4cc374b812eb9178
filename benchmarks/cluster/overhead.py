"""What a cluster costs beside training: the same fleet here, and as a task.

`python -m benchmarks.cluster.overhead --on processes:1 --steps 20000`. The caches are warm in both.

CPU time is of all processes, and so tells little of Ray, whose workers are nobody's children; wall time is of the
command. What a task costs does not depend on how long it trains, but for a progress file every two seconds.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPTIONS = (
    "--dataset replica:hopper-medium --transitions 20000 --environment none --seeds 0 1 2 3 --config.hidden 128,128 "
    "--config.batch-size 128 --log-every 500 --eval-every 1000 --precision float32 --no-tensorboard --quiet"
)


def timed(arguments: list[str]) -> tuple[float, float]:
    """Seconds of the clock and of all cores."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", "from score_rl.cli import main; main()", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="processes:1")
    parser.add_argument("--steps", type=int, default=10_000)
    asked = parser.parse_args()
    print(f"{asked.steps:,} updates on {asked.on}, load average {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for warm in (True, False):  # the first pair fills the caches
            steps = 1_000 if warm else asked.steps
            shared = ["train", *OPTIONS.split(), "--steps", str(steps)]
            name = Path(scratch) / str(steps)
            for where, on in (("here", []), ("as a task", ["--on", asked.on])):
                wall, used = timed([*shared, "--out", f"{name}-{len(on)}", *on])
                said = "filling caches, " if warm else ""
                print(f"{said}{where}: {wall:.1f} s, {used:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
