"""Verdicts on the six data sets: the rules are in docs/six-sets.md."""

import numpy as np

from score_rl.paper.evidence.six_sets import Measure, SixSets, ahead_of_score, pairs
from score_rl.paper.evidence.verdicts import FAILS, HOLDS, OPEN, PART
from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.results import algorithm_title


def complete(six: SixSets, measure: Measure) -> list[str]:
    """The paper's methods that have all six cells, the highest mean first."""
    means = {a: float(np.mean(mine)) for a in METHODS if (mine := six.by_seed(a, measure)) is not None}
    return sorted(means, key=lambda a: -means[a])


def order(six: SixSets, measure: Measure) -> str:
    """Whether the ten methods stand in the paper's order."""
    if len(complete(six, measure)) < len(METHODS):
        return OPEN
    found = [pair.found for pair in pairs(six, measure)]
    agreeing, contradicting = found.count("agrees"), found.count("contradicts")
    if not contradicting and 2 * agreeing >= len(found):
        return HOLDS
    return FAILS if contradicting > agreeing else PART


def strongest(six: SixSets, measure: Measure) -> str:
    """Whether SCORE is first on data of low and medium quality."""
    if ahead_of_score(six, measure):
        return FAILS
    ranked = complete(six, measure)
    if len(ranked) < len(METHODS):
        return OPEN
    return HOLDS if ranked[0] == "score" else PART


def why_order(six: SixSets, measure: Measure) -> str:
    found = pairs(six, measure)
    counts = {word: sum(pair.found == word for pair in found) for word in ("agrees", "contradicts", "undecided")}
    against = [
        f"{algorithm_title(pair.lower)} above {algorithm_title(pair.higher)}"
        for pair in found
        if pair.found == "contradicts"
    ]
    said = f"of {len(found)} pairs {counts['agrees']} agree, {counts['contradicts']} contradict, "
    said += f"{counts['undecided']} undecided" + (f"; here {', '.join(against)}" if against else "")
    return said + _waiting(six, measure)


def why_strongest(six: SixSets, measure: Measure) -> str:
    ranked = complete(six, measure)
    means = {a: float(np.mean(six.by_seed(a, measure) or ())) for a in ranked}
    said = ", ".join(f"{algorithm_title(a)} {mean:.1f}" for a, mean in means.items()) or "no method has all six"
    ahead = ahead_of_score(six, measure)
    if ahead:
        said += f"; ahead of SCORE beyond chance: {', '.join(map(algorithm_title, ahead))}"
    return said + _waiting(six, measure)


def _waiting(six: SixSets, measure: Measure) -> str:
    known = complete(six, measure)
    missing = [algorithm_title(a) for a in METHODS if a not in known]
    return f". Without all six cells: {', '.join(missing)}" if missing else ""
