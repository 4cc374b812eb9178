"""Running experiments: train what is missing, then draw, tabulate and store."""

import csv
import dataclasses
import io
import json
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import schedules
from score_rl.disk import write_file
from score_rl.errors import InputError, refuse_unwritable
from score_rl.paper.experiments.plan import (
    WHAT_THE_DATA_IS,
    Asked,
    Done,
    Experiment,
    Presentation,
    Request,
    Table,
    Wanted,
)
from score_rl.paper.experiments.pool import blocks, ready, stored_runs
from score_rl.paper.experiments.protocols import rounded, widest_first
from score_rl.report.drawing import GREY, VERMILION, require_matplotlib, save_figure
from score_rl.report.grouping import gather
from score_rl.report.published import data_kind, paper_dataset
from score_rl.report.results import RunResult, read_experiment
from score_rl.report.stored_results import store_results
from score_rl.report.tables import escape_latex
from score_rl.store.provenance import provenance
from score_rl.store.records import config_json

FORMAT = 1
Say = Callable[[str], None]


def cost(experiment: Experiment, request: Request) -> str:
    """Runs × updates."""
    if experiment.cost is not None:
        return experiment.cost(request)
    asked = experiment.plan(request)
    by_steps: dict[int, set[str]] = {}
    for run in asked:
        name = f"{run.run.algorithm}|{run.run.dataset}|{run.run.config}|{run.run.seed}"
        by_steps.setdefault(run.run.steps, set()).add(name)
    return ", ".join(f"{len(runs)} × {rounded(steps)}" for steps, runs in by_steps.items())


def overview(experiments: Sequence[Experiment], request: Request) -> Table:
    """The fleets that these experiments still need: one compiled program each, or one for each task in it.

    Runs are known by what their data hold, so what an experiment draws for itself is drawn in passing: nothing is left.
    """
    with tempfile.TemporaryDirectory() as scratch:
        passing = dataclasses.replace(request, out=Path(scratch))
        wanted: dict[str, Wanted] = {}
        for experiment in experiments:
            experiment.prepare(passing)
            wanted |= {asked.run.key(): asked.run for asked in experiment.plan(passing)}
        there = stored_runs(request.out / "fleets")
        needed = blocks([run for key, run in wanted.items() if key not in there or not there[key].ended])
    rows, runs, total = [], 0, 0
    for block in needed:
        first = block.runs[0]
        datasets = ", ".join(Path(name).name.removesuffix(".hdf5") for name in block.datasets[:3])
        more = f" and {len(block.datasets) - 3} more" if len(block.datasets) > 3 else ""
        settings = f"{len(block.variants)} settings" if len(block.variants) > 1 else unusual(first)
        numbers = (len(block.seeds), len(block.runs), first.steps, len(block.runs) * first.steps)
        rows.append((first.algorithm, settings, datasets + more, *(f"{number:,}" for number in numbers)))
        runs, total = runs + len(block.runs), total + len(block.runs) * first.steps
    rows.append(("all", "", "", "", f"{runs:,}", "", f"{total:,}"))
    columns = ("algorithm", "settings", "data sets", "seeds", "runs", "updates", "run-steps")
    later = [experiment.name for experiment in experiments if experiment.then is not None]
    more = f"; after them what {', '.join(later)} chooses by their results" if later else ""
    return Table(f"Fleets still to be trained{more}", columns, rows)


def unusual(run: Wanted) -> str:
    """What of a run's settings is not the default, schedules aside."""
    defaults = get_algorithm(run.algorithm).Config()
    changed = [f"{k} {v}" for k, v in run.settings if v != getattr(defaults, k) and k not in schedules(defaults)]
    return ", ".join(changed) or "defaults"


