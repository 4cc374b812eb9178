"""What experiments left behind, as plain records: one for every run, whether it ended well or not.

Read from the folders that training writes (`store/folder.py`), or from the small tables that are kept of them
(`store_results`, and what `benchmarks/keep.py` writes). Nothing is dropped: a run that failed, diverged or still
trains is a record too, and whoever averages must say over which.
"""

import csv
import dataclasses
import functools
import io
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from score_rl.envs.tasks import task_of
from score_rl.errors import InputError
from score_rl.store.checkpoints import write_whole
from score_rl.store.folder import Folder
from score_rl.store.lock import is_held

SCORE, RETURN, UNCERTAINTY, SPEED = (
    "evaluation/score",
    "evaluation/return",
    "train/uncertainty",
    "speed/updates_per_second",
)
STORED_FORMAT = 2
FINISHED = "finished"
GOING = ("training", "waiting")  # the rest of the states is bad news
PATIENCE, WINDOWS = 900, 10  # a folder is silent after so many seconds and so many times what a window takes


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
    doubt: str | None = None  # why its policy should not be trusted
    fleet: int | None = None  # which program of its experiment trained it

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    def last(self, name: str) -> float | None:
        """The newest value of a metric; None where it was never measured."""
        curve = self.curves.get(name)
        return float(curve.values[-1]) if curve is not None and len(curve.values) else None

    @property
    def score(self) -> float | None:
        """The last normalised score in percent, whether the run has ended or not."""
        return self.last(SCORE)

    def judged_again(self, episodes: int = 100) -> float | None:
        """The score of the last policy in so many fresh episodes, where `benchmarks/keep.py` kept it."""
        values = self.data.get(f"last_policies_{episodes}_episodes")
        if not isinstance(values, list) or not self.finished:
            return None
        ended = [seed for seed in self.data["seeds"] if seed not in self.data["diverged"]]
        return dict(zip(ended, values, strict=True)).get(self.seed)

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

    @property
    def method(self) -> str:
        """The algorithm's title, and the settings that tell it from its other groups."""
        return method_label(self.algorithm, self.settings) + (f", {self.remark}" if self.remark else "")

    @property
    def finished(self) -> list[RunResult]:
        return [run for run in self.runs if run.finished]

    @property
    def others(self) -> list[RunResult]:
        """The runs that a mean over this group leaves out, and that have to be listed beside it."""
        return [run for run in self.runs if not run.finished]

    def final(self, name: str) -> Float[np.ndarray, " seeds"]:
        """The last values of a metric in the runs that finished: the last policy is the result."""
        values = [run.last(name) for run in self.finished]
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
    return "×".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# -- reading ---------------------------------------------------------------------------------------------------------


