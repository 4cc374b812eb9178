"""A page of results: one folder with an index.html that opens anywhere, without a network and without a script.

OUT/index.html     everything, the figures inside
OUT/figures/       the same figures as SVG and PDF
OUT/tables/        the tables of scores as CSV and LaTeX, where runs were judged
OUT/raw/           the files the page was made of
"""

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from score_rl.disk import replacing, write_file
from score_rl.errors import InputError, not_installed
from score_rl.report import figures
from score_rl.report.drawing import require_matplotlib
from score_rl.report.grouping import by_dataset, distinct, gather, group, paper_cell, short_names, tell_apart
from score_rl.report.published import printed
from score_rl.report.results import FINISHED, GOING, RETURN, SCORE, SPEED, UNCERTAINTY, Group, RunResult
from score_rl.report.statistics import AGGREGATES, REPETITIONS, Estimate, aggregates, comparable, profiles
from score_rl.report.tables import ScoreTable, in_order, mean_and_std, score_table, to_csv, to_latex

MARK = '<meta name="generator" content="score-rl report">'  # tells a report from a folder that is something else
RAW = ("experiment.json", "status.json", "metrics.csv", "summary.json", "curves.csv")
STATES = (FINISHED, "training", "waiting", "silent", "interrupted", "diverged", "failed", "missing")
MEANING = {
    "training": "still training",
    "waiting": "not started yet",
    "silent": "was training, then fell silent: probably killed; score train --resume goes on",
    "interrupted": "stopped on request; score train --resume goes on",
    "diverged": "its losses were no longer finite",
    "failed": "its experiment ended with an error",
    "missing": "asked for, never trained",
}
QUANTITIES = {SCORE: "normalised score (%)", RETURN: "return", UNCERTAINTY: "u(s, a)", "train/q": "Q(s, a)"}


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure in the page and its files."""

    title: str
    svg: Any  # Markup: made by `inline_svg`, which escapes
    files: Sequence[tuple[str, str]]  # (what it is, relative address)
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Tabled:
    """A table in the page and its files."""

    table: ScoreTable
    quantity: str
    files: Sequence[tuple[str, str]]
    notes: Sequence[str]
    figure: Drawn | None

    @property
    def methods_down(self) -> bool:
        """Whether methods are rows: there are many, and a page is easier to scroll down than across."""
        return len(self.table.methods) > max(6, len(self.table.datasets))


def write_report(
    paths: Iterable[Path | str], out: Path | str, *, say: Callable[[str], None] = lambda message: None
) -> Path:
    """Make the page of all runs in these folders; returns its index.html."""
    out = Path(out)
    check_out(out)
    require_matplotlib()  # before an earlier report is removed
    template_environment()
    say("Reading the runs ...")
    runs = gather(paths)
    for folder in ("figures", "tables", "raw"):
        shutil.rmtree(out / folder, ignore_errors=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        page = _Page(runs, out, say)
        html = page.render()
        write_file(out / "index.html", html)
    except OSError as error:
        raise InputError(f"cannot write to {out} ({error.strerror}); give another --out.") from error
    return out / "index.html"


def check_out(out: Path) -> None:
    """Only an empty folder or an earlier report is written to."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder with --out.")
    if out.is_dir() and any(out.iterdir()):
        page = out / "index.html"
        if not page.is_file() or MARK not in page.read_text(errors="replace"):
            raise InputError(f"{out} holds something else than a report; give another folder with --out.")


