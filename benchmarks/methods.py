"""Train methods on re-collected medium data of the three tasks, and keep their curves.

    python benchmarks/methods.py --sources FOLDER --out FOLDER --jobs td3-bc:1000000:5:all iql:200000:2:hopper

FOLDER of the sources holds D4RL's *_medium-v2.hdf5, whole or excerpts: only the policies inside are used. A job is
METHOD:UPDATES:SEEDS:TASKS; its results are kept as soon as it ends.
"""

import csv
import json
import time
from dataclasses import dataclass
from pathlib import Path

import tyro
from keep import TASKS, draw, keep, summarise

import score_rl
from score_rl.data.collect import recollect


@dataclass(frozen=True)
class Arguments:
    sources: Path
    """Where halfcheetah_medium-v2.hdf5, hopper_medium-v2.hdf5 and walker2d_medium-v2.hdf5 are."""
    out: Path
    """Folder for data and runs; results go to OUT/results/METHOD."""
    jobs: tuple[str, ...]
    """METHOD:UPDATES:SEEDS:TASKS, TASKS being all or names with + between them."""
    transitions: int = 1_000_000
    evaluations: int = 20
    """How many along each curve."""
    seconds: float = float("inf")
    """Start no job after so long."""
    paper: Path | None = None
    """The paper's table (dataset, algorithm, mean, std), to draw its value beside the curves."""


def paper_cells(table: Path | None, title: str) -> dict[str, float]:
    if table is None:
        return {}
    with table.open() as file:
        return {
            f"{row['dataset'].removesuffix('-v2')}-recollected": float(row["mean"])
            for row in csv.DictReader(file)
            if row["algorithm"].lower() == title.lower()
        }


def main(asked: Arguments) -> None:
    began = time.perf_counter()
    files = {task: asked.out / f"{task}-medium-recollected.hdf5" for task in TASKS}
    asked.out.mkdir(parents=True, exist_ok=True)
    for job in asked.jobs:
        if time.perf_counter() - began > asked.seconds:
            print(f"no time left for {job}", flush=True)
            continue
        method, steps, seeds, tasks = job.split(":")
        chosen = TASKS if tasks == "all" else tuple(tasks.split("+"))
        for task in chosen:
            if not files[task].exists():
                recollect(asked.sources / f"{task}_medium-v2.hdf5", files[task], transitions=asked.transitions, seed=0)
        started = time.perf_counter()
        experiment = score_rl.train(
            [str(files[task]) for task in chosen],
            algorithm=method,
            seeds=range(int(seeds)),
            steps=int(steps),
            eval_every=int(steps) // asked.evaluations,
            out=asked.out / f"{method}-{tasks}",
        )
        seconds = time.perf_counter() - started
        title = experiment[0].algorithm.title
        cells = paper_cells(asked.paper, title)
        summary = summarise(experiment) | {
            "what": f"{title} on re-collected medium data, last policy, normalised score in percent",
            "paper": {name: mean for name, mean in cells.items() if name in experiment.about["datasets"]},
            "seconds_training_and_evaluating": seconds,
        }
        folder = asked.out / "results" / f"{method}-{tasks.replace('+', '-')}"
        names = ("evaluation/score", *(f"train/{name}" for name in experiment[0].algorithm.headline))
        keep(experiment, summary, folder, names)
        draw(folder, f"{title} on re-collected medium data", tuple((n, n.split("/")[1]) for n in names), cells)
        shown = {k: (v["mean"], v["std"]) for k, v in summary["results"].items()}
        print(f"{job}: {json.dumps(shown)} in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
