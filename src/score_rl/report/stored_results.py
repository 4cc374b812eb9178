"""The one format of stored results: a folder with `summary.json` and `curves.csv`, small enough for a repository.

`store_results` writes it and `read_stored` reads it.

summary.json    `experiments` that the runs come from: request, code and library versions, device, data sets with their
                checksums, and `notes` on them that nothing reads.
                `runs`: for each its experiment, its settings, how it ended and how far it came; `fresh_scores`, if its
                last policy was judged again, has the mean score by the number of fresh episodes
curves.csv      the metrics that were kept: run (its number in summary.json), step, name, value

Two facts in a request tell what its runs are for. With `chooses_settings` they were trained only to choose settings by
them. With `chosen_by_seeds` their settings were chosen by runs with those seeds.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.disk import read_own, write_file
from score_rl.errors import InputError, printable
from score_rl.report.results import SCORE, SUCCESS, Curve, RunResult, curves_of

SUMMARY, CURVES = "summary.json", "curves.csv"
STORED_FORMAT = 2
RESTORE = "restore the file from a copy"
COLUMNS = ("run", "step", "name", "value")
_KEPT_OF_A_RUN = (
    "name", "algorithm", "dataset", "environment", "task", "seed", "config", "status", "step", "steps", "error",
    "fleet",
)  # fmt: skip


# -- writing ---------------------------------------------------------------------------------------------------------


def store_results(
    results: Sequence[RunResult], folder: Path | str, names: Sequence[str] = (SCORE, SUCCESS), every: int | None = None
) -> None:
    """Keep what a table or a figure needs of these runs; `gather` reads the folder like an experiment.

    Only the metrics called `names` are kept; with `every` only their values at multiples of it and at the end.
    """
    places: dict[str, int] = {}
    experiments: list[dict[str, Any]] = []
    runs, rows = [], []
    for number, run in enumerate(results):
        request = dict(run.request)
        if "datasets" in request:  # where files lay on the machine that trained says nothing elsewhere
            request["datasets"] = [Path(name).name for name in request["datasets"]]
        about = {"request": request, "provenance": run.provenance, "created": run.created}
        place = places.setdefault(json.dumps([str(run.folder), about], sort_keys=True), len(experiments))
        if place == len(experiments):
            experiments.append(about | {"datasets": {}})
        experiments[place]["datasets"][run.dataset] = {k: v for k, v in run.data.items() if k != "source"}
        runs.append({"experiment": place} | _run_entry(run))
        for name in names:
            if name in run.curves:
                rows += [(number, step, name, value) for step, value in _points(run.curves[name], every)]
    write_stored(Path(folder), experiments, runs, rows)


def _run_entry(run: RunResult) -> dict[str, Any]:
    entry = {name: getattr(run, name) for name in _KEPT_OF_A_RUN}
    return entry | ({"fresh_scores": dict(run.fresh_scores)} if run.fresh_scores else {})


def _points(curve: Curve, every: int | None) -> list[tuple[int, str]]:
    last = len(curve.steps) - 1
    return [
        (int(step), f"{value:.6g}")
        for place, (step, value) in enumerate(zip(*curve, strict=True))
        if every is None or step % every == 0 or place == last
    ]


def write_stored(
    folder: Path,
    experiments: Sequence[Mapping[str, Any]],
    runs: Iterable[Mapping[str, Any]],
    rows: Iterable[tuple[int, int, str, str]],
) -> None:
    """The two files. A run has a line of its own, since settings are many and nearly equal."""
    folder.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"format": STORED_FORMAT, "experiments": list(experiments)}, indent=1, allow_nan=False)
    lines = ",\n".join("  " + json.dumps(run, allow_nan=False) for run in runs)
    write_file(folder / SUMMARY, head.removesuffix("\n}") + f',\n "runs": [\n{lines}\n ]\n}}\n')
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
    write_file(folder / CURVES, table.getvalue())


# -- reading ---------------------------------------------------------------------------------------------------------


def read_stored(folder: Path) -> list[RunResult]:
    """The runs of a folder that `store_results` wrote."""
    try:
        summary = json.loads(read_own(folder / SUMMARY, RESTORE))
        rows = list(csv.DictReader(io.StringIO(read_own(folder / CURVES, RESTORE), newline="")))
        return _runs(folder, summary, rows)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{folder} is not a stored result ({type(error).__name__}: {printable(str(error))}); it needs a {SUMMARY} "
            f"and a {CURVES} as score-rl writes them."
        ) from error


def _runs(folder: Path, summary: Mapping[str, Any], rows: list[dict[str, str]]) -> list[RunResult]:
    if summary.get("format") != STORED_FORMAT:
        raise InputError(
            f"{folder} was stored in format {summary.get('format')}, this version reads format {STORED_FORMAT}; "
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
                fresh_scores={int(episodes): score for episodes, score in run.get("fresh_scores", {}).items()},
                **{name: run[name] for name in _KEPT_OF_A_RUN},
            )
        )
    return results
