"""How fast `score data import` reads tables, and how much memory it takes.

    python -m benchmarks.speed.importing --rows 50_000_000 --formats csv parquet --out FILE

A table of made-up logs is written first, as the heating control of the tests would write it: an episode, a time, six
measurements, two actions and a reward, eleven columns and about 71 bytes a row. The command then runs in a process of
its own. The peak of its memory is what the system says of it (resident set, mapped files included).
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from .cells import table

BLOCK = 1_000_000  # rows that are made together
LENGTH = 96  # rows of an episode
OPTIONS = (
    "--episode trip --time t --observations temp* flow --actions valve pump --reward r "
    "--action-bounds 0 250 600 2400 --quiet"
)


@dataclasses.dataclass(frozen=True)
class Asked:
    """Measure the import of tables."""

    rows: int = 5_000_000
    formats: tuple[Literal["csv", "parquet"], ...] = ("csv", "parquet")
    shuffled: bool = False
    """Rows in no order: they are sorted on the disk."""
    out: Path | None = None
    """JSON file for the numbers, added to what is in it."""
    folder: Path | None = None
    """Where the table and the file are written; the system's folder for temporary files unless given."""


def main(asked: Asked) -> None:
    found = json.loads(asked.out.read_text()) if asked.out is not None and asked.out.exists() else {}
    with tempfile.TemporaryDirectory(prefix="score-import-", dir=asked.folder) as place:
        for kind in asked.formats:
            logs = Path(place) / f"logs.{kind}"
            write_table(logs, asked.rows, shuffled=asked.shuffled)
            numbers = measure(logs, Path(place) / "logs.hdf5", asked.rows)
            logs.unlink()
            name = f"{kind}, shuffled" if asked.shuffled else kind
            print(f"{name}: {json.dumps(numbers)}", flush=True)
            found[name] = numbers | stamp()
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


def write_table(path: Path, rows: int, *, shuffled: bool) -> None:
    """Made-up logs in blocks, so that they need little memory."""
    import polars as pl
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    with path.open("wb") as file:
        for first in range(0, rows, BLOCK):
            number = np.arange(first, min(rows, first + BLOCK))
            if shuffled:
                rng.shuffle(number)
            frame = pl.DataFrame(columns(number, rng))
            if path.suffix == ".csv":
                frame.write_csv(file, include_header=first == 0)
                continue
            block = frame.to_arrow()
            writer = writer or pq.ParquetWriter(file, block.schema)
            writer.write_table(block)
        if writer is not None:
            writer.close()


def columns(number: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The columns of these rows, with as many digits as a plant keeps."""
    step, count = number % LENGTH, len(number)
    made = {"trip": number // LENGTH, "t": 15 * step}
    for name, usual in (("temp_room", 19), ("temp_wall", 18), ("temp_supply", 41), ("temp_outside", 4)):
        made[name] = np.round(usual + np.sin(step / 9) + 0.1 * rng.normal(size=count), 3)
    made["temp_wanted"] = np.where(step < 48, 21.0, 17.0)
    made["flow"] = np.round(1850 + 300 * np.cos(step / 7) + rng.normal(size=count), 3)
    made["valve"] = np.round(rng.uniform(20, 240, count), 2)
    made["pump"] = np.round(rng.uniform(700, 2300, count), 2)
    made["r"] = np.round(-rng.exponential(size=count), 5)
    return made


def measure(logs: Path, out: Path, rows: int) -> dict[str, float]:
    """One import in a process of its own."""
    code = "from score_rl.cli import main; main()"
    command = [sys.executable, "-c", code, "data", "import", str(logs), *OPTIONS.split(), "--out", str(out)]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise RuntimeError(f"score data import ended with {os.waitstatus_to_exitcode(status)}")
    scale = 1 if sys.platform == "darwin" else 1024
    return {
        "rows": rows,
        "bytes": logs.stat().st_size,
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "peak_gib": round(used.ru_maxrss * scale / 2**30, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
    }


def importing_table(stored: Mapping[str, Any]) -> str:
    """The figures as docs/data.md has them."""
    rows = [
        [
            {"csv": "CSV", "parquet": "Parquet"}.get(name, name),
            f"{each['bytes'] / 1e9:.1f} GB",
            f"{each['seconds']:.1f} s: {each['rows_per_second'] / 1e6:.1f} million rows a second",
            f"{each['cpu_seconds']:.1f} s",
            f"{each['peak_gib']:.1f} GiB",
        ]
        for name, each in stored.items()
    ]
    provenance = next(iter(stored.values()))["provenance"]
    made = f"Measured on {provenance['cores']} cores ({provenance['processor']}), code {provenance['code'][:9]}."
    headings = ["table", "size", "by the clock", "processor's time", "peak of memory"]
    return table(headings, rows) + f"\n\n{made}"


def stamp() -> dict[str, object]:
    from score_rl.store.provenance import provenance

    return {"provenance": provenance()}


if __name__ == "__main__":
    main(tyro.cli(Asked))
