"""Put the measured scores beside the paper's: README's table and figure, and the tables of docs/results.md.

    python benchmarks/evidence.py           rewrite the tables and figures
    python benchmarks/evidence.py --check   exit code 1 where a document or figure differs from what is stored

Everything comes from benchmarks/results: each number links to the file it was read from. A table stands between
`<!-- evidence:NAME -->` and `<!-- /evidence:NAME -->`; the rest of a document is left alone. Nothing is trained.
"""

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import CLAIMS
from documents import refresh, tell, with_tables
from kept_scores import read
from measured import Choice, Result, Stored
from planned import missing, seconds, without_grid

from score_rl.algorithms.registry import algorithm_names
from score_rl.paper.experiments.choice import BETAS, DECAYS
from score_rl.paper.experiments.protocols import span
from score_rl.report.drawing import BLUE, GREEN, ORANGE, new_figure
from score_rl.report.figures import FAINT, INK, SettingGrid, performance_profiles, setting_grids, styled
from score_rl.report.paper import SEEDS, Printed, paper_datasets, paper_table, printed
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import (
    AGGREGATES,
    Company,
    Estimate,
    aggregates,
    agreement,
    companies,
    mean_over_seeds,
    printed_interval,
    profiles,
    score_matrix,
)

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures" / "evidence"
DOCUMENTS = ("README.md", "docs/results.md")
NOTHING = "–"


# -- words -----------------------------------------------------------------------------------------------------------


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Markdown; the columns numbered in `right` are numbers."""
    rule = ["---:" if column in set(right) else "---" for column in range(len(headings))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, rule, *rows))


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values):.1f}" if len(values) > 1 else "")


def link(text: str, files: Sequence[Path], base: Path) -> str:
    """The text as a link to its file; further files after it."""
    if not files:
        return text
    first, *more = (Path(os.path.relpath(file, base)).as_posix() for file in files)
    return f"[{text}]({first})" + "".join(f" [+]({file})" for file in more)


def length(result: Result) -> str:
    """1 M × 5: updates and seeds; in bold where that is less than the paper's."""
    said = spaced(str(result.protocol))
    return f"**{said}**" if result.protocol.shorter else said


def spaced(text: str) -> str:
    """1 M and 200 k, as the documents write them."""
    return re.sub(r"(\d)([Mk])\b", r"\1 \2", text)


def paper_of(result: Result) -> Printed | None:
    return printed(result.algorithm, result.dataset)


def difference(result: Result) -> str:
    paper = paper_of(result)
    return NOTHING if paper is None else f"{np.mean(result.scores) - paper.mean:+.1f}"


def agree(result: Result) -> str:
    """Whether Student's 95 % intervals of both means overlap, and Welch's p where that hides a difference."""
    paper = paper_of(result)
    if paper is None:
        return NOTHING
    return agreement(result.scores, *paper, SEEDS)


# -- tables ----------------------------------------------------------------------------------------------------------


