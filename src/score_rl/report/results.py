"""Runs as plain records, and the runs of an experiment's folder read as such records.

Every run is a record, whether it ended well or not. A run that failed, diverged or still trains is a record too, and
whoever averages must say over which. `stored_results.py` writes and reads the small tables that are kept of runs.
"""

import dataclasses
import functools
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from score_rl.envs.tasks import task_of
from score_rl.errors import InputError, as_read, printable
from score_rl.store.folder import Folder
from score_rl.store.judgements import DOUBTFUL, WORSE, PolicyJudgement, read_judgement
from score_rl.store.lock import is_held
from score_rl.store.records import RunStatus

SCORE, SUCCESS, RETURN, LENGTH, UNCERTAINTY, SPEED = (
    "evaluation/score",
    "evaluation/success",
    "evaluation/return",
    "evaluation/episode_length",
    "train/uncertainty",
    "speed/updates_per_second",
)
FINISHED = "finished"
GOING = ("training", "waiting")  # the rest of the states is bad news
MOST_ROWS = 10**8  # updates that are looked through for gaps
PATIENCE, WINDOWS = 900, 10  # a folder is silent after so many seconds and so many times what a window takes
LAST_EVALUATIONS = 5  # averaged beside a last policy, since a last policy is one draw


class Curve(NamedTuple):
    """One metric of one run over training."""

    steps: Int[np.ndarray, " points"]
    values: Float[np.ndarray, " points"]


@dataclasses.dataclass(frozen=True)
class RunResult:
    """One run: what it was, how far it came, what was measured."""

    folder: Path
    name: str
    algorithm: str
    dataset: str
    environment: str | None  # where it was judged; None: nowhere
    task: str | None  # halfcheetah, hopper or walker2d; None for everything else
    seed: int
    config: Mapping[str, Any]
    status: str  # finished, training, waiting, diverged, failed, interrupted, silent, missing
    step: int
    steps: int  # that were asked for
    curves: Mapping[str, Curve]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what tells its group from others
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # rows, checksum, behaviour policy
    request: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    created: str | None = None
    updated: float | None = None  # when its folder was last written, in seconds since 1970
    error: str | None = None  # why its experiment failed
    warning: str | None = None  # why its policy should not be trusted
    notes: tuple[str, ...] = ()  # warnings from before its training, of its experiment
    lost: str | None = None  # what of its measurements is missing
    fleet: int | None = None  # which program of its experiment trained it
    judged: PolicyJudgement | None = None  # what `score judge` said of its last policy
    fresh_scores: Mapping[int, float] = dataclasses.field(default_factory=dict)  # of its last policy, by fresh episodes

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    def last(self, name: str) -> float | None:
        """The newest value of a metric; None where it was never measured."""
        curve = self.curves.get(name)
        return float(curve.values[-1]) if curve is not None and len(curve.values) else None

    def late(self, name: str, number: int = LAST_EVALUATIONS) -> float | None:
        """The mean of the newest values of a metric, so many of them or all that there are."""
        curve = self.curves.get(name)
        return float(curve.values[-number:].mean()) if curve is not None and len(curve.values) else None

    @property
    def verdict(self) -> str | None:
        """What `score judge` said of its last policy, in words; None if it was not asked, or trained on since."""
        return None if self.judged is None or self.judged.step not in (None, self.step) else self.judged.verdict

    @property
    def is_suspect(self) -> bool:
        """Whether training or the judge has found that its policy must not be taken for a success."""
        return self.warning is not None or self.verdict in (WORSE, DOUBTFUL)

    @property
    def score(self) -> float | None:
        """The last normalised score in percent, whether the run has ended or not."""
        return self.last(SCORE)

    @property
    def chooses_settings(self) -> bool:
        """Whether it was trained only to choose settings by it: then its scores are no result."""
        return bool(self.request.get("chooses_settings"))

    @property
    def title(self) -> str:
        return algorithm_title(self.algorithm)


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed: what a mean is taken over."""

    algorithm: str
    dataset: str
    settings: Mapping[str, Any]
    runs: tuple[RunResult, ...]
    remark: str = ""  # what its name has to say beside that
    key: str = ""  # a shorter name, where that would be long

    @property
    def method(self) -> str:
        """What it is called."""
        return self.key or self.label

    @property
    def label(self) -> str:
        """The algorithm's title, and the settings that tell it from its other groups."""
        return method_label(self.algorithm, self.settings) + (f", {self.remark}" if self.remark else "")

    @property
    def finished(self) -> list[RunResult]:
        return [run for run in self.runs if run.finished]

    def measured(self, name: str) -> bool:
        """Whether any of its runs measured this metric."""
        return any(name in run.curves for run in self.runs)

    @property
    def others(self) -> list[RunResult]:
        """The runs that a mean over this group leaves out, and that have to be listed beside it."""
        return [run for run in self.runs if not run.finished]

    def final(self, name: str) -> Float[np.ndarray, " seeds"]:
        """The last values of a metric in the runs that finished: the last policy is the result."""
        values = [run.last(name) for run in self.finished]
        return np.array([value for value in values if value is not None])

    def late(self, name: str) -> Float[np.ndarray, " seeds"]:
        """The mean of the last evaluations of each run that finished: less of a draw than the result beside it."""
        values = [run.late(name) for run in self.finished]
        return np.array([value for value in values if value is not None])


