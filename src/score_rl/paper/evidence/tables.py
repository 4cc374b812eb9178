"""The tables of evidence, by name: each as Markdown for a document that lies in the folder `base`."""

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from score_rl.algorithms.registry import algorithm_names
from score_rl.paper.evidence.batch_sizes import batch_size
from score_rl.paper.evidence.cells import (
    NOTHING,
    apart,
    difference,
    in_fresh_episodes,
    interval,
    length,
    length_if_shorter,
    link,
    overall,
    overlaps,
    paper_of,
    spaced,
    spread,
    table,
)
from score_rl.paper.evidence.claims import CLAIMS
from score_rl.paper.evidence.companies import in_companies, with_chosen
from score_rl.paper.evidence.records import Evidence, Result
from score_rl.paper.evidence.wanted import missing, seconds, without_grid
from score_rl.report.published import Printed, paper_datasets, paper_table
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import AGGREGATES, aggregates

FIGURES = Path("docs", "figures", "evidence")  # in a checkout


def image(title: str, evidence: Evidence, name: str, base: Path) -> str:
    return f"![{title}]({os.path.relpath(evidence.checkout / FIGURES / name, base)})"


# -- README ----------------------------------------------------------------------------------------------------------


def readme(evidence: Evidence, base: Path) -> str:
    """SCORE on the fifteen data sets beside the paper's."""
    ran = [result for dataset in paper_datasets() if (result := evidence.results.get(("score", dataset))) is not None]
    rows = [readme_row(evidence, dataset, base) for dataset in paper_datasets()]
    full = [result for result in ran if not result.protocol.shorter]
    if len(full) > 1:
        rows.append(mean_row(full, evidence.with_choices()))
    headings = ["data set", "data", "paper", "one setting for all", "100 episodes", "apart", "setting chosen", "apart"]
    results = os.path.relpath(evidence.checkout / "docs" / "results.md", base)
    texts = (readme_text(len(full), len(evidence.chosen), results), other_methods(evidence))
    paragraphs = (textwrap.fill(text, 120, break_on_hyphens=False) for text in texts)
    picture = image("SCORE beside the paper's", evidence, "score.svg", base)
    return "\n\n".join([table(headings, rows), *paragraphs, picture])


def readme_row(evidence: Evidence, dataset: str, base: Path) -> list[str]:
    paper, mine = paper_table()[dataset, "SCORE"], evidence.results.get(("score", dataset))
    common = ["not run yet", NOTHING, NOTHING]
    if mine is not None:
        score = link(spread(mine.scores), mine.files, base) + length_if_shorter(mine)
        common = [score, in_fresh_episodes(mine, base), apart(mine)]
    chosen = [NOTHING, NOTHING]
    if dataset in evidence.chosen:
        picked = evidence.chosen[dataset]
        chosen = [link(spread(picked.scores), picked.files, base), apart(picked)]
    return [dataset, NOTHING if mine is None else mine.data, str(paper), *common, *chosen]


def readme_text(full: int, chosen: int, results: str) -> str:
    return (
        f"SCORE has run on stand-ins for {full} of the paper's 15 data sets in full; none is D4RL's own file: "
        "*replicas* are recorded with this project's policies, *re-collected* data with D4RL's. Normalised score in "
        "percent of the last policies, mean ± std over seeds (in the last line the mean of the deviations); 10 "
        "episodes, and 100 fresh ones of the same policies. 1 M updates × 5 seeds as in the paper, unless a cell says "
        "in bold that it was less: such cells are in no mean. The paper picks β and γ_bc for each data set. *One "
        "setting for all* has β 0.2 and γ_bc 0.98; *setting chosen* is picked from the paper's grid by other seeds "
        f"than the reported ones, on {chosen} of 15 data sets so far. Its mean has the one setting on the "
        "others, so that it is not yet what the paper's protocol gives. *Apart*: from the paper, and whether the 95 % "
        "intervals of both means overlap, with Welch's p where they do and the means still differ at 5 %. Every score "
        f"of ours links to its file; [docs/results.md]({results}) has the rules, all methods, and verdicts on the "
        "paper's claims."
    )


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


