"""Put the stored figures of clusters into docs/cluster.md.

python -m benchmarks.cluster.tables           rewrite the tables
python -m benchmarks.cluster.tables --check   exit code 1 where the document differs from what is stored
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.speed.cells import table
from score_rl.paper.evidence.documents import refresh, report_stale, with_tables

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "cluster"
DOCUMENT = ROOT / "docs" / "cluster.md"


def stored(name: str) -> dict[str, Any]:
    """The figures of a benchmark, by what was measured."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def overhead() -> str:
    rows = [
        [
            f"`--on {on}`",
            f"{found['once, s']:.1f} s",
            f"{found['a fleet, s']:.1f} s",
            f"{found['while training, share']:.1%}",
            f"{found['of a fleet of 10 minutes, share']:.1%}",
            f"{found['of a fleet of 10 minutes that is alone, share']:.1%}",
        ]
        for on, found in stored("overhead").items()
    ]
    headings = ["", "once", "each fleet", "while training", "a fleet of 10 minutes", "if it is alone"]
    return table(headings, rows) + f"\n\n{measured_on('overhead')}"


def simulation() -> str:
    (found,) = stored("simulation").values()
    seconds = found["driver, s of CPU"]
    hours = found["hours of the cluster"]
    said = {
        "driver": f"{seconds:.0f} s of CPU in {60 * hours:.0f} minutes of the cluster, "
        f"{found['driver, share of a core']:.1%} of a core; {found['memory of driver and fake, MB'] / 1e3:.1f} GB",
        "`experiment.json`": f"{found['experiment.json, MB']:.1f} MB",
        f"a checkpoint of a fleet of {found['largest fleet']} runs": f"{found['a checkpoint of a fleet, GB']:.2f} GB "
        f"({found['a run in a checkpoint, MB']:.1f} MB a run of SCORE, from the shapes of its state)",
        "checkpoints": f"{found['checkpoints a second']:.1f} a second, {found['written, GB/s']:.1f} GB/s at one a "
        f"minute and fleet; {found['on storage, GB'] / 1e3:.1f} TB on storage",
        "`metrics.csv`": f"{found['reading metrics.csv, rows']:,} rows, {found['metrics.csv, MB']:.0f} MB; read in "
        f"{found['reading metrics.csv, s of CPU']:.1f} s of CPU and "
        f"{found['reading metrics.csv, MB more of memory'] / 1e3:.1f} GB",
    }
    heading = f"for {found['runs']:,} runs on {found['gpus']} GPUs, {found['machines lost']} lost"
    return (
        table(["what", heading], [[what, value] for what, value in said.items()]) + f"\n\n{measured_on('simulation')}"
    )


def devices() -> str:
    (found,) = stored("devices").values()
    speeds: dict[str, float] = found["updates per second of each run"]
    rows = [[number, f"{speed:.0f}", f"{speed / speeds['1']:.2f} ×"] for number, speed in speeds.items()]
    return table(["devices", "updates/s of each run", "as fast"], rows) + f"\n\n{measured_on('devices')}"


def measured_on(name: str) -> str:
    """The machines and the code of a file's figures."""
    said = {
        f"{each['provenance']['cores']} cores ({each['provenance']['processor']}), code "
        f"{each['provenance']['code'][:9]}"
        for each in stored(name).values()
    }
    return f"Measured on {'; '.join(sorted(said))}."


TABLES: dict[str, Callable[[], str]] = {"overhead": overhead, "simulation": simulation, "devices": devices}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing")
    asked = parser.parse_args()
    stale = refresh([DOCUMENT], lambda text, _: with_tables(text, "cluster", TABLES), change=not asked.check)
    return report_stale(stale, ROOT, "make tables" if asked.check else None)


if __name__ == "__main__":
    raise SystemExit(main())
