"""A page of results: one folder with an index.html that opens anywhere, without a network. Its only script is inside
it and draws the curves; without scripts still figures stand there.

OUT/index.html     everything, the figures inside
OUT/figures/       the same figures as SVG and PDF
OUT/tables/        the tables of scores as CSV and LaTeX, where runs were judged
OUT/raw/           the files the page was made of
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from score_rl.disk import write_file
from score_rl.errors import InputError, not_installed, printable
from score_rl.report.drawing import require_matplotlib
from score_rl.report.grouping import distinct, gather, group, tell_apart
from score_rl.report.page_charts import chart_script, script_checksum
from score_rl.report.page_choice import choice_sections, render_choice
from score_rl.report.page_curves import VALUE, curve_figures, loss_curves
from score_rl.report.page_files import PageFiles
from score_rl.report.page_judgement import judgement_sections, render_judgement, verdict_counts
from score_rl.report.page_runs import STATES, experiments, folder_names, notes_of, reason, speeds
from score_rl.report.page_scores import aggregate_section, headline, table_sections
from score_rl.report.page_text import as_interval, as_number, as_time
from score_rl.report.results import (
    FINISHED,
    GOING,
    LAST_EVALUATIONS,
    RETURN,
    SCORE,
    UNCERTAINTY,
    RunResult,
    score_name,
)
from score_rl.report.short_names import settings_table, with_short_names
from score_rl.report.tables import in_order

MARK = '<meta name="generator" content="score-rl report">'  # tells a report from a folder that is something else


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
        write_file(out / "index.html", render(runs, out, say))
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


def render(found: Sequence[RunResult], out: Path, say: Callable[[str], None]) -> str:
    """The page of these runs as HTML. Its figures, tables and raw files are written on the way."""
    from markupsafe import Markup

    files, environment = PageFiles(out, say), template_environment()
    runs = tell_apart(distinct(found))  # each counts once, however many folders keep it
    names = folder_names([run.folder for run in found])
    # The paper's order: its data sets as in its table, SCORE before what it is compared with.
    places = {name: place for place, name in enumerate(in_order({run.dataset: None for run in runs}))}
    groups = sorted(group(runs), key=lambda mine: (places[mine.dataset], mine.algorithm != "score"))
    groups = with_short_names(groups)
    algorithm_of = {mine.method: mine.algorithm for mine in groups}
    methods = sorted(algorithm_of, key=lambda method: algorithm_of[method] != "score")
    say("Comparing the methods ...")

    def curves(*metrics: str) -> list[Any]:
        return [figure for metric in metrics for figure in curve_figures(groups, metric, methods, files)]

    headlines, script = [headline(mine) for mine in groups], chart_script()
    return environment.get_template("page.html").render(
        script=Markup(script),
        script_checksum=script_checksum(script),
        in_paper=any(line["paper"] for line in headlines),
        scored=score_name(runs) if any(mine.measured(SCORE) for mine in groups) else None,
        mark=environment.from_string(MARK).render(),
        title=title_of(runs),
        counts=[(state, sum(run.status == state for run in runs)) for state in STATES],
        runs=runs,
        called=names,
        repeated=len(found) - len(runs),
        **aggregate_section(groups, methods, files),
        experiments=experiments(found, names, files),
        groups=headlines,
        broken=any(run.status not in (FINISHED, *GOING) for run in runs),
        most_seeds=max((len(mine.runs) for mine in groups), default=0),
        named=settings_table(groups),
        last_k=LAST_EVALUATIONS,
        others=[(run, reason(run)) for run in runs if not run.finished],
        warned=[run for run in runs if run.warning],
        lost=[run for run in runs if run.lost],
        noted=notes_of(runs, names),
        newest=as_time(max((run.updated for run in runs if run.updated), default=None)),
        tables=table_sections(groups, methods, files),
        choice=render_choice(choice_sections(runs), environment),
        judgement=render_judgement(judgement_sections(runs, files), environment),
        in_episodes=any(mine.measured(SCORE) or mine.measured(RETURN) for mine in groups),
        by_judge=any(run.verdict for run in runs),
        verdict_counts=verdict_counts,
        suspects=sum(run.finished and run.is_suspect for run in runs),
        unjudged=[mine for mine in groups if not mine.measured(SCORE) and not mine.measured(RETURN)],
        curves=curves(SCORE, RETURN),
        uncertainty=curves(UNCERTAINTY, VALUE),
        losses=loss_curves(groups, methods),
        without_uncertainty=[mine.method for mine in groups if not mine.measured(UNCERTAINTY)],
        speeds=speeds(runs, names),
    )


def _shown(value: Any) -> Any:
    """Control characters in what a stranger wrote are shown and not obeyed; what was made here is left alone."""
    return printable(value, lines=True) if type(value) is str else value


def _in_parts(name: str) -> Any:
    """A run's name that breaks between its parts, where it has to."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(printable(part)) for part in name.split("_"))


def title_of(runs: Sequence[RunResult]) -> str:
    algorithms = list(dict.fromkeys(run.title for run in runs))
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    what = algorithms[0] if len(algorithms) == 1 else f"{len(algorithms)} methods"
    where = datasets[0] if len(datasets) == 1 else f"{len(datasets)} data sets"
    return f"{what} on {where}"


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
        finalize=_shown,
    )
    environment.filters["number"] = as_number
    environment.filters["parts"] = _in_parts
    environment.filters["estimate"] = as_interval
    return environment