def mean_row(ran: Sequence[Result], chosen: Mapping[str, Result]) -> list[str]:
    """The mean of the means ± the mean of the deviations, as in the paper's overall row, over the same data sets."""
    papers = [paper_table()[result.dataset, "SCORE"] for result in ran]
    theirs = Printed(float(np.mean([p.mean for p in papers])), float(np.mean([p.std for p in papers])))
    mean, text = overall(ran)
    row = [f"mean of these {len(ran)}", "", str(theirs), text, "", f"{mean - theirs.mean:+.1f}"]
    if not all(result.dataset in chosen for result in ran):
        return [*row, NOTHING, NOTHING]
    mean, text = overall([chosen[result.dataset] for result in ran])
    return [*row, text, f"{mean - theirs.mean:+.1f}"]


# -- all methods -----------------------------------------------------------------------------------------------------


def methods(evidence: Evidence, base: Path) -> str:
    """Every method on every data set for which something is stored."""
    headings = ["data set", "method", "data", "rows", "precision", "updates × seeds", "here", "100 episodes", "paper"]
    headings += ["difference", "overlap"]
    rows = [
        [dataset, *method_cells(result, base)]
        for dataset in paper_datasets()
        for (_, of), result in evidence.results.items()
        if of == dataset
    ]
    if not rows:
        return "Nothing is stored yet."
    paragraphs = [table(headings, rows, (3, 9)), other_methods(evidence)]
    if evidence.variants:
        paragraphs.append(f"With other settings than their authors': {listed(evidence.variants, base)}.")
    if evidence.others:
        paragraphs.append(f"Stored as well, and shown nowhere else: {listed(evidence.others, base)}.")
    return "\n\n".join(paragraphs)


def method_cells(result: Result, base: Path) -> list[str]:
    paper = paper_of(result)
    rows = NOTHING if result.rows is None else f"{result.rows:,}"
    score = link(spread(result.scores), result.files, base)
    beside = [NOTHING if paper is None else str(paper), difference(result), overlaps(result)]
    about = [algorithm_title(result.algorithm), result.data, rows, result.precision, length(result)]
    return [*about, score, in_fresh_episodes(result, base), *beside]


def listed(results: Sequence[Result], base: Path) -> str:
    return "; ".join(
        f"{algorithm_title(r.algorithm)} on {r.dataset} ("
        + ", ".join(filter(None, (r.unusual, r.data, length(r), r.precision)))
        + f"): {link(spread(r.scores), r.files, base)}"
        + ("" if (paper := paper_of(r)) is None or not r.unusual else f", paper {paper}")
        for r in results
    )


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
    found, notes = in_companies(evidence)
    headings = ["method", "median", "interquartile mean", "mean", "gap to 100"]
    blocks = []
    for company in found:
        number = len(company.datasets)
        names = "all" if number == len(paper_datasets()) else ", ".join(company.datasets)
        rows = [
            [spaced(method), *(interval(mine[name]) for name in AGGREGATES)]
            for method, mine in aggregates(with_chosen(evidence, company)).items()
        ]
        blocks.append(f"Over {number} of 15 data sets ({names}):\n\n{table(headings, rows)}")
    if any(len(company.matrices) > 1 for company in found):
        blocks.append(image("performance profiles", evidence, "profiles.svg", base))
    return "\n\n".join([*blocks, *notes]) or "Nothing is stored yet."


def claims(evidence: Evidence, base: Path) -> str:
    rows = []
    for claim in CLAIMS:
        verdict = claim.judge(evidence)
        sources = ", ".join(link(f"{file.parent.name}/{file.name}", [file], base) for file in verdict.files)
        rows.append([claim.title, f"**{verdict.word}**", spaced(verdict.because), sources or NOTHING])
    return table(["the paper says", "here", "numbers, [95 % interval]", "from"], rows)


def rules(evidence: Evidence, base: Path) -> str:
    return "\n".join(f"- **{claim.title}**: {claim.rule}" for claim in CLAIMS)


TABLES: dict[str, Callable[[Evidence, Path], str]] = {
    "readme": readme,
    "methods": methods,
    "grid": grid,
    "planned": planned,
    "aggregates": aggregate,
    "claims": claims,
    "rules": rules,
    "batch_size": batch_size,
}
