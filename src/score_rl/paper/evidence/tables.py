"""The tables of evidence, by name: each as Markdown for a document that lies in the folder `base`."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from score_rl.algorithms.registry import algorithm_names
from score_rl.paper.evidence.batch_sizes import batch_size
from score_rl.paper.evidence.cells import (
    NOTHING,
    difference,
    in_fresh_episodes,
    interval,
    late,
    length,
    length_if_shorter,
    link,
    overlaps,
    paper_of,
    spaced,
    spread,
    table,
)
from score_rl.paper.evidence.claims import CLAIMS
from score_rl.paper.evidence.companies import in_companies, with_chosen
from score_rl.paper.evidence.first_page import curves, in_short, method_list
from score_rl.paper.evidence.found import found
from score_rl.paper.evidence.main_table import image, main_table
from score_rl.paper.evidence.ogbench_table import ogbench, trials
from score_rl.paper.evidence.records import Evidence, Result
from score_rl.paper.evidence.six_sets import FOLDER as SIX_SETS
from score_rl.paper.evidence.wanted import missing, seconds, without_grid
from score_rl.report.published import paper_datasets, paper_table
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import AGGREGATES, aggregates

# -- all methods -----------------------------------------------------------------------------------------------------


def other_methods(evidence: Evidence) -> str:
    """Which other methods have been measured, and how far."""
    number = {a: sum((a, dataset) in evidence.results for dataset in paper_datasets()) for a in algorithm_names()}
    full = {a for a in number if sum(not r.protocol.shorter for (b, _), r in evidence.results.items() if a == b) == 15}
    parts = {
        "in full as well": [algorithm_title(a) for a in number if a in full and a != "score"],
        "on fewer data sets, more briefly or with fewer seeds": [
            f"{algorithm_title(a)} ({n})" for a, n in number.items() if n and a not in full
        ],
        "not yet, with their authors' settings": [algorithm_title(a) for a, n in number.items() if not n],
    }
    listed = "; ".join(f"{how}: {', '.join(names)}" for how, names in parts.items() if names)
    return (
        f"Methods besides SCORE, with the number of data sets: {listed}. All of them are tested against independent "
        "transcriptions of their equations."
    )


def methods(evidence: Evidence, base: Path) -> str:
    """Every method on every data set for which something is stored."""
    headings = ["data set", "method", "data", "rows", "precision", "updates × seeds", "here"]
    headings += ["last six [95 %]", "100 episodes", "paper", "difference", "overlap"]
    rows = [
        [dataset, *method_cells(result, base)]
        for dataset in paper_datasets()
        for (_, of), result in evidence.results.items()
        if of == dataset
    ]
    if not rows:
        return "Nothing is stored yet."
    paragraphs = [table(headings, rows, (3, 10)), other_methods(evidence)]
    if evidence.variants:
        paragraphs.append(f"These runs have other settings than their authors':\n\n{listed(evidence.variants, base)}")
    unseen = [result for result in evidence.others if not any(SIX_SETS in file.parts for file in result.files)]
    if unseen:
        paragraphs.append(f"These runs are stored too, and no table shows them:\n\n{listed(unseen, base)}")
    return "\n\n".join(paragraphs)


def method_cells(result: Result, base: Path) -> list[str]:
    paper = paper_of(result)
    rows = NOTHING if result.rows is None else f"{result.rows:,}"
    score = link(spread(result.scores), result.files, base)
    beside = [NOTHING if paper is None else str(paper), difference(result), overlaps(result)]
    about = [algorithm_title(result.algorithm), result.data, rows, result.precision, length(result)]
    return [*about, score, late(result), in_fresh_episodes(result, base), *beside]


def listed(results: Sequence[Result], base: Path) -> str:
    """A line for each result that the tables above leave out. The paper's cell is beside other settings alone."""
    headings = ["method", "data set", "settings", "data", "updates × seeds", "precision", "here", "paper"]
    rows = []
    for result in results:
        paper = paper_of(result) if result.unusual else None
        about = [algorithm_title(result.algorithm), result.dataset, result.unusual or "its authors'", result.data]
        score = link(spread(result.scores), result.files, base)
        rows.append([*about, length(result), result.precision, score, NOTHING if paper is None else str(paper)])
    return table(headings, rows)


# -- chosen settings -------------------------------------------------------------------------------------------------


