"""The first screen of docs/results.md: what was found, in a few lines that are made from stored results."""

from pathlib import Path

import numpy as np

from score_rl.paper.evidence.cells import overall, overlaps
from score_rl.paper.evidence.claims import CLAIMS
from score_rl.paper.evidence.main_table import in_full, printed_mean
from score_rl.paper.evidence.records import Evidence, Result
from score_rl.report.published import paper_table


def found(evidence: Evidence, base: Path) -> str:
    """Means, agreement by data set, and the verdicts on the paper's claims."""
    full = in_full(evidence)
    if not full:
        return "Nothing is stored yet."
    lines = [_means(evidence, full), *_agreement(full, "one setting for all"), *_chosen(evidence), *_verdicts(evidence)]
    return "\n".join(f"- {line}" for line in lines)


def _means(evidence: Evidence, full: list[Result]) -> str:
    chosen = evidence.with_choices()
    said = f"**SCORE's mean over {len(full)} data sets** is {overall(full)[0]:.1f} with one setting for all"
    if evidence.chosen and all(result.dataset in chosen for result in full):
        mean = overall([chosen[result.dataset] for result in full])[0]
        said += f", and {mean:.1f} with settings chosen on {len(evidence.chosen)} of them"
    return f"{said}. The paper prints {printed_mean(full).mean:.1f}."


def _agreement(results: list[Result], how: str) -> list[str]:
    """On how many data sets the intervals meet those of the paper, and where they do not."""
    apart = [result for result in results if overlaps(result).startswith("no")]
    said = (
        f"**With {how}** the 95 % interval meets the paper's on {len(results) - len(apart)} of {len(results)} data sets"
    )
    if not apart:
        return [f"{said}."]
    return [f"{said}. It does not on {', '.join(map(_with_difference, apart))}."]


def _chosen(evidence: Evidence) -> list[str]:
    chosen = list(evidence.chosen.values())
    return _agreement(chosen, "a setting chosen for each by other seeds") if chosen else []


def _with_difference(result: Result) -> str:
    paper = paper_table()[result.dataset, "SCORE"]
    return f"{result.dataset} ({np.mean(result.scores) - paper.mean:+.1f})"


def _verdicts(evidence: Evidence) -> list[str]:
    """The paper's claims by verdict."""
    by_word: dict[str, list[str]] = {}
    for claim in CLAIMS:
        by_word.setdefault(claim.judge(evidence).word, []).append(claim.title)
    return [f"**{word.capitalize()}**: {'; '.join(titles)}." for word, titles in by_word.items()]