@functools.cache
def algorithm_title(name: str) -> str:
    """How the algorithm is written; its name where this version does not know it."""
    from score_rl.algorithms.registry import get_algorithm

    try:
        return get_algorithm(name).title
    except InputError:
        return name


def method_label(algorithm: str, settings: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name}={_short(value)}" for name, value in settings.items())
    return algorithm_title(algorithm) + (f" ({shown})" if shown else "")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return printable("×".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


# -- reading ---------------------------------------------------------------------------------------------------------


def read_experiment(path: Path) -> list[RunResult]:
    """The runs of an experiment's folder, also while it trains."""
    folder = Folder.open(path)
    record = folder.experiment()
    try:
        status = folder.status()
        curves = curves_of((row.run, row.name, row.step, row.value) for row in folder.metrics())
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} cannot be read ({error}); restore it, or leave it out.") from error
    requests = {asked.name: record.request.alone(asked.name) for asked in record.request.algorithms}
    datasets = {name: dataset.to_json() for name, dataset in record.datasets.items()}
    judged, said = record.request.environment, read_judgement(path)
    verdicts = {} if said is None else said.runs
    files = (path / "experiment.json", folder.metrics_path, path / "status.json")
    updated = max(file.stat().st_mtime for file in files if file.exists())
    held = is_held(path)
    silent = time.time() - updated > _patience(record.request.log_every, curves) if held is None else not held
    results = []
    for run in record.runs:
        entry = status.runs.get(run.id)
        environment = None if judged == "none" else judged or run.environment
        mine = curves.get(run.id, {})
        stands = _status(status.state, entry)
        results.append(
            RunResult(
                folder=path,
                name=run.id,
                algorithm=run.algorithm,
                dataset=run.dataset,
                environment=environment,
                task=task_of(environment or run.environment or run.dataset),
                seed=run.seed,
                config=run.config,
                status="silent" if silent and stands in GOING else stands,
                step=max(entry.step if entry else 0, _measured_to(mine)),
                steps=record.request.steps,
                curves=mine,
                data=datasets.get(run.dataset, {}),
                request=requests[run.algorithm],
                provenance=record.provenance,
                created=record.created,
                updated=updated,
                error=status.error if status.state == "failed" else None,
                warning=entry.warning if entry else None,
                notes=tuple(map(as_read, status.warnings)),
                lost=_lost(entry, mine, record.request.log_every),
                fleet=run.fleet,
                judged=verdicts.get(run.id),
            )
        )
    return results


def _status(experiment: str, run: RunStatus | None) -> str:
    """How a run stands, from how it and its experiment stand."""
    if run is not None and run.state in (FINISHED, "diverged"):
        return run.state
    if experiment in ("failed", "interrupted"):
        return experiment
    if experiment == FINISHED:
        return "missing"  # the experiment says it ended, and never spoke of this run
    return "waiting" if run is None else "training"


def _lost(run: RunStatus | None, curves: Mapping[str, Curve], log_every: int) -> str | None:
    """What the table of measurements lacks, of what its status says was trained."""
    if run is None:
        return None
    trained = run.step if run.diverged_at is None else min(run.step, run.diverged_at - log_every)
    steps = {int(step) for name, curve in curves.items() if name.startswith("train/") for step in curve.steps}
    missing = sum(step not in steps for step in range(log_every, min(trained, MOST_ROWS) + 1, log_every))
    if not missing:
        return None
    return (
        f"metrics.csv lacks the measurements of {missing:,} of {trained // log_every:,} windows until update "
        f"{trained:,}; going on with --resume restores what the checkpoint holds"
    )


def _measured_to(curves: Mapping[str, Curve]) -> int:
    """The last update that was measured: the status is written with checkpoints, and those are rarer."""
    counted = [curve for name, curve in curves.items() if name.startswith(("train/", "evaluation/"))]
    return max((int(curve.steps[-1]) for curve in counted), default=0)


def _patience(log_every: int, curves: Mapping[str, Mapping[str, Curve]]) -> float:
    """Seconds without a word after which an experiment that says it runs was probably killed.

    A process that is killed cannot say so; one that trains writes after every window.
    """
    speeds = [mine[SPEED].values.min() for mine in curves.values() if SPEED in mine]
    slowest = min((float(speed) for speed in speeds if speed > 0), default=None)
    return max(PATIENCE, WINDOWS * log_every / slowest if slowest else 0.0)


def curves_of(rows: Iterable[tuple[Any, str, int, float]]) -> dict[Any, dict[str, Curve]]:
    """(run, metric, step, value) as a curve for each run and metric, in the order of the steps."""
    collected: dict[Any, dict[str, tuple[list[int], list[float]]]] = {}
    for run, name, step, value in rows:
        steps, values = collected.setdefault(run, {}).setdefault(name, ([], []))
        steps.append(step)
        values.append(value)
    made: dict[Any, dict[str, Curve]] = {}
    for run, metrics in collected.items():
        made[run] = {}
        for name, (steps, values) in metrics.items():
            order = np.argsort(steps, kind="stable")  # judgements come late
            made[run][name] = Curve(np.array(steps, np.int64)[order], np.array(values)[order])
    return made


def score_name(runs: Iterable[RunResult]) -> str:
    """What the scores of these runs are: success where each environment says whether its task was solved."""
    solved = [SUCCESS in run.curves for run in runs if SCORE in run.curves]
    return "success" if solved and all(solved) else "score" if any(solved) else "normalised score"