class _Page:
    """Collects what the template shows, writing every figure and table on its way."""

    def __init__(self, runs: Sequence[RunResult], out: Path, say: Callable[[str], None]) -> None:
        self.found, self.out, self.say = list(runs), out, say
        self.runs = tell_apart(distinct(self.found))  # each counts once, however many folders keep it
        self.called = called([run.folder for run in self.found])
        # The paper's order: its data sets as in its table, SCORE before what it is compared with.
        places = {name: place for place, name in enumerate(in_order({run.dataset: None for run in self.runs}))}
        self.groups = sorted(group(self.runs), key=lambda found: (places[found.dataset], found.algorithm != "score"))
        methods = {found.method: found.algorithm for found in self.groups}
        self.methods = sorted(methods, key=lambda method: methods[method] != "score")
        self.taken: set[tuple[str, str]] = set()

    def render(self) -> str:
        environment = template_environment()
        self.say("Comparing the methods ...")
        overall = self.overall()
        return environment.get_template("page.html").render(
            mark=environment.from_string(MARK).render(),
            title=self.title(),
            counts=[(state, sum(run.status == state for run in self.runs)) for state in STATES],
            runs=self.runs,
            called=self.called,
            repeated=len(self.found) - len(self.runs),
            experiments=self.experiments(),
            groups=[self.headline(found) for found in self.groups],
            others=[(run, self.reason(run)) for run in self.runs if not run.finished],
            doubted=[run for run in self.runs if run.doubt],
            newest=_time(max((run.updated for run in self.runs if run.updated), default=None)),
            tables=self.tables(),
            unjudged=[found for found in self.groups if not _measured(found, SCORE) and not _measured(found, RETURN)],
            curves=self.curves(SCORE) + self.curves(RETURN),
            uncertainty=self.curves(UNCERTAINTY) + self.curves("train/q"),
            without_uncertainty=[found.method for found in self.groups if not _measured(found, UNCERTAINTY)],
            speeds=self.speeds(),
            **overall,
        )

    def title(self) -> str:
        algorithms = list(dict.fromkeys(run.title for run in self.runs))
        datasets = list(dict.fromkeys(run.dataset for run in self.runs))
        what = algorithms[0] if len(algorithms) == 1 else f"{len(algorithms)} methods"
        where = datasets[0] if len(datasets) == 1 else f"{len(datasets)} data sets"
        return f"{what} on {where}"

    # -- files -------------------------------------------------------------------------------------------------------

    def name(self, folder: str, wanted: str) -> str:
        """A file name that works everywhere and was not used yet in this folder."""
        plain = re.sub(r"[^A-Za-z0-9.=_-]+", "-", wanted).strip("-.")[:100] or "unnamed"
        chosen, number = plain, 2
        while (folder, chosen.lower()) in self.taken:  # some file systems do not tell A from a
            chosen, number = f"{plain}-{number}", number + 1
        self.taken.add((folder, chosen.lower()))
        return chosen

    def draw(self, figure: Any, name: str, title: str, notes: Sequence[str] = ()) -> Drawn:
        from markupsafe import Markup

        name = self.name("figures", name)
        self.say(f"Drawing {name} ...")
        files = figures.save(figure, self.out / "figures", name)
        svg = Markup(figures.inline_svg(figure, _identifier(name), title))  # inline_svg escapes
        return Drawn(title, svg, [(path.suffix[1:].upper(), _link("figures", path.name)) for path in files], notes)

    def write_table(self, name: str, csv: str, latex: str) -> list[tuple[str, str]]:
        folder = self.out / "tables"
        folder.mkdir(exist_ok=True)
        name = self.name("tables", name)
        write_file(folder / f"{name}.csv", csv)
        write_file(folder / f"{name}.tex", latex)
        return [("CSV", _link("tables", f"{name}.csv")), ("LaTeX", _link("tables", f"{name}.tex"))]

    # -- what is shown -----------------------------------------------------------------------------------------------

    def reason(self, run: RunResult) -> str:
        if run.status == "failed" and run.error:
            return run.error
        seen = f"; last written {_time(run.updated)}" if run.status in ("training", "silent") and run.updated else ""
        return MEANING[run.status] + seen

    def headline(self, found: Group) -> dict[str, Any]:
        """A group in one line of the summary."""
        metric = SCORE if _measured(found, SCORE) else RETURN
        values = found.final(metric)
        so_far = [
            value for value in (run.last(metric) for run in found.runs if run.status in GOING) if value is not None
        ]
        data = found.runs[0].data
        scored = metric == SCORE or (not _measured(found, RETURN) and "behaviour_score" in data)
        return {
            "group": found,
            "unit": "" if metric == SCORE else "return",
            "result": mean_and_std(values.mean(), values.std() if len(values) > 1 else None) if len(values) else None,
            "so_far": f"{np.mean(so_far):.1f}" if so_far and not len(values) else None,
            "judged": _measured(found, metric),
            "behaviour": data.get("behaviour_score" if scored else "behaviour_return"),
            "behaviour_unit": "" if scored else "return",
            "paper": paper_cell(found) if metric == SCORE else None,
            "step": min(run.step for run in found.runs),
            "steps": found.runs[0].steps,
        }

    def tables(self) -> list[Tabled]:
        """Normalised scores; returns for whatever has no reference score."""
        shown = []
        for metric, name in ((SCORE, "scores"), (RETURN, "returns")):
            chosen = [
                found for found in self.groups
                if _measured(found, metric) and (metric == SCORE or not _measured(found, SCORE))
            ]  # fmt: skip
            if chosen:
                table = score_table(chosen, metric)
                files = self.write_table(name, to_csv(table), to_latex(table))
                shown.append(
                    Tabled(table, QUANTITIES[metric], files, unequal_training(chosen), self.at_a_glance(table, name))
                )
        return shown

    def at_a_glance(self, table: ScoreTable, name: str) -> Drawn | None:
        """The table as a picture; a single cell needs none."""
        if len(table.cells) < 2:
            return None
        scores: dict[str, dict[str, Estimate]] = {}
        paper: dict[str, dict[str, float]] = {}
        for (dataset, method), cell in table.cells.items():
            assert cell.interval is not None
            scores.setdefault(method, {})[dataset] = cell.interval
            if (dataset, method) in table.paper:
                paper.setdefault(method, {})[dataset] = table.paper[dataset, method].mean
        ordered = {method: scores[method] for method in table.methods if method in scores}
        figure = figures.score_bars(ordered, paper, QUANTITIES[table.metric], self.methods)
        return self.draw(figure, name, "Means and 95 % intervals")

    def curves(self, metric: str) -> list[Drawn]:
        """A figure for each data set on which this was measured."""
        drawn = []
        for dataset, groups in by_dataset(self.groups).items():
            if metric == RETURN and any(_measured(found, SCORE) for found in groups):
                continue  # the score is the return in other units
            lines = self.known(groups, metric)
            panel = figures.panel_of(dataset, QUANTITIES[metric], groups, metric, lines=lines)
            if panel is None:
                continue
            if metric == UNCERTAINTY and figures.uneven(panel):
                panel = dataclasses.replace(panel, logarithmic=True)
            apart = [series.label for series in panel.series if series.mean is None and len(series.runs)]
            notes = [f"The runs of {label} were not measured at the same updates: no mean." for label in apart]
            if figures.crowded(panel):
                notes.append("Too many lines to show their seeds and intervals; the table has intervals of the ends.")
            figure = figures.learning_curves([panel], 1, self.methods)
            drawn.append(self.draw(figure, f"{metric.rpartition('/')[2]}-{dataset}", dataset, notes))
        return drawn

    def known(self, groups: Sequence[Group], metric: str) -> dict[str, float]:
        """What can be said of a data set beside the learned policies; the paper's where there is but one method."""
        lines: dict[str, float] = {}
        key = {SCORE: "behaviour_score", RETURN: "behaviour_return"}.get(metric)
        values = [found.runs[0].data[key] for found in groups if key and key in found.runs[0].data]
        if len(set(values)) == 1:
            lines["behaviour policy"] = values[0]
        algorithms = {found.algorithm for found in groups}
        cell = printed(groups[0].algorithm, groups[0].dataset) if metric == SCORE and len(algorithms) == 1 else None
        if cell is not None:
            lines[f"paper's {groups[0].runs[0].title}"] = cell.mean
        return lines

    def overall(self) -> dict[str, Any]:
        """Aggregates and profiles of the methods that can be compared, and why others cannot."""
        scores: dict[str, dict[str, Sequence[float]]] = {}
        for found in self.groups:
            if _measured(found, SCORE):
                scores.setdefault(found.method, {})[found.dataset] = list(found.final(SCORE))
        matrices, shared, notes = comparable(scores)
        shown: dict[str, Any] = {"notes": notes, "shared": shared, "repetitions": REPETITIONS, "aggregates": None}
        if not matrices:
            return shown
        alone = [method for method, matrix in matrices.items() if len(matrix) < 2]
        if alone:
            notes.append(f"One seed has no interval: {', '.join(alone)}.")
        measured = aggregates(matrices)
        shown["aggregates"] = measured
        shown["seeds"] = {method: len(matrix) for method, matrix in matrices.items()}
        shown["aggregate_titles"] = figures.AGGREGATE_TITLES
        shown["aggregate_files"] = self.write_table("aggregates", *_aggregates_as_text(measured))
        shown["aggregate_figure"] = self.draw(
            figures.aggregate_intervals(measured, columns=2, width=2.6, names=self.methods), "aggregates", "Aggregates"
        )
        shown["profile_figure"] = self.draw(
            figures.performance_profiles(profiles(matrices), names=self.methods), "profiles", "Performance profiles"
        )
        return shown

    def speeds(self) -> list[dict[str, Any]]:
        """How fast each program trained: the median over its windows, the first left out as it holds warming up."""
        rows = []
        programs: dict[tuple[Path, int | None], list[RunResult]] = {}
        for run in self.runs:
            programs.setdefault((run.folder, run.fleet), []).append(run)
        for runs in programs.values():
            curves = [run.curves[SPEED].values for run in runs if SPEED in run.curves]
            if not curves:
                continue
            longest = max(curves, key=len)
            rate = float(np.median(longest[1:] if len(longest) > 1 else longest))
            rows.append(
                {
                    "methods": list(dict.fromkeys(run.title for run in runs)),
                    "folder": self.called[runs[0].folder],
                    "fleet": runs[0].fleet,
                    "runs": len(runs),
                    "rate": rate,
                    "together": rate * len(runs),
                    "thousand": 1000 / rate if rate else None,
                    "device": _device(runs[0].provenance),
                }
            )
        return rows

    def experiments(self) -> list[dict[str, Any]]:
        """Every folder with its request, data, versions and runs; its files are copied beside the page."""
        folders: dict[Path, list[RunResult]] = {}
        for run in self.found:
            folders.setdefault(run.folder, []).append(run)
        shown = []
        raw = self.out / "raw"
        raw.mkdir(exist_ok=True)
        for folder, runs in folders.items():
            name = self.name("raw", self.called[folder])
            files = []
            for file in RAW:
                if (folder / file).is_file():
                    # Not under their own names: a report must not be found as one more experiment.
                    with replacing(raw / f"{name}.{file}", if_full="free some space") as temporary:
                        shutil.copyfile(folder / file, temporary)
                    files.append((file, _link("raw", f"{name}.{file}")))
            settings = list(dict.fromkeys(setting for run in runs for setting in run.config))
            equal = {s: runs[0].config.get(s) for s in settings if len({str(run.config.get(s)) for run in runs}) == 1}
            shown.append(
                {
                    "folder": str(folder),
                    "name": self.called[folder],
                    "algorithms": list(dict.fromkeys(run.title for run in runs)),
                    "runs": runs,
                    "files": files,
                    "created": runs[0].created,
                    "updated": _time(runs[0].updated),
                    "request": _flat(runs[0].request),
                    "provenance": _flat(runs[0].provenance),
                    "datasets": {run.dataset: _flat(run.data) for run in runs},
                    "config": equal,
                    "differing": [setting for setting in settings if setting not in equal],
                }
            )
        return shown


