"""Train one job of the queue, judge its last policies in fresh episodes and store its results.

    python -m benchmarks.training.queue.one FOLDER     of the job, below the queue's folder

It goes on where the job stands, waits for data that are still being collected, and stops in good order at SIGTERM.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import score_rl
from benchmarks.training.sharing import refuse_idle_gpu, stop_with_parent
from benchmarks.training.storing import fresh_scores, store_what_was_reached, trained, with_fresh_scores
from score_rl.errors import Stopped
from score_rl.report.results import SPEED, read_experiment
from score_rl.report.stored_results import store_results
from score_rl.run.experiment import Experiment
from score_rl.run.sources import OtherDataError
from score_rl.store.folder import EXPERIMENT

from .conditions import Conditions
from .data import file_of
from .fleets import JOB_FILE, Job

INTERRUPTED = 3  # exit code
RUN = "run"  # the experiment's folder in that of its job
WINDOWS_OF_ITERATIONS = 5  # between evaluations, of a method whose steps take seconds: a stop waits for one


def main(folder: Path) -> int:
    """The exit code."""
    conditions = Conditions.read(folder.parent.parent)
    job = Job.from_json(json.loads((folder / JOB_FILE).read_text()))
    refuse_idle_gpu()
    _wait_for_data(conditions, job)
    try:
        experiment = _trained(folder / RUN, conditions, job)
    except Stopped as stopped:
        print(stopped, flush=True)
        store_what_was_reached(score_rl.load(folder / RUN), conditions.unfinished / job.name)
        return INTERRUPTED
    scores = fresh_scores(experiment, conditions.fresh_episodes) if conditions.fresh_episodes else {}
    _store(experiment, conditions.results / job.name, conditions, scores)
    shutil.rmtree(conditions.unfinished / job.name, ignore_errors=True)
    return 0


def _wait_for_data(conditions: Conditions, job: Job) -> None:
    """Another process collects them. Importing JAX meanwhile saves some seconds of a GPU."""
    while not all(file_of(conditions.data, name).exists() for name in job.datasets):
        time.sleep(0.2)


def _trained(folder: Path, conditions: Conditions, job: Job) -> Experiment:
    try:
        return _begun_or_continued(folder, conditions, job)
    except OtherDataError as error:
        print(f"{error} The job begins anew: these data were collected on another machine.", flush=True)
        shutil.rmtree(folder)
        return _begun_or_continued(folder, conditions, job)


def _begun_or_continued(folder: Path, conditions: Conditions, job: Job) -> Experiment:
    each = job.line.algorithm.counts_as
    every = max(1, min(conditions.evaluate_every, job.line.updates) // each)
    if folder.exists() and not (folder / EXPERIMENT).exists():
        shutil.rmtree(folder)  # it was killed before anything was trained
    return trained(
        folder,
        [conditions.data.source(name) for name in job.datasets],
        steps=job.line.steps,
        evaluations=job.line.steps // every,
        eval_episodes=conditions.evaluation_episodes,
        log_every=max(1, every // WINDOWS_OF_ITERATIONS) if each > 1 else None,
        algorithm=job.line.method,
        config=job.line.given(),
        seeds=job.seeds,
        transitions=conditions.transitions,
        checkpoint_minutes=2.0,
        tensorboard=False,
    )


def _store(experiment: Experiment, folder: Path, conditions: Conditions, scores: dict[str, float]) -> None:
    """All that training measured, at every evaluation: a run that ends ruined is looked at later, elsewhere."""
    runs = with_fresh_scores(read_experiment(experiment.folder.path), conditions.fresh_episodes, scores)
    names = sorted({name for run in runs for name in run.curves if name.startswith("train/")})
    store_results(runs, folder, ("evaluation/score", *names, SPEED), experiment.spec.eval_every)


def pin(cores: Sequence[int]) -> None:
    """Leave the other cores to the jobs beside this one."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(cores))


if __name__ == "__main__":
    stop_with_parent()
    pin([int(core) for core in os.environ.get("QUEUE_CORES", "").split(",") if core])
    sys.exit(main(Path(sys.argv[1])))
