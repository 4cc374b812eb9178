"""Claims about SCORE among the methods: first overall, best in all aggregates, strongest on low and medium quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from score_rl.errors import InputError
from score_rl.paper.evidence.cells import interval
from score_rl.paper.evidence.records import Evidence, Result
from score_rl.paper.evidence.verdicts import FAILS, HOLDS, OPEN, PART, Verdict, below
from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.published import paper_datasets
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import AGGREGATES, Estimate, aggregates, score_matrix

FEWEST = 3  # data sets that two methods must share before their means are compared
HIGH = "-expert"  # medium-expert and expert: high quality; the other nine sets are of low and medium quality
CALLED = {"median": "median", "iqm": "interquartile mean", "mean": "mean", "optimality_gap": "gap to 100"}

Results = Mapping[str, Result]  # by data set


class Comparison(NamedTuple):
    """Means over the data sets that both have, with rliable's 95 % intervals."""

    algorithm: str
    datasets: list[str]
    score: Estimate
    other: Estimate

    @property
    def lead(self) -> float:
        return self.score.value - self.other.value

    def __str__(self) -> str:
        other = f"{algorithm_title(self.algorithm)}'s {interval(self.other)}"
        return f"{interval(self.score)} against {other} on {len(self.datasets)}"


def compare(ours: Results, theirs: Results, algorithm: str, among: Sequence[str]) -> Comparison | None:
    """SCORE beside a method on what both have of these data sets; None where that is too little."""
    shared = [dataset for dataset in among if dataset in ours and dataset in theirs]
    if len(shared) < FEWEST:
        return None
    try:
        matrices = {
            name: score_matrix(name, {dataset: mine[dataset].scores for dataset in shared})
            for name, mine in (("score", ours), (algorithm, theirs))
        }
    except InputError:  # unequal numbers of seeds
        return None
    found = aggregates(matrices)
    return Comparison(algorithm, shared, found["score"]["mean"], found[algorithm]["mean"])


def comparisons(evidence: Evidence, among: Sequence[str], ours: Results | None = None) -> dict[str, Comparison]:
    """With every other method of the paper; SCORE has the common setting unless `ours` is given."""
    mine = evidence.in_full("score") if ours is None else ours
    found = {a: compare(mine, evidence.in_full(a), a, among) for a in METHODS if a != "score"}
    return {algorithm: one for algorithm, one in found.items() if one is not None}


def _with_chosen_settings(evidence: Evidence, numbers: Callable[[Results], str]) -> str:
    """The same numbers with chosen settings, where a grid chose some: for comparison, they decide nothing."""
    ours = evidence.with_choices()
    return f". With settings chosen on {len(evidence.chosen)} of the 15: {numbers(ours)}" if ours else ""


def _files(evidence: Evidence, algorithms: Sequence[str]) -> tuple[Path, ...]:
    named = [file for a in algorithms for result in evidence.in_full(a).values() for file in result.files]
    return tuple(dict.fromkeys(named))


def _chosen_files(evidence: Evidence) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file for result in evidence.chosen.values() for file in result.files))


def _coverage(evidence: Evidence) -> str:
    counts = {algorithm_title(a): len(evidence.in_full(a)) for a in METHODS if evidence.in_full(a)}
    return "finished with 1 M updates, of 15: " + (", ".join(f"{t} {n}" for t, n in counts.items()) or "none")


def first_overall(evidence: Evidence) -> Verdict:
    every = paper_datasets()
    found = comparisons(evidence, every) if len(evidence.in_full("score")) == len(every) else {}
    files = _files(evidence, ["score", *(found or METHODS[1:])])
    if not found:
        return Verdict(OPEN, _coverage(evidence), files)

    def leads(compared: Mapping[str, Comparison]) -> str:
        return "; ".join(map(str, compared.values()))

    chosen = _with_chosen_settings(evidence, lambda ours: leads(comparisons(evidence, every, ours)))
    because = f"mean over shared data sets: {leads(found)}{chosen}{_missing(found)}"
    return Verdict(_among_all(found, every), because, files + _chosen_files(evidence))