def readme(stored: Stored, base: Path) -> str:
    """SCORE on the fifteen data sets beside the paper's."""
    ran = [stored.results[key] for dataset in paper_datasets() if (key := ("score", dataset)) in stored.results]
    rows = []
    for dataset in paper_datasets():
        paper, mine, picked = paper_table()[dataset, "SCORE"], stored.results.get(("score", dataset)), stored.chosen
        common = ["not run yet", NOTHING, NOTHING]
        if mine is not None:
            score = link(spread(mine.scores), mine.files, base) + shorter(mine)
            common = [score, fresh(mine, base), apart(mine)]
        chosen = [NOTHING, NOTHING]
        if dataset in picked:
            chosen = [link(spread(picked[dataset].scores), picked[dataset].files, base), apart(picked[dataset])]
        rows.append([dataset, NOTHING if mine is None else mine.data, str(paper), *common, *chosen])
    whole = [result for result in ran if not result.protocol.shorter]
    if len(whole) > 1:
        rows.append(mean_row(whole, stored.with_choices()))
    results = os.path.relpath(ROOT / "docs" / "results.md", base)
    headings = ["data set", "data", "paper", "one setting for all", "100 episodes", "apart", "setting chosen", "apart"]
    said = (
        f"SCORE has run on stand-ins for {len(whole)} of the paper's 15 data sets in full; none is D4RL's own file: "
        "*replicas* are recorded with this project's policies, *re-collected* data with D4RL's. Normalised score in "
        "percent of the last policies, mean ± std over seeds (in the last line the mean of the deviations); 10 "
        "episodes, and 100 fresh ones of the same policies. 1 M updates × 5 seeds as in the paper, unless a cell says "
        "in bold that it was less: such cells are in no mean. The paper picks β and γ_bc for each data set. *One "
        "setting for all* has β 0.2 and γ_bc 0.98; *setting chosen* is picked from the paper's grid by other seeds "
        f"than the reported ones, on {len(stored.chosen)} of 15 data sets so far. Its mean has the one setting on the "
        "others, so that it is not yet what the paper's protocol gives. *Apart*: from the paper, and whether the 95 % "
        "intervals of both means overlap, with Welch's p where they do and the means still differ at 5 %. Every score "
        f"of ours links to its file; [docs/results.md]({results}) has the rules, all methods, and verdicts on the "
        "paper's claims."
    )
    picture = f"![SCORE beside the paper's]({os.path.relpath(FIGURES / 'score.svg', base)})"
    paragraphs = (textwrap.fill(text, 120, break_on_hyphens=False) for text in (said, others_said(stored)))
    return "\n\n".join([table(headings, rows), *paragraphs, picture])


def apart(result: Result) -> str:
    """How far it is from the paper's, and whether the intervals overlap."""
    return f"{difference(result)} ({agree(result)})"


def others_said(stored: Stored) -> str:
    """Which other methods have been measured, and how far."""
    number = {a: sum((a, dataset) in stored.results for dataset in paper_datasets()) for a in algorithm_names()}
    whole = {a for a in number if sum(not r.protocol.shorter for (b, _), r in stored.results.items() if a == b) == 15}
    parts = {
        "in full as well": [algorithm_title(a) for a in number if a in whole and a != "score"],
        "on fewer data sets, more briefly or with fewer seeds": [
            f"{algorithm_title(a)} ({n})" for a, n in number.items() if n and a not in whole
        ],
        "not yet, with their authors' settings": [algorithm_title(a) for a, n in number.items() if not n],
    }
    said = "; ".join(f"{how}: {', '.join(names)}" for how, names in parts.items() if names)
    return (
        f"Methods besides SCORE, with the number of data sets: {said}. All of them are tested against independent "
        "transcriptions of their equations."
    )


def fresh(result: Result, base: Path) -> str:
    return NOTHING if result.fresh is None else link(spread(result.fresh), result.files, base)


def mean_row(ran: Sequence[Result], chosen: Mapping[str, Result]) -> list[str]:
    """As the paper's overall row: the mean of the means ± the mean of the deviations, of all over the same sets."""
    papers = [paper_table()[result.dataset, "SCORE"] for result in ran]
    theirs = Printed(float(np.mean([p.mean for p in papers])), float(np.mean([p.std for p in papers])))
    mean, said = overall(ran)
    row = [f"mean of these {len(ran)}", "", str(theirs), said, "", f"{mean - theirs.mean:+.1f}"]
    if not all(result.dataset in chosen for result in ran):
        return [*row, NOTHING, NOTHING]
    mean, said = overall([chosen[result.dataset] for result in ran])
    return [*row, said, f"{mean - theirs.mean:+.1f}"]


def overall(results: Sequence[Result]) -> tuple[float, str]:
    mean = float(np.mean([np.mean(result.scores) for result in results]))
    return mean, f"{mean:.1f} ± {np.mean([np.std(result.scores) for result in results]):.1f}"


def methods(stored: Stored, base: Path) -> str:
    """Every method on every data set for which something is stored."""
    headings = ["data set", "method", "data", "rows", "precision", "updates × seeds", "here", "100 episodes", "paper"]
    headings += ["difference", "overlap"]
    rows = []
    for dataset in paper_datasets():
        for result in (r for (_, of), r in stored.results.items() if of == dataset):
            rows.append([dataset, *described(result, base)])
    if not rows:
        return "Nothing is stored yet."
    lines = [table(headings, rows, (3, 9))]
    lines.append(others_said(stored))
    if stored.variants:
        lines.append(f"With other settings than their authors': {listed(stored.variants, base)}.")
    if stored.others:
        lines.append(f"Stored as well, and shown nowhere else: {listed(stored.others, base)}.")
    return "\n\n".join(lines)


