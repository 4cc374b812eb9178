"""Train methods on the paper's data sets, and keep their curves.

    python benchmarks/methods.py --sources FOLDER --out FOLDER --jobs td3-bc:1000000:5:medium iql:200000:2:hopper-medium
    python benchmarks/methods.py --sources FOLDER --out FOLDER --jobs score:1000000:5:table

A job is METHOD:UPDATES:SEEDS:DATA, where METHOD may have settings after it (td3-bc,alpha=1.0); its results are kept as
soon as it ends, and again when its last policies have been judged in fresh episodes. DATA is `table` (all fifteen),
`medium` (the three), or names with + between them. Medium data are collected anew with the policies inside D4RL's
*_medium-v2.hdf5, which the folder of the sources holds, whole or as excerpts; random data are uniform; all others are
replicas; those of later jobs are collected while the first one trains. What was interrupted goes on when it is called
again; until then what it had reached is kept as a shorter run.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro
from keep import TASKS, draw, keep, summarise, trained

import score_rl
from score_rl.data.catalogue import load_dataset
from score_rl.data.recollect import recollect
from score_rl.data.sources.replica import KINDS
from score_rl.errors import Stopped
from score_rl.report.paper import printed


@dataclass(frozen=True)
class Arguments:
    sources: Path
    """Where halfcheetah_medium-v2.hdf5, hopper_medium-v2.hdf5 and walker2d_medium-v2.hdf5 are."""
    out: Path
    """Folder for data and runs; results go to OUT/results/METHOD."""
    jobs: tuple[str, ...]
    """METHOD:UPDATES:SEEDS:DATA, DATA being table, medium or names with + between them."""
    transitions: int | None = None
    """Rows of each data set; D4RL's number unless given."""
    evaluations: int = 20
    """How many along each curve."""
    seconds: float = float("inf")
    """Start no job after so long."""
    checkpoint_minutes: float = 1.0
    """Time between checkpoints."""
    episodes: int = 100
    """Fresh ones that the last policies are judged in at the end; 0 leaves that out."""
    collect: bool = False
    """Only collect the data of the jobs."""


def paper_cells(method: str, datasets: Iterable[str]) -> dict[str, float]:
    """The paper's mean for each of them, where it has one."""
    found = {name: printed(method, name) for name in datasets}
    return {name: cell.mean for name, cell in found.items() if cell is not None}


def called(name: str) -> str:
    return f"{name}-recollected" if name.endswith("-medium") else f"replica:{name}"


def chosen(data: str) -> list[str]:
    kinds = {"table": KINDS, "medium": ("medium",)}.get(data)
    return data.split("+") if kinds is None else [f"{task}-{kind}" for kind in kinds for task in TASKS]


def source(name: str, recordings: Path, out: Path, transitions: int | None = None) -> str:
    """What `score train --dataset` is given; collected anew where that is wanted."""
    if not name.endswith("-medium"):
        return called(name)
    file = out / f"{called(name)}.hdf5"
    if not file.exists():
        recorded = recordings / f"{name.replace('-', '_')}-v2.hdf5"
        recollect(recorded, file, transitions=transitions or 1_000_000, seed=0)
    return str(file)


def spelled(job: str) -> str:
    """As the name of a folder."""
    return re.sub(r"[:+,=_]", "-", job)


def with_settings(method: str) -> tuple[str, dict[str, Any]]:
    """`td3-bc,alpha=1.0` is TD3-BC with α = 1."""
    name, *settings = method.split(",")
    return name, {key: _value(text) for key, _, text in (setting.partition("=") for setting in settings)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text  # a word


def collect(asked: Arguments) -> None:
    """Have every job's data at hand, for processes that train at the same time."""
    for name in dict.fromkeys(name for job in asked.jobs for name in chosen(job.split(":")[3])):
        load_dataset(source(name, asked.sources, asked.out, asked.transitions), transitions=asked.transitions)


@contextmanager
def collected_ahead(asked: Arguments) -> Iterator[Callable[[], None]]:
    """The first job's data are there; another process collects what the others need while the first one trains. What
    comes out waits for it."""
    collect(replace(asked, jobs=asked.jobs[:1]))
    if not asked.jobs[1:]:
        yield lambda: None
        return
    command = [sys.executable, __file__, "--sources", str(asked.sources), "--out", str(asked.out), "--collect"]
    command += ["--transitions", str(asked.transitions)] if asked.transitions else []
    process = subprocess.Popen([*command, "--jobs", *asked.jobs[1:]])

    def wait() -> None:
        if process.wait():
            raise SystemExit("the data of the other jobs could not be collected; what was said of it is above")

    try:
        yield wait
    finally:
        process.terminate()
        process.wait()


def run(asked: Arguments, job: str) -> tuple[score_rl.Experiment, float]:
    """The job's experiment, and how long this call took for it."""
    method, steps, seeds, data = job.split(":")
    name, config = with_settings(method)
    sources = [source(each, asked.sources, asked.out, asked.transitions) for each in chosen(data)]
    started = time.perf_counter()
    experiment = trained(
        asked.out / spelled(job),
        sources,
        steps=int(steps),
        evaluations=asked.evaluations,
        algorithm=name,
        config=config,
        seeds=range(int(seeds)),
        transitions=asked.transitions,
        checkpoint_minutes=asked.checkpoint_minutes,
    )
    return experiment, time.perf_counter() - started


def main(asked: Arguments) -> None:
    began = time.perf_counter()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.collect:
        collect(asked)
        return
    with collected_ahead(asked) as wait:
        for number, job in enumerate(asked.jobs):
            if time.perf_counter() - began > asked.seconds:
                print(f"no time left for {job}", flush=True)
                continue
            if number:
                wait()
            try:
                experiment, seconds = run(asked, job)
            except Stopped as stopped:
                keep_what_was_reached(asked, job)
                raise SystemExit(f"{job}: {stopped}") from None
            for episodes in dict.fromkeys((0, asked.episodes)):
                summary = kept(asked, job, experiment, episodes, seconds)
            shown = {k: (v["mean"], v["std"]) for k, v in summary["results"].items()}
            print(f"{job}: {json.dumps(shown)} in {seconds:.0f} s", flush=True)


def keep_what_was_reached(asked: Arguments, job: str) -> None:
    """Until it goes on, an interrupted job is a shorter one: all runs up to where each of them was judged."""
    experiment = score_rl.load(asked.out / spelled(job))
    metrics = experiment.metrics
    running = [run for run in experiment if run.status.state != "diverged"]
    judged = [metrics.of(run.id).curve("evaluation/score")[0] for run in running]
    reached = min((int(steps[-1]) if len(steps) else 0 for steps in judged), default=0)
    if reached:
        kept(asked, job, experiment, 0, None, reached)


def kept(
    asked: Arguments,
    job: str,
    experiment: score_rl.Experiment,
    episodes: int,
    seconds: float | None,
    reached: int | None = None,
) -> dict[str, Any]:
    method = experiment[0].algorithm
    cells = paper_cells(method.name, experiment.record.datasets)
    summary = summarise(experiment, episodes, reached) | {
        "what": f"{method.title}, last policy, normalised score in percent",
        "paper": cells,
        "seconds_of_the_last_call": seconds,
    }
    folder = asked.out / "results" / spelled(job)
    names = ("evaluation/score", *(f"train/{name}" for name in method.headline))
    keep(experiment, summary, folder, names, reached)
    draw(folder, method.title, tuple((n, n.split("/")[1]) for n in names), cells)
    return summary


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
