"""One thing of OGBench's table, in a process of its own: record a family's data, or train and store one job."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import score_rl
from benchmarks.training.ogbench_jobs import (
    ALL_TASKS,
    BASELINES,
    FAMILY_NAMES,
    FIELD,
    Length,
    OGBenchJob,
    as_trial,
    baseline_job,
    chosen_job,
    dataset_name,
    grid_job,
    results_folder,
)
from benchmarks.training.sharing import refuse_idle_gpu
from benchmarks.training.storing import described, store, store_what_was_reached, trained
from score_rl.data.catalogue import load_dataset
from score_rl.data.sources.ogbench import FAMILIES
from score_rl.errors import InputError, Stopped
from score_rl.report.results import RunResult
from score_rl.report.stored_results import SUMMARY, read_stored
from score_rl.run.sources import OtherDataError

GRID, CHOSEN = "score-grid", "score-chosen"
MEASURED = Path(__file__).parents[1] / "results"  # of this checkout


@dataclass(frozen=True)
class Arguments:
    out: Path
    """Folder for runs and data; results go to OUT/results/JOB."""
    families: tuple[str, ...] = FAMILY_NAMES
    """In the order in which they are trained."""
    methods: tuple[str, ...] = (*BASELINES, GRID, CHOSEN)
    """Methods of the table; score-chosen begins when score-grid has ended."""
    protocol: Literal["own", "field"] = "own"
    """field: 1 M updates, 8 seeds, 50 episodes every 100,000 updates, whatever the next five say."""
    seeds: int = 3
    """Runs of each method on each task."""
    steps: int = 300_000
    """Updates."""
    grid_steps: int = 100_000
    """Updates of SCORE's grid, which has one seed."""
    evaluations: int = 6
    """Along each curve."""
    episodes: int = 15
    """Of each evaluation."""
    seconds: float = float("inf")
    """Stop everything after so long."""
    at_once: int = 8
    """Trainings that share the device."""
    memory_share: float = 0.2
    """Of the GPU's memory, for each training at most."""
    transitions: int | None = None
    """Rows of each data set; the published number unless given."""
    tasks: tuple[int, ...] = ALL_TASKS
    """Of each family; the grid has only the default task."""
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers instead of the field's. With other widths, tasks or rows than the table's, results
    are stored as trials, which enter no table of scores."""
    record_only: bool = False
    """Record the data and train nothing."""
    only: str | None = None
    """Used by the command itself: do one thing, record:FAMILY or train:FAMILY:METHOD."""

    @property
    def length(self) -> Length:
        if self.protocol == "field":
            return FIELD
        return Length(self.steps, self.evaluations, self.episodes, tuple(range(self.seeds)))

    def length_of(self, method: str) -> Length:
        return Length(self.grid_steps, self.evaluations, self.episodes, (0,)) if method == GRID else self.length

    @property
    def is_trial(self) -> bool:
        return bool(self.hidden) or self.transitions is not None or set(self.tasks) != set(ALL_TASKS)


def place(asked: Arguments, name: str) -> Path:
    """Where a task works. Its log and the mark of its end lie beside it. Another length is another place."""
    what, family, *method = name.split(":")
    parts = [what, family, *method]
    if what == "train":
        length = asked.length_of(method[0])
        parts += [f"{length.steps}x{len(length.seeds)}"]
        parts += ["tasks", *map(str, asked.tasks)] if set(asked.tasks) != set(ALL_TASKS) else []
        parts += ["hidden", *map(str, asked.hidden)] if asked.hidden else []
    parts += [f"{asked.transitions}-rows"] if asked.transitions is not None else []
    return asked.out / "-".join(parts)


def log_of(asked: Arguments, name: str) -> Path:
    return place(asked, name).with_suffix(".log")


def mark_of(asked: Arguments, name: str) -> Path:
    """The file that says that a task has ended."""
    return place(asked, name).with_suffix(".ended")


def record(asked: Arguments, family: str) -> None:
    load_dataset(dataset_name(family, FAMILIES[family].default_task), transitions=asked.transitions)


def job_of(asked: Arguments, family: str, method: str) -> OGBenchJob:
    job = _as_the_table_has_it(asked, family, method)
    return as_trial(job, asked.tasks, asked.hidden) if asked.is_trial else job


def _as_the_table_has_it(asked: Arguments, family: str, method: str) -> OGBenchJob:
    length = asked.length_of(method)
    if method == GRID:
        return grid_job(family, length)
    if method == CHOSEN:
        grid = job_of(asked, family, GRID)
        return chosen_job(family, length, stored_runs(asked, grid))
    return baseline_job(family, method, length)


def stored_runs(asked: Arguments, job: OGBenchJob) -> list[RunResult]:
    """What is stored of a job: here, or in this checkout; nothing if neither holds it."""
    for folder in (results_folder(asked.out, job), MEASURED / job.folder):
        if (folder / SUMMARY).exists():
            return read_stored(folder)
    return []


def is_stored(asked: Arguments, family: str, method: str) -> bool:
    """Whether the job has been trained in full, on whatever machine."""
    if method == CHOSEN and not stored_runs(asked, job_of(asked, family, GRID)):
        return False
    job = job_of(asked, family, method)
    return amount(stored_runs(asked, job)) >= job.updates


def amount(runs: list[RunResult]) -> int:
    """Updates of all runs that ended, or diverged."""
    return sum(run.steps for run in runs if run.finished or run.status == "diverged")


def train(asked: Arguments, family: str, method: str) -> bool:
    """Train the job, or go on with it, and store it; whether it came to its end."""
    refuse_idle_gpu()
    job, folder = job_of(asked, family, method), place(asked, f"train:{family}:{method}")
    if folder.exists() and not (folder / "experiment.json").exists():
        shutil.rmtree(folder)  # it was killed before anything was trained
    try:
        try:
            experiment = _begun_or_continued(asked, job, folder)
        except OtherDataError as error:
            print(f"{error} The job begins anew: these data were recorded on another machine.", flush=True)
            shutil.rmtree(folder)
            experiment = _begun_or_continued(asked, job, folder)
    except Stopped:
        return False
    print(f"{job.folder}: {described(store(experiment, results_folder(asked.out, job), about=job.about))}", flush=True)
    return True


def _begun_or_continued(asked: Arguments, job: OGBenchJob, folder: Path) -> score_rl.Experiment:
    return trained(
        folder,
        job.datasets,
        steps=job.length.steps,
        evaluations=job.length.evaluations,
        eval_episodes=job.length.episodes,
        transitions=asked.transitions,
        checkpoint_minutes=2.0,
        tensorboard=False,
        **job.options,
    )


def store_reached(asked: Arguments, family: str, method: str) -> None:
    """Store a stopped training as the shorter one it is, up to where all its runs were judged.

    What is stored already stays if it is more.
    """
    folder = place(asked, f"train:{family}:{method}")
    if not (folder / "experiment.json").exists():
        return
    job = job_of(asked, family, method)
    results = results_folder(asked.out, job)
    before = amount(read_stored(results)) if (results / SUMMARY).exists() else 0
    try:
        experiment = score_rl.load(folder)
    except InputError as error:
        print(f"{job.folder}: {error}", flush=True)
        return
    runs = store_what_was_reached(experiment, results, about=job.about, more_than=before)
    print(f"{job.folder}, stopped at {runs[0].steps if runs else 0}: {described(runs)}", flush=True)