def listed(results: Sequence[Result], base: Path) -> str:
    return "; ".join(
        f"{algorithm_title(r.algorithm)} on {r.dataset} ("
        + ", ".join(filter(None, (r.unusual, r.data, length(r), r.precision)))
        + f"): {link(spread(r.scores), r.files, base)}"
        + ("" if (paper := paper_of(r)) is None or not r.unusual else f", paper {paper}")
        for r in results
    )


def described(result: Result, base: Path) -> list[str]:
    paper = paper_of(result)
    rows = NOTHING if result.rows is None else f"{result.rows:,}"
    score = link(spread(result.scores), result.files, base)
    numbers = [score, fresh(result, base), NOTHING if paper is None else str(paper), difference(result), agree(result)]
    return [algorithm_title(result.algorithm), result.data, rows, result.precision, length(result), *numbers]


def grids(stored: Stored, base: Path) -> str:
    """SCORE with settings chosen for each data set, beside the common setting and the paper."""
    if not stored.choices:
        return "Not run yet."
    headings = ["data set", "chosen", "by seeds", "their mean", "common setting's", "reported seeds", "100 episodes"]
    headings += ["common setting", "paper", "difference", "overlap"]
    rows = []
    for choice in stored.choices:
        seeds, mine = ", ".join(map(str, choice.seeds)), choice.result
        common = stored.results.get(("score", choice.dataset))
        rows.append(
            [
                choice.dataset,
                f"β {choice.beta:g}, γ_bc {choice.bc_decay:g}",
                link(seeds, [choice.file], base),
                f"{choice.chosen:.1f}",
                "diverged" if choice.common is None else f"{choice.common:.1f}",
                "not run yet" if mine is None else link(spread(mine.scores), mine.files, base) + shorter(mine),
                NOTHING if mine is None else fresh(mine, base),
                NOTHING if common is None else link(spread(common.scores), common.files, base),
                str(paper_table()[choice.dataset, "SCORE"]),
                NOTHING if mine is None else difference(mine),
                NOTHING if mine is None else agree(mine),
            ]
        )
    picture = f"![all settings]({os.path.relpath(FIGURES / 'grid.svg', base)})"
    return f"{table(headings, rows, (3, 4, 9))}\n\n{picture}"


def planned(stored: Stored, base: Path) -> str:
    """What is still to be trained, as jobs for methods.py."""
    jobs, grids = missing(stored), without_grid(stored)
    if not jobs and not grids:
        return "Nothing: all of it is stored."
    rows = []
    for job in jobs:
        times = ", ".join(f"{time / 60:.0f} min on {device}" for device, time in seconds(job, stored.speeds).items())
        rows.append([algorithm_title(job.algorithm), f"`{job}`", spaced(job.lacks), times or NOTHING])
    if grids:
        lacking = "not run" if len(grids) == len(paper_datasets()) else f"not run on these {len(grids)} data sets"
        rows.append(["SCORE's grid", f"`grid.py choose` and `report`, `--data {'+'.join(grids)}`", lacking, NOTHING])
    return table(["method", "job", "what is missing", "its updates take at most"], rows)


def shorter(result: Result) -> str:
    return f" ({length(result)})" if result.protocol.shorter else ""


def in_companies(stored: Stored) -> tuple[list[Company], list[str]]:
    """Methods that finished on the same data sets; what was measured more briefly than the paper's says so."""
    protocols: dict[str, list[Any]] = {}
    for (algorithm, _), result in stored.results.items():
        protocols.setdefault(algorithm, []).append(result.protocol)
    names = {
        algorithm: algorithm_title(algorithm) + (f", {span(mine)}" if any(p.shorter for p in mine) else "")
        for algorithm, mine in protocols.items()
    }
    scores: dict[str, dict[str, Sequence[float]]] = {}
    for (algorithm, dataset), result in stored.results.items():
        scores.setdefault(names[algorithm], {})[dataset] = result.scores
    return companies(scores)


