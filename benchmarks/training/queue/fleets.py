"""Missing runs become jobs: runs of one shape, which train as one program, as many as can end in good time."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training.jobs import folder_name
from score_rl.algorithms.settings import is_traced
from score_rl.envs.tasks import TASKS, task_of

from .wanted import Wanted, WantedRun

JOB_FILE = "job.json"


@dataclass(frozen=True)
class Job:
    """Runs of one line of the table that train together: some of its data sets with some of its seeds."""

    line: Wanted
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> int:
        return len(self.datasets) * len(self.seeds)

    @property
    def name(self) -> str:
        """Such as cql-300k-hopper-medium-hopper-random-seeds-0-1-2; a folder has it."""
        method = ",".join([self.line.method, *self.line.settings.split()])
        length = f"{self.line.updates // 1000}k" if self.line.updates % 1000 == 0 else str(self.line.updates)
        seeds = "-".join(map(str, self.seeds))
        return folder_name(f"{method}:{length}:{'+'.join(self.datasets)}-seeds-{seeds}")

    def holds(self, run: WantedRun) -> bool:
        """Whether the run is one of its own, whatever else its line of the table asks for."""
        line = dataclasses.replace(self.line, datasets=run.line.datasets, seeds=run.line.seeds, weight=run.line.weight)
        return line == run.line and run.dataset in self.datasets and run.seed in self.seeds

    def halves(self) -> "list[Job]":
        """The same runs in two jobs, by data sets. The seeds of a cell stay together."""
        middle = (len(self.datasets) + 1) // 2
        parts = (self.datasets[:middle], self.datasets[middle:])
        return [dataclasses.replace(self, datasets=part) for part in parts if part]

    def to_json(self) -> dict[str, Any]:
        return {"line": dataclasses.asdict(self.line), "datasets": self.datasets, "seeds": self.seeds}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Job":
        line = stored["line"]
        return cls(
            Wanted(**{**line, "datasets": tuple(line["datasets"])}), tuple(stored["datasets"]), tuple(stored["seeds"])
        )


def form_jobs(
    runs: Iterable[WantedRun], seconds: Callable[[Job], float], longest: float, begun: Sequence[Job] = ()
) -> list[Job]:
    """Jobs for these runs, none of them estimated at more than `longest` seconds unless it is of one data set.

    A job that has begun stays as it is: its checkpoints are of those runs.
    """
    shapes: dict[Any, dict[str, list[int]]] = {}
    for run in (run for run in runs if not any(job.holds(run) for job in begun)):
        shapes.setdefault((run.line, *_shape(run)), {}).setdefault(run.dataset, []).append(run.seed)
    jobs = []
    for (line, *_), seeds_of in shapes.items():
        alike: dict[tuple[int, ...], list[str]] = {}
        for dataset, seeds in seeds_of.items():
            alike.setdefault(tuple(seeds), []).append(dataset)
        jobs += [Job(line, tuple(datasets), seeds) for seeds, datasets in alike.items()]
    return [part for job in jobs for part in fitting_parts(job, seconds, longest)]


def fitting_parts(job: Job, seconds: Callable[[Job], float], longest: float) -> list[Job]:
    """The job in parts that are estimated at no more than `longest` seconds, or are of one data set."""
    halves = job.halves()
    if seconds(job) <= longest or len(halves) == 1:
        return [job]
    return [part for half in halves for part in fitting_parts(half, seconds, longest)]


def begun_jobs(folder: Path) -> list[Job]:
    """Jobs whose folders are here: interrupted, or not stored yet."""
    return [Job.from_json(json.loads(file.read_text())) for file in sorted(folder.glob(f"*/{JOB_FILE}"))]


def _shape(run: WantedRun) -> tuple[Any, ...]:
    """Runs that agree in this train as one fleet, as in `engine.runs`."""
    task = TASKS[task_of(run.dataset) or ""]
    config = run.line.config(run.dataset)
    static = tuple(getattr(config, field.name) for field in dataclasses.fields(config) if not is_traced(field))
    return (task.observation_dim, task.action_dim, static)
