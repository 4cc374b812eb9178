"""The one format of stored results: a folder with `summary.json` and `curves.csv`, small enough for a repository.

`store_results` writes it and `read_stored` reads it.

summary.json    the experiments that the runs come from (request, code and library versions, device, data sets with
                checksums), and every run with its settings, its state and how far it came
curves.csv      the metrics that were kept: run (its number in summary.json), step, name, value
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.disk import write_file
from score_rl.envs.tasks import task_of
from score_rl.errors import InputError
from score_rl.report.results import FINISHED, SCORE, RunResult, curves_of

STORED_FORMAT = 2
_KEPT_OF_A_RUN = (
    "name", "algorithm", "dataset", "environment", "task", "seed", "config", "status", "step", "steps", "error",
    "fleet",
)  # fmt: skip


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
    curves = curves_of((row["run"], row["name"], int(row["step"]), float(row["value"])) for row in rows)
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
    curves = curves_of(
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
    write_file(folder / "summary.json", text)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("run", "step", "name", "value"), *rows])
    write_file(folder / "curves.csv", table.getvalue())