def aggregate(stored: Stored, base: Path) -> str:
    found, notes = in_companies(stored)
    headings = ["method", "median", "interquartile mean", "mean", "gap to 100"]
    blocks = []
    for company in found:
        matrices = with_chosen(stored, company)
        number = len(company.datasets)
        names = "all" if number == len(paper_datasets()) else ", ".join(company.datasets)
        rows = [
            [spaced(method), *(interval(mine[name]) for name in AGGREGATES)]
            for method, mine in aggregates(matrices).items()
        ]
        blocks.append(f"Over {number} of 15 data sets ({names}):\n\n{table(headings, rows)}")
    if any(len(company.matrices) > 1 for company in found):
        blocks.append(f"![performance profiles]({os.path.relpath(FIGURES / 'profiles.svg', base)})")
    return "\n\n".join([*blocks, *notes]) or "Nothing is stored yet."


def with_chosen(stored: Stored, company: Company) -> dict[str, Any]:
    """The company's scores, and SCORE's with chosen settings beside those of the common one, where they differ."""
    ours, name = stored.with_choices(), algorithm_title("score")
    number = len(stored.chosen.keys() & set(company.datasets))
    if name not in company.matrices or not number or not set(company.datasets) <= ours.keys():
        return dict(company.matrices)
    chosen = score_matrix(name, {dataset: ours[dataset].scores for dataset in company.datasets})
    found = {}
    for method, matrix in company.matrices.items():
        found[method] = matrix
        if method == name:
            found[f"{name}, settings chosen on {number}"] = chosen
    return found


def interval(estimate: Estimate) -> str:
    return f"{estimate.value:.1f}" + (f" [{estimate.low:.1f}, {estimate.high:.1f}]" if estimate.has_interval else "")


def claims(stored: Stored, base: Path) -> str:
    rows = []
    for claim in CLAIMS:
        verdict = claim.judge(stored)
        sources = ", ".join(link(f"{file.parent.name}/{file.name}", [file], base) for file in verdict.files)
        rows.append([claim.title, f"**{verdict.word}**", spaced(verdict.because), sources or NOTHING])
    return table(["the paper says", "here", "numbers, [95 % interval]", "from"], rows)


def rules(stored: Stored, base: Path) -> str:
    return "\n".join(f"- **{claim.title}**: {claim.rule}" for claim in CLAIMS)


TABLES: dict[str, Callable[[Stored, Path], str]] = {
    "readme": readme,
    "methods": methods,
    "grid": grids,
    "planned": planned,
    "aggregates": aggregate,
    "claims": claims,
    "rules": rules,
}


def rewritten(text: str, stored: Stored, base: Path) -> str:
    """A document that lies in `base`, with its tables as they are stored."""
    return with_tables(text, "evidence", {name: partial(make, stored, base) for name, make in TABLES.items()})


# -- figures ---------------------------------------------------------------------------------------------------------


def drawn_numbers(stored: Stored) -> dict[str, list[float]]:
    """What the figures show; stands in their files, so that one that is out of date can be told."""
    return {
        **{
            f"{algorithm} {dataset}": _rounded(result.scores) for (algorithm, dataset), result in stored.results.items()
        },
        **{f"chosen {dataset}": _rounded(result.scores) for dataset, result in stored.chosen.items()},
        **{f"grid {choice.dataset}": _rounded(choice.means.values()) for choice in stored.choices},
    }


def _rounded(scores: Iterable[float]) -> list[float]:
    return [round(score, 4) for score in scores]


