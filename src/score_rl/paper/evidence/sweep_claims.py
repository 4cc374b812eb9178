"""Claims about SCORE's settings, judged by stored sweeps and by how trainings in the paper's length ended.

A sweep's runs are compared by the means of their last six evaluations. The last policies stand beside them and decide
nothing: each is one draw of ten episodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from score_rl.paper.evidence.cells import interval
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.verdicts import OPEN, Verdict, below, one_word
from score_rl.paper.experiments.protocols import rounded
from score_rl.paper.experiments.scales import SCALES
from score_rl.report.published import PAPER_STEPS, paper_dataset, paper_datasets
from score_rl.report.statistics import Estimate, overlap

NARROW = ("-medium", "-expert")  # recorded by one policy or two, unlike random actions and all that was replayed
SCORE, TARGET, UNCERTAINTY = "evaluation/score", "train/q_target", "train/uncertainty"


class Line(NamedTuple):
    """One variant on one data set: means over seeds with their intervals. What was not measured is None."""

    late: Estimate | None  # score, mean of the last six evaluations
    early: Estimate | None  # mean of the evaluations before those
    last: Estimate | None  # of the last policies
    target: Estimate | None  # of Q, at the end
    uncertainty: Estimate | None  # u, at the end
    peak: float | None  # the highest u on the way, of the mean over seeds


Sweep = dict[str, dict[str, Line]]  # data set, variant


def sweep(evidence: Evidence, name: str) -> tuple[Sweep, str, tuple[Path, ...]]:
    """A stored sweep or ablation, how long its runs were, its file; empty where there is none."""
    if name not in evidence.experiments:
        return {}, "", ()
    path, result = evidence.experiments[name]
    found: Sweep = {}
    seeds = set()
    for entry in result["numbers"]["groups"]:
        seeds.add(entry["seeds"])
        found.setdefault(entry["dataset"], {})[entry["variant"]] = _line(entry)
    scale = SCALES.get(result["scale"] or "")
    length = f"{rounded(scale.steps)} updates, " if scale else ""
    numbers = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    return found, f"{length}{numbers} seeds", (path,)


def _line(entry: Mapping[str, Any]) -> Line:
    last = {metric: _estimate(value) for metric, value in entry["last"].items()}
    late, early = (_estimate(entry.get(part, {}).get(SCORE)) for part in ("late", "early"))
    peak = entry["largest"].get(UNCERTAINTY)
    return Line(late, early, last.get(SCORE), last.get(TARGET), last.get(UNCERTAINTY), peak)


def _estimate(value: Mapping[str, Any] | None) -> Estimate | None:
    if value is None:
        return None
    low, high = value["interval_95"] or (np.nan, np.nan)
    return Estimate(value["mean"], low, high)


def scores_of(variants: Mapping[str, Line], wanted: Sequence[str]) -> list[Estimate] | None:
    """The scores of these variants, by their last six evaluations; None where one is missing."""
    found = [variants[name].late for name in wanted if name in variants]
    known = [score for score in found if score is not None]
    return known if len(known) == len(wanted) else None


def beside(variants: Mapping[str, Line], wanted: Sequence[str]) -> str:
    """The last policies, which decide nothing."""
    known = [last for name in wanted if (last := variants[name].last) is not None]
    listed = [f"{last.value:.1f}" for last in known]
    return f" (last policies {', '.join(listed[:-1])} and {listed[-1]})" if len(listed) > 1 else ""


# -- what a sweep says -----------------------------------------------------------------------------------------------


def alike_in(scores: Sequence[Estimate]) -> bool:
    """Whether all intervals overlap, each with each."""
    return all(overlap(one, other) for one, other in itertools.combinations(scores, 2))


def unstable(few: Estimate, usual: Estimate, more: Sequence[Estimate]) -> bool:
    """Whether few critics are spread wider over seeds than all others, and lower than the usual number."""
    return all(_width(few) > _width(other) for other in (usual, *more)) and few.value < usual.value


def enough(usual: Estimate, more: Sequence[Estimate]) -> bool:
    """Whether no larger number of critics has an interval wholly above that of the usual one."""
    return not any(below(usual, other) for other in more)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


# -- claims ----------------------------------------------------------------------------------------------------------


def decay(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-decay")
    parts, numbers = [], []
    for dataset, variants in found.items():
        narrow = (paper_dataset(dataset) or dataset).endswith("-medium")
        wanted = ("γ_bc = 0.96", "γ_bc = 0.98")
        scores = scores_of(variants, wanted) if narrow else None
        if scores is not None:
            fast, usual = scores
            parts.append(1.0 if below(fast, usual) else 0.5 if fast.value < usual.value else 0.0)
            numbers.append(f"{dataset}: {interval(fast)} against {interval(usual)} with 0.98{beside(variants, wanted)}")
    swept = [f"{length}. {'; '.join(numbers)}"] if numbers else []
    more, ended, named = _ended(evidence)
    if ended:
        swept.append(f"{rounded(PAPER_STEPS)} updates, runs that collapsed. {'; '.join(ended)}")
    if not swept:
        return Verdict(OPEN, "no such sweep is evidence", files)
    return Verdict(one_word(parts + more), ". ".join(swept), files + named)


def _ended(evidence: Evidence) -> tuple[list[float], list[str], tuple[Path, ...]]:
    """Of trainings in the paper's length on narrow data: how many collapsed with γ_bc 0.96 and with 0.98, by β."""
    parts, numbers, files = [], [], []
    for dataset in (name for name in paper_datasets() if name.endswith(NARROW)):
        mine = [ending for ending in evidence.endings if ending.dataset == dataset]
        said_of = []
        for beta in sorted({ending.beta for ending in mine if ending.bc_decay == 0.96}):
            fast, usual = ([e for e in mine if (e.beta, e.bc_decay) == (beta, bc_decay)] for bc_decay in (0.96, 0.98))
            fallen, also = (sum(ending.collapsed for ending in runs) for runs in (fast, usual))
            parts.append(0.0 if not fallen else 1.0 if fallen == len(fast) and not also else 0.5)
            beside = f" ({also} of {len(usual)} with 0.98)" if usual else ""
            said_of.append(f"{fallen} of {len(fast)} with β {beta:g}{beside}")
            files += [ending.file for ending in (*fast, *usual)]
        if said_of:
            numbers.append(f"{dataset}: {', '.join(said_of)}")
    return parts, numbers, tuple(dict.fromkeys(files))


