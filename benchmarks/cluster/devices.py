"""What several devices of one machine give: the same fleet on one, two and four of them.

`python -m benchmarks.cluster.devices` forces host devices, which share the cores of this machine. With GPUs,
`--counts 1 2 4 8 --gpus` shows as many of them to each measurement.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.cluster.storing import store

RUNS, WINDOW = 16, 100
MEASURING = """
import sys
import jax
from benchmarks.cluster.simulation import small_dataset
from score_rl.algorithms.registry import get_algorithm
from score_rl.cluster.speed import seconds_of_update
from score_rl.engine.runs import Run
from score_rl.algorithms.settings import make_config
algorithm, data = get_algorithm("score"), small_dataset()
config = make_config(algorithm, {"hidden": (64, 64), "batch_size": 64})
runs = [Run(str(n), algorithm, data, n, config) for n in range(int(sys.argv[1]))]
print(len(jax.local_devices()), min(seconds_of_update(runs, int(sys.argv[2]), "float32") for _ in range(3)))
"""


def measured(count: int, gpus: bool) -> tuple[int, float]:
    """Devices that were used, and updates per second of each run; the best of three tries."""
    own = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(count)))} if gpus else {}
    if not gpus:
        own["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}".strip()
    command = [sys.executable, "-c", MEASURING, str(RUNS), str(WINDOW)]
    said = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True).stdout.split()
    return int(said[-2]), 1 / float(said[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--gpus", action="store_true", help="devices are GPUs of this machine")
    parser.add_argument("--out", type=Path, help="JSON file for the numbers, added to what is in it")
    asked = parser.parse_args()
    print(f"{RUNS} runs of SCORE, networks 64x64, batch 64; load average {os.getloadavg()[0]:.1f}")
    rates = {}
    for count in asked.counts:
        devices, rate = measured(count, asked.gpus)
        rates[str(devices)] = rate
        print(f"{devices} devices: {rate:,.1f} updates/s of each run")
    about = {"runs": RUNS, "updates per second of each run": rates, "load average": os.getloadavg()[0]}
    store(asked.out, "GPUs" if asked.gpus else "forced host devices", about)


if __name__ == "__main__":
    main()
