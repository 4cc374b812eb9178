"""SCORE's batch size: 100, with which its authors ran their code, beside 256, the default here."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from score_rl.paper.evidence.cells import in_fresh_episodes, length, link, spread, table
from score_rl.paper.evidence.records import Evidence, Result
from score_rl.report.published import paper_datasets
from score_rl.report.statistics import agreement

SMALLER = 100


def pairs(evidence: Evidence) -> Iterator[tuple[Result, Result]]:
    """Results with batch 256 and with batch 100, of one data set and one protocol, in the paper's order."""
    usual = [result for result in (*evidence.results.values(), *evidence.others) if result.algorithm == "score"]
    smaller = [r for r in evidence.variants if r.algorithm == "score" and r.unusual == f"batch_size = {SMALLER}"]
    for result in sorted(smaller, key=lambda result: paper_datasets().index(result.dataset)):
        for other in usual:
            if (other.dataset, other.data, other.protocol) == (result.dataset, result.data, result.protocol):
                yield other, result


def batch_size(evidence: Evidence, base: Path) -> str:
    """Both on every data set on which both have run."""
    rows = []
    for usual, smaller in pairs(evidence):
        difference = np.mean(smaller.scores) - np.mean(usual.scores)
        theirs = float(np.mean(usual.scores)), float(np.std(usual.scores)), len(usual.scores)
        rows.append(
            [
                usual.dataset,
                length(usual),
                *(link(spread(result.scores), result.files, base) for result in (usual, smaller)),
                *(in_fresh_episodes(result, base) for result in (usual, smaller)),
                f"{difference:+.1f} ({agreement(smaller.scores, *theirs)})",
            ]
        )
    if not rows:
        return f"{SMALLER} beside 256 on three data sets: not measured yet."
    headings = ["data set", "updates × seeds", "256", f"{SMALLER}", "256, 100 episodes", f"{SMALLER}, 100 episodes"]
    return table([*headings, f"{SMALLER} less 256 (95 % intervals)"], rows)