def grid(evidence: Evidence, base: Path) -> str:
    """SCORE with settings chosen for each data set, beside the common setting and the paper."""
    if not evidence.choices:
        return "Not run yet."
    headings = ["data set", "chosen", "by seeds", "their mean", "common setting's", "reported seeds", "100 episodes"]
    headings += ["common setting", "paper", "difference", "overlap"]
    rows = []
    for choice in evidence.choices:
        seeds, mine = ", ".join(map(str, choice.seeds)), choice.result
        common = evidence.results.get(("score", choice.dataset))
        rows.append(
            [
                choice.dataset,
                f"β {choice.beta:g}, γ_bc {choice.bc_decay:g}",
                link(seeds, [choice.file], base),
                f"{choice.chosen:.1f}",
                "diverged" if choice.common is None else f"{choice.common:.1f}",
                "not run yet"
                if mine is None
                else link(spread(mine.scores), mine.files, base) + length_if_shorter(mine),
                NOTHING if mine is None else in_fresh_episodes(mine, base),
                NOTHING if common is None else link(spread(common.scores), common.files, base),
                str(paper_table()[choice.dataset, "SCORE"]),
                NOTHING if mine is None else difference(mine),
                NOTHING if mine is None else overlaps(mine),
            ]
        )
    return f"{table(headings, rows, (3, 4, 9))}\n\n{image('all settings', evidence, 'grid.svg', base)}"


def planned(evidence: Evidence, base: Path) -> str:
    """What is still to be trained, as jobs for methods.py."""
    jobs, grids = missing(evidence), without_grid(evidence)
    if not jobs and not grids:
        return "Nothing: all of it is stored."
    rows = []
    for job in jobs:
        times = ", ".join(f"{time / 60:.0f} min on {device}" for device, time in seconds(job, evidence.speeds).items())
        rows.append([algorithm_title(job.algorithm), f"`{job}`", spaced(job.lacks), times or NOTHING])
    if grids:
        lacking = "not run" if len(grids) == len(paper_datasets()) else f"not run on these {len(grids)} data sets"
        rows.append(["SCORE's grid", f"`grid.py choose` and `report`, `--data {'+'.join(grids)}`", lacking, NOTHING])
    return table(["method", "job", "what is missing", "its updates take at most"], rows)


# -- comparisons -----------------------------------------------------------------------------------------------------


def aggregate(evidence: Evidence, base: Path) -> str:
    companies, notes = in_companies(evidence)
    headings = ["method", "median", "interquartile mean", "mean", "gap to 100"]
    blocks = []
    for company in companies:
        number = len(company.datasets)
        names = "all" if number == len(paper_datasets()) else ", ".join(company.datasets)
        rows = [
            [spaced(method), *(interval(mine[name]) for name in AGGREGATES)]
            for method, mine in aggregates(with_chosen(evidence, company)).items()
        ]
        blocks.append(f"Over {number} of 15 data sets ({names}):\n\n{table(headings, rows)}")
    if any(len(company.matrices) > 1 for company in companies):
        blocks.append(image("performance profiles", evidence, "profiles.svg", base))
    return "\n\n".join([*blocks, *notes]) or "Nothing is stored yet."


def claims(evidence: Evidence, base: Path) -> str:
    rows = []
    for claim in CLAIMS:
        verdict = claim.judge(evidence)
        sources = " ".join(link(str(number), [file], base) for number, file in enumerate(verdict.files, 1))
        because = re.sub(r"([;.]) ", r"\1<br>", spaced(verdict.because))  # each part in a line of its own
        rows.append([claim.title, f"**{verdict.word}**", because, sources or NOTHING])
    return table(["the paper says", "here", "numbers, [95 % interval]", "from"], rows)


def rules(evidence: Evidence, base: Path) -> str:
    return "\n".join(f"- **{claim.title}**: {claim.rule}" for claim in CLAIMS)


TABLES: dict[str, Callable[[Evidence, Path], str]] = {
    "readme": in_short,
    "curves": curves,
    "registry": method_list,
    "found": found,
    "main": main_table,
    "methods": methods,
    "grid": grid,
    "planned": planned,
    "aggregates": aggregate,
    "claims": claims,
    "rules": rules,
    "batch_size": batch_size,
    "ogbench": ogbench,
    "ogbench_trials": trials,
}