def find_folders(path: Path) -> list[Path]:
    """The folders with results at this path or below it."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}; give the folders that training wrote, or one above them.")
    if holds_results(path):
        return [path]
    found = sorted(below for below in path.rglob("*") if below.is_dir() and holds_results(below))
    if not found:
        raise InputError(
            f"{path} holds no results, nor does any folder below it (no experiment.json, no summary.json with "
            "curves.csv); give the folders that training wrote."
        )
    return found


def holds_results(folder: Path) -> bool:
    return (folder / "experiment.json").is_file() or (
        (folder / "summary.json").is_file() and (folder / "curves.csv").is_file()
    )


def read_folder(folder: Path) -> list[RunResult]:
    """The runs of one folder, of either kind."""
    return read_experiment(folder) if (folder / "experiment.json").is_file() else read_stored(folder)


def read_experiment(path: Path) -> list[RunResult]:
    """The runs of an experiment's folder, also while it trains."""
    folder = Folder.open(path)
    about = folder.experiment()
    try:
        status = folder.status()
        curves = _curves((row.run, row.name, row.step, row.value) for row in folder.metrics())
    except ValueError as error:
        raise InputError(f"{path} cannot be read ({error}); restore it, or leave it out.") from error
    request, state = about["request"], status.get("state", "started")
    judged = request.get("environment")
    files = (path / "experiment.json", folder.metrics_path, path / "status.json")
    updated = max(file.stat().st_mtime for file in files if file.exists())
    held = is_held(path)
    silent = time.time() - updated > _patience(request, curves) if held is None else not held
    results = []
    for run in about["runs"]:
        entry = status.get("runs", {}).get(run["id"])
        environment = None if judged == "none" else judged or run["environment"]
        mine = curves.get(run["id"], {})
        stands = _status(state, entry)
        results.append(
            RunResult(
                folder=path,
                name=run["id"],
                algorithm=run["algorithm"],
                dataset=run["dataset"],
                environment=environment,
                task=task_of(environment or run["environment"] or run["dataset"]),
                seed=run["seed"],
                config=run["config"],
                status="silent" if silent and stands in GOING else stands,
                step=max(entry["step"] if entry else 0, _measured_to(mine)),
                steps=request["steps"],
                curves=mine,
                data=about["datasets"].get(run["dataset"], {}),
                request=request,
                provenance=about.get("provenance", {}),
                created=about.get("created"),
                updated=updated,
                error=status.get("error") if state == "failed" else None,
                doubt=entry.get("doubt") if entry else None,
                fleet=run["fleet"],
            )
        )
    return results


def _status(experiment: str, run: Mapping[str, Any] | None) -> str:
    """How a run stands, from how it and its experiment stand."""
    if run is not None and run["state"] in (FINISHED, "diverged"):
        return run["state"]
    if experiment in ("failed", "interrupted"):
        return experiment
    if experiment == FINISHED:
        return "missing"  # the experiment says it ended, and never spoke of this run
    return "waiting" if run is None else "training"


def _measured_to(curves: Mapping[str, Curve]) -> int:
    """The last update that was measured: the status is written with checkpoints, and those are rarer."""
    counted = [curve for name, curve in curves.items() if name.startswith(("train/", "evaluation/"))]
    return max((int(curve.steps[-1]) for curve in counted), default=0)


def _patience(request: Mapping[str, Any], curves: Mapping[str, Mapping[str, Curve]]) -> float:
    """Seconds without a word after which an experiment that says it runs was probably killed.

    A process that is killed cannot say so; one that trains writes after every window.
    """
    speeds = [mine[SPEED].values.min() for mine in curves.values() if SPEED in mine]
    slowest = min((float(speed) for speed in speeds if speed > 0), default=None)
    return max(PATIENCE, WINDOWS * request["log_every"] / slowest if slowest else 0.0)