@styled
def score_figure(stored: Stored) -> Any:
    """SCORE and the paper's SCORE on each data set, means with 95 % intervals."""
    figure, ((axis,),) = new_figure(1, 1, 7.2, 5.4)
    datasets = paper_datasets()
    for place, dataset in enumerate(datasets):
        paper, mine = paper_table()[dataset, "SCORE"], stored.results.get(("score", dataset))
        if mine is not None:
            label = "here, shorter" if mine.protocol.shorter else "here, one setting for all"
            face = "white" if mine.protocol.shorter else BLUE
            _dot(axis, mean_over_seeds(np.array(mine.scores)), place - 0.2, BLUE, "o", label, face)
        if dataset in stored.chosen:
            chosen = mean_over_seeds(np.array(stored.chosen[dataset].scores))
            _dot(axis, chosen, place, GREEN, "s", "here, setting chosen")
        _dot(
            axis,
            printed_interval(*paper, SEEDS),
            place + 0.2,
            ORANGE,
            "D",
            "paper, on D4RL's own data",
        )
    kinds = {d: r.data for (algorithm, d), r in stored.results.items() if algorithm == "score"}
    axis.set_yticks(range(len(datasets)))
    names = axis.set_yticklabels([f"{dataset} ({kinds.get(dataset, 'not run yet')})" for dataset in datasets])
    for name, dataset in zip(names, datasets, strict=True):
        name.set_color(INK if dataset in kinds else FAINT)
    axis.set_ylim(len(datasets) - 0.4, -0.6)
    axis.set_xlim(-8, 122)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")
    for edge in (2.5, 5.5, 8.5, 11.5):
        axis.axhline(edge, color=FAINT, linewidth=0.5, alpha=0.5)
    axis.set_xlabel("normalised score (%), mean and 95 % interval over seeds")
    axis.set_title("SCORE: this code beside the paper", loc="left", color=INK)
    handles = dict(sorted(zip(*reversed(axis.get_legend_handles_labels()), strict=True), key=lambda item: item[0]))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    return figure


def _dot(
    axis: Any, estimate: Estimate, place: float, colour: str, marker: str, label: str, face: str | None = None
) -> None:
    if estimate.has_interval:
        ends = [max(estimate.low, -8), min(estimate.high, 122)]
        axis.plot(ends, [place, place], color=colour, linewidth=2.2, alpha=0.55, solid_capstyle="butt")
    axis.plot(estimate.value, place, marker=marker, markersize=5, color=colour, markerfacecolor=face or colour,
              linestyle="none", label=label)  # fmt: skip


def grid_figure(choices: Sequence[Choice]) -> Any:
    """All settings of every grid: the mean by which one of them was chosen, that one framed."""
    drawn = [SettingGrid(choice.dataset, choice.means, (choice.beta, choice.bc_decay)) for choice in choices]
    return setting_grids(drawn, BETAS, DECAYS, ("β", "γ_bc"))


def figures(stored: Stored) -> dict[str, Any]:
    found = {"score": score_figure(stored)}
    if stored.choices:
        found["grid"] = grid_figure(stored.choices)
    together = [company for company in in_companies(stored)[0] if len(company.matrices) > 1]
    if together:
        figure = performance_profiles(profiles(with_chosen(stored, together[0])), width=6.0)
        number = len(together[0].datasets)
        figure.suptitle(f"Over {number} of 15 data sets", fontsize=9, x=0.01, ha="left")
        found["profiles"] = figure
    return found


def draw(stored: Stored, folder: Path) -> None:
    """On white, so that they can be read in dark mode too; the same bytes for the same results."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    about = {"Date": None, "Description": json.dumps(drawn_numbers(stored))}
    for name, figure in figures(stored).items():
        with matplotlib.rc_context({"svg.hashsalt": "score-rl"}):
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata=about)


def figure_numbers(path: Path) -> Any:
    """The numbers that a figure was drawn from."""
    from xml.etree import ElementTree

    found = ElementTree.parse(path).find(".//{http://purl.org/dc/elements/1.1/}description")
    return None if found is None or found.text is None else json.loads(found.text)


# -- the command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if a document or figure differs from what is stored."""


def main(asked: Arguments) -> int:
    stored = read()
    documents = [ROOT / name for name in DOCUMENTS]
    stale = refresh(documents, lambda text, folder: rewritten(text, stored, folder), change=not asked.check)
    if asked.check:
        stale += [path for path in sorted(FIGURES.glob("*.svg")) if figure_numbers(path) != drawn_numbers(stored)]
    else:
        draw(stored, FIGURES)
    return tell(stale, ROOT, "make evidence" if asked.check else None)


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
