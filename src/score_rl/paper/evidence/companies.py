"""Methods that finished on the same data sets: what aggregates and profiles compare."""

from collections.abc import Sequence
from typing import Any

from score_rl.paper.evidence.records import Evidence
from score_rl.paper.experiments.protocols import span
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import Company, companies, score_matrix


def in_companies(evidence: Evidence) -> tuple[list[Company], list[str]]:
    """Methods that finished on the same data sets; what was measured more briefly than the paper's says so."""
    protocols: dict[str, list[Any]] = {}
    for (algorithm, _), result in evidence.results.items():
        protocols.setdefault(algorithm, []).append(result.protocol)
    names = {
        algorithm: algorithm_title(algorithm) + (f", {span(mine)}" if any(p.shorter for p in mine) else "")
        for algorithm, mine in protocols.items()
    }
    scores: dict[str, dict[str, Sequence[float]]] = {}
    for (algorithm, dataset), result in evidence.results.items():
        scores.setdefault(names[algorithm], {})[dataset] = result.scores
    return companies(scores)


def with_chosen(evidence: Evidence, company: Company) -> dict[str, Any]:
    """The company's scores, and beside SCORE's with the common setting those with chosen ones, where they differ."""
    ours, name = evidence.with_choices(), algorithm_title("score")
    number = len(evidence.chosen.keys() & set(company.datasets))
    if name not in company.matrices or not number or not set(company.datasets) <= ours.keys():
        return dict(company.matrices)
    chosen = score_matrix(name, {dataset: ours[dataset].scores for dataset in company.datasets})
    found = {}
    for method, matrix in company.matrices.items():
        found[method] = matrix
        if method == name:
            found[f"{name}, settings chosen on {number}"] = chosen
    return found