def run(experiments: Sequence[Experiment], request: Request, say: Say) -> dict[str, tuple[Path, Presentation]]:
    """All of them from one pool of runs: what several need is trained once, and together."""
    check_tools(experiments)
    check_out(experiments, request, request.scale.name)
    asked: dict[str, list[Asked]] = {}
    for experiment in experiments:
        experiment.prepare(request)
        asked[experiment.name] = experiment.plan(request)
    read: dict[Path, dict[str, RunResult]] = {}
    done = _trained(asked, request, read, say)
    further = {e.name: e.then(request, done[e.name]) for e in experiments if e.then is not None}
    for name, more in _trained(further, request, read, say).items():
        done[name] += more
    return {e.name: _make(e, request, done[e.name], request.scale.name, say) for e in experiments}


def _trained(
    asked: Mapping[str, Sequence[Asked]], request: Request, read: dict[Path, dict[str, RunResult]], say: Say
) -> dict[str, list[Done]]:
    """What several experiments ask for, trained together, for each of them; `read` holds what has been read so far."""
    wanted = [run.run for runs in asked.values() for run in runs]
    pool = request.out / "fleets"
    stored = ready(pool, wanted, quiet=request.quiet, say=say, on=request.on) if wanted else {}
    done: dict[str, list[Done]] = {name: [] for name in asked}
    for name, runs in asked.items():
        for each in runs:
            place = stored[each.run.key()]
            if place.folder not in read:
                read[place.folder] = {result.name: result for result in read_experiment(place.folder)}
            done[name].append(Done(each.label, read[place.folder][place.run]))
    return done


def rebuild(
    experiments: Sequence[Experiment], request: Request, folder: Path, say: Say
) -> dict[str, tuple[Path, Presentation]]:
    """From stored results, without training."""
    check_tools(experiments)
    check_out(experiments, request, "stored")
    results = [run for run in once(gather([folder])) if _picked(request, run) and not run.chooses_settings]
    made = {}
    for experiment in experiments:
        if experiment.stored is None:
            raise InputError(f"{experiment.name} cannot be rebuilt from stored results; run it without --from-stored.")
        done = experiment.stored(results)
        if not done:
            raise InputError(
                f"{folder} holds no runs that {experiment.name} could compare; run it without --from-stored."
            )
        path, result = _make(experiment, request, done, "stored", say)
        if len(done) < len(results):
            result.remarks.append(f"{len(results) - len(done)} other stored runs below {folder} are not part of this.")
        made[experiment.name] = path, result
    return made


def once(results: Sequence[RunResult]) -> list[RunResult]:
    """One of each seed of a method with some settings on some data, that of the widest folder: also of runs that were
    trained again, which `distinct` keeps apart. What they were multiplied in does not matter, nor a setting that came
    later and has its default."""
    found: dict[str, RunResult] = {}
    for run in widest_first(results):
        usual = config_json(get_algorithm(run.algorithm).Config())
        changed = {name: value for name, value in run.config.items() if usual.get(name) != value}
        what = [run.algorithm, run.dataset, run.data.get("checksum"), changed, run.seed, run.steps]
        found.setdefault(json.dumps(what, sort_keys=True, default=str), run)
    return list(found.values())


def _picked(request: Request, run: RunResult) -> bool:
    return (
        (not request.methods or run.algorithm in request.methods)
        and (not request.datasets or paper_dataset(run.dataset) in request.datasets)
        and (not request.seeds or run.seed in request.seeds)
        and (request.steps is None or run.steps == request.steps)
    )


def check_tools(experiments: Sequence[Experiment]) -> None:
    """Refuse before hours of training if a library is missing that drawing will need."""
    require_matplotlib("paper")
    for experiment in experiments:
        experiment.check_tools()


def check_out(experiments: Sequence[Experiment], request: Request, kind: str) -> None:
    """That every result can be written where it goes."""
    for experiment in experiments:
        refuse_unwritable(_folder(experiment, request, kind))


def _folder(experiment: Experiment, request: Request, kind: str) -> Path:
    return request.out / experiment.name / kind