def called(folders: Iterable[Path]) -> dict[Path, str]:
    """What each experiment is called: its folder, with as much of the path as tells it from the others."""
    whole = {folder: folder.resolve() for folder in folders}
    names = short_names(whole.values())
    return {folder: names[path] if len(names) > 1 else path.name for folder, path in whole.items()}


def unequal_training(groups: Sequence[Group]) -> list[str]:
    """A sentence where methods of one table were not trained or judged alike: they can hardly be compared."""
    notes = []
    for what, of in (
        ("trained for different numbers of updates", lambda run: f"{run.steps:,}"),
        ("judged under different physics", lambda run: run.request.get("physics", "d4rl")),
    ):
        found: dict[str, list[str]] = {}
        for mine in groups:
            for run in mine.runs:
                if mine.method not in found.setdefault(of(run), []):
                    found[of(run)].append(mine.method)
        if len(found) > 1:
            shown = "; ".join(f"{value}: {_some(methods)}" for value, methods in found.items())
            notes.append(f"Careful, these were {what} ({shown}).")
    return notes


def _some(names: Sequence[str], most: int = 4) -> str:
    """The first few, and how many there are beside them."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def template_environment() -> Any:
    """jinja2 with every text escaped and every missing name an error, or a sentence on how to get it."""
    try:
        import jinja2
    except ModuleNotFoundError as missing:
        raise not_installed("the page needs jinja2") from missing
    source = resources.files("score_rl.report").joinpath("page.html").read_text()
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({"page.html": source}),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    environment.filters["estimate"] = _estimate
    return environment


def _measured(found: Group, metric: str) -> bool:
    return any(metric in run.curves for run in found.runs)


def _link(*parts: str) -> str:
    return "/".join(quote(part) for part in parts)


def _identifier(name: str) -> str:
    return "f-" + re.sub(r"[^A-Za-z0-9_-]", "-", name)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _device(provenance: Mapping[str, Any]) -> str:
    device = provenance.get("device", {})
    if not device:
        return "unknown"
    kind = device.get("kind", "unknown")
    if device.get("platform") == "cpu":
        return f"{provenance.get('cores', '?')} CPU cores"
    return kind if device.get("count", 1) == 1 else f"{device['count']} × {kind}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts as one list of names and values."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _number(value: Any) -> str:
    """A number or anything else as people read it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(_number, value)) if isinstance(value, list | tuple) else str(value)


def _estimate(value: Estimate) -> str:
    return f"{value.low:.1f} to {value.high:.1f}" if value.has_interval else "no interval"


def _aggregates_as_text(found: Mapping[str, Mapping[str, Estimate]]) -> tuple[str, str]:
    import csv
    import io

    from score_rl.report.tables import escape_latex

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("method", "aggregate", "value", "low_95", "high_95"))
    lines = [r"\begin{tabular}{l" + "r" * len(AGGREGATES) + "}", r"\hline"]
    lines += [" & ".join(["Method", *(figures.AGGREGATE_TITLES[name] for name in AGGREGATES)]) + r" \\", r"\hline"]
    for method, mine in found.items():
        for name in AGGREGATES:
            ends = (repr(mine[name].low), repr(mine[name].high)) if mine[name].has_interval else ("", "")
            rows.writerow((method, name, repr(mine[name].value), *ends))
        cells = [
            f"{mine[name].value:.1f}" + (f" ({mine[name].low:.1f}, {mine[name].high:.1f})" if ends[0] else "")
            for name in AGGREGATES
        ]
        lines.append(" & ".join([escape_latex(method), *cells]) + r" \\")
    return text.getvalue(), "\n".join([*lines, r"\hline", r"\end{tabular}", ""])