def _among_all(found: Mapping[str, Comparison], among: Sequence[str]) -> str:
    """Whether SCORE leads: undecided until all nine others have finished on all of these data sets."""
    if any(below(one.score, one.other) for one in found.values()):
        return FAILS
    if len(found) < len(METHODS) - 1 or any(len(one.datasets) < len(among) for one in found.values()):
        return OPEN
    return HOLDS if all(one.lead > 0 for one in found.values()) else PART


def _missing(found: Mapping[str, Comparison]) -> str:
    missing = [algorithm_title(a) for a in METHODS[1:] if a not in found]
    return f". Not compared: {', '.join(missing)}" if missing else ""


def all_aggregates(evidence: Evidence) -> Verdict:
    every = paper_datasets()
    full = {a: mine for a in METHODS if len(mine := evidence.in_full(a)) == len(every)}
    files = _files(evidence, list(full))
    if "score" not in full or len(full) < 2:
        return Verdict(OPEN, _coverage(evidence), files)
    try:
        matrices = {a: score_matrix(a, {d: result.scores for d, result in mine.items()}) for a, mine in full.items()}
    except InputError as unequal:
        return Verdict(OPEN, str(unequal), files)
    found = aggregates(matrices)
    parts, numbers = [], []
    for name in AGGREGATES:
        ours = found["score"][name]
        theirs = {a: mine[name] for a, mine in found.items() if a != "score"}
        if name == "optimality_gap":  # the lower the better
            best = min(theirs, key=lambda a: theirs[a].value)
            behind, lost = theirs[best].value < ours.value, below(theirs[best], ours)
        else:
            best = max(theirs, key=lambda a: theirs[a].value)
            behind, lost = theirs[best].value > ours.value, below(ours, theirs[best])
        parts.append(0.0 if lost else 0.5 if behind else 1.0)
        numbers.append(f"{CALLED[name]} {interval(ours)} against {algorithm_title(best)}'s {interval(theirs[best])}")
    missing = [algorithm_title(a) for a in METHODS if a not in full]
    because = "; ".join(numbers) + _with_chosen_settings(evidence, _four)
    because += f". Not on all 15: {', '.join(missing)}" if missing else ""
    files += _chosen_files(evidence)
    if 0.0 in parts:
        return Verdict(FAILS, because, files)
    if 0.5 in parts:
        return Verdict(PART, because, files)
    return Verdict(OPEN if missing else HOLDS, because, files)


def _four(ours: Results) -> str:
    found = aggregates({"score": score_matrix("score", {d: result.scores for d, result in ours.items()})})["score"]
    return ", ".join(f"{CALLED[name]} {interval(found[name])}" for name in AGGREGATES)


def low_and_medium(evidence: Evidence) -> Verdict:
    every = paper_datasets()
    high = [dataset for dataset in every if dataset.endswith(HIGH)]
    low = [dataset for dataset in every if dataset not in high]
    complete = len(evidence.in_full("score")) == len(every)
    on_low, on_high = (comparisons(evidence, among) if complete else {} for among in (low, high))
    files = _files(evidence, ["score", *(on_low or METHODS[1:])])
    if not on_low:
        return Verdict(OPEN, _coverage(evidence), files)

    def leads(on_low: Mapping[str, Comparison], on_high: Mapping[str, Comparison]) -> str:
        return "; ".join(
            f"lead over {algorithm_title(a)} {one.lead:+.1f} on {len(one.datasets)} of low and medium quality"
            + (f", {on_high[a].lead:+.1f} on {len(on_high[a].datasets)} of high" if a in on_high else "")
            for a, one in on_low.items()
        )

    chosen = _with_chosen_settings(
        evidence, lambda ours: leads(*(comparisons(evidence, among, ours) for among in (low, high)))
    )
    because = leads(on_low, on_high) + chosen + _missing(on_low)
    return Verdict(_among_all(on_low, low), because, files + _chosen_files(evidence))
