"""What is trained for docs/ogbench.md: methods, settings and data sets, and how SCORE's settings are chosen.

The rule of choice, written down before there were numbers. SCORE's grid is trained on an environment's default task
alone (task 2 of cubes and scenes, task 4 of puzzles), as the field chooses settings. The settings whose last two
evaluations have the highest mean win, over all seeds. Of equals the first in the grid's order wins. It is chosen twice:
with a penalty (β > 0) and without (β = 0). Both are then trained on all five tasks.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.sources.ogbench import FAMILIES, TASKS
from score_rl.report.results import SCORE, RunResult

FAMILY_NAMES = ("cube-single", "scene", "cube-double", "puzzle-3x3", "puzzle-4x4")  # in the order of value
NETWORKS: dict[str, Any] = {"hidden": (512, 512, 512, 512)}  # of the field; IQL, ReBRAC and FQL have theirs as presets
NORMALISED: dict[str, Any] = {**NETWORKS, "critic_norm": True}
BASELINES: dict[str, dict[str, Any]] = {
    "score": NORMALISED,
    "fql": {},
    "rebrac": {},
    "iql": {},
    "td3-bc": NORMALISED,
    "bc": NETWORKS,
}
GRID: dict[str, tuple[float, ...]] = {
    "alpha": (0.1, 0.3, 1.0, 2.5),
    "beta": (0.0, 0.2, 0.5, 1.0),
    "bc_decay": (1.0, 0.98),
}
LAST = 2  # evaluations that a choice is made by
TRIAL = "trial"  # what the table does not ask for: other networks, fewer tasks or fewer rows
ALL_TASKS = tuple(range(1, TASKS + 1))


@dataclass(frozen=True)
class Length:
    """How long a job trains, and how it is judged."""

    steps: int
    evaluations: int
    episodes: int
    seeds: tuple[int, ...]


# The field's: it reports the mean over the evaluations at 800,000, 900,000 and 1 M updates.
FIELD = Length(steps=1_000_000, evaluations=10, episodes=50, seeds=tuple(range(8)))


@dataclass(frozen=True)
class OGBenchJob:
    """One training: runs of a method on some of a family's tasks that are stored together."""

    family: str
    name: str  # bc, iql, ..., score-grid, score-chosen
    method: str
    settings: dict[str, Any]
    tasks: tuple[int, ...]
    length: Length
    variants: tuple[dict[str, float], ...] = ()
    about: dict[str, Any] = field(default_factory=dict)  # beside the request, in what is stored

    @property
    def folder(self) -> str:
        trial = f"-{TRIAL}" if self.about.get(TRIAL) else ""
        return f"ogbench-{self.family}-{self.name}{trial}"

    @property
    def updates(self) -> int:
        """Of all runs."""
        grid = [len(value) for value in self.settings.values() if isinstance(value, list)]
        return self.length.steps * len(self.length.seeds) * len(self.tasks) * max(1, len(self.variants)) * prod(grid)

    @property
    def datasets(self) -> list[str]:
        return [dataset_name(self.family, task) for task in self.tasks]

    @property
    def options(self) -> dict[str, Any]:
        """What `score_rl.train` is told beside data and length."""
        variants = {"variants": list(self.variants)} if self.variants else {}
        return {"algorithm": self.method, "config": self.settings, "seeds": self.length.seeds, **variants}


def dataset_name(family: str, task: int) -> str:
    return f"ogbench:{family}-play-singletask-task{task}"


def baseline_job(family: str, method: str, length: Length) -> OGBenchJob:
    """A method as it is, with the field's networks, on all five tasks."""
    return OGBenchJob(family, method, method, BASELINES[method], ALL_TASKS, length)


def as_trial(job: OGBenchJob, tasks: Sequence[int], hidden: Sequence[int]) -> OGBenchJob:
    """The job on some of its tasks, and with networks of these widths if any are given: for small machines."""
    settings = {**job.settings, "hidden": tuple(hidden)} if hidden else job.settings
    kept = tuple(task for task in job.tasks if task in tasks)
    return replace(job, tasks=kept, settings=settings, about={**job.about, TRIAL: True})


def grid_job(family: str, length: Length) -> OGBenchJob:
    """SCORE's grid on the default task."""
    settings = {**NORMALISED, **{name: list(values) for name, values in GRID.items()}}
    tasks = (FAMILIES[family].default_task,)
    return OGBenchJob(family, "score-grid", "score", settings, tasks, length, about={"chooses_settings": True})


def chosen_job(family: str, length: Length, grid: Sequence[RunResult]) -> OGBenchJob:
    """SCORE with the settings that were chosen with a penalty, and with those chosen without one."""
    variants = (chosen_settings(grid, penalised=True), chosen_settings(grid, penalised=False))
    seeds = sorted({run.seed for run in grid})
    about = {"chosen_by_seeds": seeds}
    return OGBenchJob(family, "score-chosen", "score", NORMALISED, ALL_TASKS, length, variants, about)


def chosen_settings(grid: Sequence[RunResult], *, penalised: bool) -> dict[str, float]:
    """The grid's best settings among those with β > 0, or with β = 0."""
    candidates = [
        dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values()) if _has(values, penalised)
    ]
    return max(candidates, key=lambda settings: late_success(grid, settings))  # the first of equals


def late_success(grid: Sequence[RunResult], settings: dict[str, float]) -> float:
    """The mean of the last evaluations of the runs with these settings."""
    found = [
        float(run.curves[SCORE].values[-LAST:].mean())
        for run in grid
        if SCORE in run.curves and all(np.isclose(run.config[name], value) for name, value in settings.items())
    ]
    return float(np.mean(found)) if found else -1.0


def _has(values: tuple[float, ...], penalised: bool) -> bool:
    return (values[list(GRID).index("beta")] > 0) == penalised


def results_folder(out: Path, job: OGBenchJob) -> Path:
    return out / "results" / job.folder