def read_stored(folder: Path) -> list[RunResult]:
    """The runs of a small kept table: `summary.json` and `curves.csv`."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
        with (folder / "curves.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        if "runs" in summary:
            return _stored_runs(folder, summary, rows)
        return _kept_runs(folder, summary, rows)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} is not a kept result ({type(error).__name__}: {error}); it needs a summary.json and a "
            "curves.csv as score-rl writes them."
        ) from error


def _stored_runs(folder: Path, summary: Mapping[str, Any], rows: list[dict[str, str]]) -> list[RunResult]:
    """What `store_results` wrote."""
    if summary.get("format") != STORED_FORMAT:
        raise InputError(
            f"{folder} was kept in format {summary.get('format')}, this version reads format {STORED_FORMAT}; "
            "use the version that wrote it."
        )
    curves = _curves((row["run"], row["name"], int(row["step"]), float(row["value"])) for row in rows)
    results = []
    for number, run in enumerate(summary["runs"]):
        experiment = summary["experiments"][run["experiment"]]
        results.append(
            RunResult(
                folder=folder,
                curves=curves.get(str(number), {}),
                data=experiment["datasets"].get(run["dataset"], {}),
                request=experiment["request"],
                provenance=experiment["provenance"],
                created=experiment["created"],
                **{name: run[name] for name in _KEPT_OF_A_RUN},
            )
        )
    return results


def _kept_runs(folder: Path, summary: Mapping[str, Any], rows: list[dict[str, str]]) -> list[RunResult]:
    """What `benchmarks/keep.py` wrote: one setting, curves by data set and seed."""
    request = summary["request"]
    config = summary.get("config") or {name: values[0] for name, values in request["settings"].items()}
    curves = _curves(
        ((row["dataset"], row["seed"]), row["name"], int(row["step"]), float(row["value"])) for row in rows
    )
    about = summary.get("results", {})
    datasets = list(about) or list(dict.fromkeys(row["dataset"] for row in rows))
    results = []
    for dataset in datasets:
        facts = about.get(dataset, {"checksum": summary.get("data_checksum")})
        for seed in request["seeds"]:
            mine = curves.get((dataset, str(seed)), {})
            step = max((int(curve.steps[-1]) for curve in mine.values()), default=0)
            status = "diverged" if seed in facts.get("diverged", []) else FINISHED
            if status == FINISHED and step < request["steps"]:
                status = "missing" if not mine else "interrupted"
            results.append(
                RunResult(
                    folder=folder,
                    name=f"{dataset}_seed={seed}",
                    algorithm=request["algorithm"],
                    dataset=dataset,
                    environment=request["environment"] or task_of(dataset),
                    task=task_of(request["environment"] or dataset),
                    seed=seed,
                    config=facts.get("config", config),  # presets differ between data sets
                    status=status,
                    step=step,
                    steps=request["steps"],
                    curves=mine,
                    data=facts,
                    request=request,
                    provenance=summary["provenance"],
                )
            )
    return results


def _curves(rows: Iterable[tuple[Any, str, int, float]]) -> dict[Any, dict[str, Curve]]:
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


# -- keeping ---------------------------------------------------------------------------------------------------------

_KEPT_OF_A_RUN = (
    "name", "algorithm", "dataset", "environment", "task", "seed", "config", "status", "step", "steps", "error",
    "fleet",
)  # fmt: skip


def store_results(
    results: Sequence[RunResult], folder: Path | str, names: Sequence[str] = (SCORE,), every: int | None = None
) -> None:
    """Keep what a table or a figure needs, small enough for a repository: `gather` reads it like an experiment.

    `summary.json` has every run with its settings, state and provenance; `curves.csv` the metrics called `names`,
    where `every` is given only at multiples of it and at the end.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    experiments: dict[Path, int] = {}
    listed: list[dict[str, Any]] = []
    runs, rows = [], []
    for number, run in enumerate(results):
        if run.folder not in experiments:
            experiments[run.folder] = len(listed)
            request = dict(run.request)
            if "datasets" in request:  # where files lay on the machine that trained says nothing elsewhere
                request["datasets"] = [Path(name).name for name in request["datasets"]]
            listed.append({"request": request, "provenance": run.provenance, "created": run.created, "datasets": {}})
        place = experiments[run.folder]
        listed[place]["datasets"][run.dataset] = {k: v for k, v in run.data.items() if k != "source"}
        runs.append({"experiment": place} | {name: getattr(run, name) for name in _KEPT_OF_A_RUN})
        for name in names:
            curve = run.curves.get(name)
            if curve is None:
                continue
            for place_in_curve, (step, value) in enumerate(zip(*curve, strict=True)):
                if every is None or step % every == 0 or place_in_curve == len(curve.steps) - 1:
                    rows.append((number, int(step), name, f"{value:.6g}"))
    summary = {"format": STORED_FORMAT, "experiments": listed}
    # One line for each run: their settings are many and nearly equal.
    lines = ",\n".join("  " + json.dumps(run, allow_nan=False) for run in runs)
    text = json.dumps(summary, indent=1, allow_nan=False).removesuffix("\n}") + f',\n "runs": [\n{lines}\n ]\n}}\n'
    write_whole(folder / "summary.json", text.encode())
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("run", "step", "name", "value"), *rows])
    write_whole(folder / "curves.csv", table.getvalue().encode())