def _make(
    experiment: Experiment, request: Request, done: Sequence[Done], kind: str, say: Say
) -> tuple[Path, Presentation]:
    say(f"Drawing {experiment.name} ...")
    folder = _folder(experiment, request, kind)
    if experiment.mark is not None:
        done = experiment.mark(request, done)
    made = experiment.present(request, done)
    made.remarks += mixed_precision([run.result for run in done])
    from_stored = kind == "stored"
    note = f"{request.proves} {WHAT_THE_DATA_IS[request.kind]}"
    if from_stored:
        note = "From stored results, each with the data and the number of updates that its own record states."
    elif experiment.note is not None:
        note = experiment.note(request)
    files = write(folder, made, note, warn=request.scale.small and not from_stored)
    results = list({id(run.result): run.result for run in done}.values())  # one may have two labels
    if results:
        store_results(results, folder / "runs", experiment.metrics, spacing(results))
    result = {
        "format": FORMAT,
        "experiment": experiment.name,
        "paper": experiment.paper,
        "finding_of_the_paper": experiment.finding,
        "scale": None if from_stored else request.scale.name,
        "what_it_shows": note,
        "source": list(dict.fromkeys(data_kind(run.dataset) for run in results))
        if from_stored
        else [Path(name).name for name in request.source],
        "numbers": made.numbers,
        "remarks": made.remarks,
        "not_finished": [f"{run.name}: {run.status}" for run in results if not run.finished],
        "files": [str(file.relative_to(folder)) for file in files],
        "provenance": provenance(),  # of the drawing
        "trained_by": list({json.dumps(run.provenance, sort_keys=True): run.provenance for run in results}.values()),
    }
    write_file(folder / "result.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return folder, made


def mixed_precision(results: Sequence[RunResult]) -> list[str]:
    """A remark where not all runs multiplied alike: a folder that a GPU and a CPU have filled."""
    by_precision = Counter(str(run.request.get("precision", "float32")) for run in results)
    if len(by_precision) < 2:
        return []
    return [f"Runs of both precisions: {', '.join(f'{number} in {name}' for name, number in by_precision.items())}."]


def spacing(results: Sequence[RunResult], points: int = 60) -> int | None:
    """Updates between the points of a curve that are kept: about so many, and every evaluation among them."""
    found = set()
    for run in results:
        log, judged, steps = (run.request.get(name) for name in ("log_every", "eval_every", "steps"))
        if not log or not judged or not steps:
            return None
        fitting = [n for n in range(log, judged + 1, log) if judged % n == 0]
        found.add(next((n for n in fitting if n >= steps / points), judged))
    return found.pop() if len(found) == 1 else None


def write(folder: Path, made: Presentation, note: str, *, warn: bool) -> list[Path]:
    """Pictures as SVG and PDF with the note in them, tables as CSV and LaTeX."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in made.figures.items():
        inscribe(figure, note, warn=warn)
        files += save_figure(figure, folder, name)
    for name, table in made.tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
        for suffix, content in (("csv", text.getvalue()), ("tex", latex(table))):
            write_file(folder / f"{name}.{suffix}", content)
            files.append(folder / f"{name}.{suffix}")
    for name, content in made.texts.items():
        write_file(folder / name, content)
        files.append(folder / name)
    return files


def inscribe(figure: Any, note: str, *, warn: bool) -> None:
    """Above the panels, in lines that fit; in red where the picture proves nothing."""
    characters = int(figure.get_figwidth() * (15 if warn else 17))
    style = {"color": VERMILION, "fontweight": "bold"} if warn else {"color": GREY}
    figure.suptitle("\n".join(textwrap.wrap(note, characters)), fontsize=8, x=0.01, ha="left", **style)


def latex(table: Table) -> str:
    rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in (table.columns, *table.rows)]
    head, *body = rows
    lines = [r"\begin{tabular}{" + "l" * len(table.columns) + "}", r"\hline", head, r"\hline", *body, r"\hline"]
    return "\n".join([*lines, r"\end{tabular}", ""])