def critics(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-critics")
    parts, numbers = [], []
    wanted = ("M = 3", "M = 5", "M = 7", "M = 9")
    for dataset, variants in found.items():
        scores = scores_of(variants, wanted)
        if scores is None:
            continue
        three, five, *more = scores
        shaky, suffices = unstable(three, five, more), enough(five, more)
        parts += [float(shaky), float(suffices)]
        listed = ", ".join(interval(score) for score in scores)
        words = f"three {'unstable' if shaky else 'not unstable'}, five {'enough' if suffices else 'not enough'}"
        numbers.append(f"{dataset}: {listed} for 3, 5, 7, 9: {words}{beside(variants, wanted)}")
    return _swept(parts, numbers, length, files)


def beta(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-beta")
    parts, numbers = [], []
    wanted = ("β = 2.0", "β = 0.2")
    for dataset, variants in found.items():
        scores = scores_of(variants, wanted)
        value = variants["β = 2.0"].target if scores is not None else None
        if scores is None or value is None:
            continue
        much, usual = scores
        parts.append(float(below(much, usual) and value.value < 0))
        against = f"{interval(much)} against {interval(usual)} with 0.2{beside(variants, wanted)}"
        numbers.append(f"{dataset}: {against}, Q target {value.value:,.0f}")
    return _swept(parts, numbers, length, files)


def alike(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-beta")
    parts, numbers = [], []
    wanted = ("β = 0.1", "β = 0.2", "β = 0.5")
    for dataset, variants in found.items():
        scores = scores_of(variants, wanted)
        if scores is not None:
            parts.append(float(alike_in(scores)))
            listed = ", ".join(map(interval, scores))
            numbers.append(f"{dataset}: {listed} for 0.1, 0.2, 0.5{beside(variants, wanted)}")
    return _swept(parts, numbers, length, files)


def _swept(parts: Sequence[float], numbers: Sequence[str], length: str, files: tuple[Path, ...]) -> Verdict:
    if not parts:
        return Verdict(OPEN, "no such sweep is evidence", files)
    return Verdict(one_word(parts), f"{length}. {'; '.join(numbers)}", files)
