"""Claims about SCORE's settings, judged by stored sweeps and by how trainings in the paper's length ended."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.paper.evidence.cells import interval
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.verdicts import OPEN, Verdict, below, one_word
from score_rl.paper.experiments.protocols import rounded
from score_rl.paper.experiments.scales import SCALES
from score_rl.report.published import PAPER_STEPS, paper_dataset, paper_datasets
from score_rl.report.statistics import Estimate, overlap

NARROW = ("-medium", "-expert")  # recorded by one policy or two, unlike random actions and all that was replayed
Sweep = dict[str, dict[str, dict[str, Estimate]]]  # data set, variant, metric
SCORE, TARGET = "evaluation/score", "train/q_target"


def sweep(evidence: Evidence, name: str) -> tuple[Sweep, str, tuple[Path, ...]]:
    """A evidence sweep, how long its runs were, its file; empty where there is none."""
    if name not in evidence.experiments:
        return {}, "", ()
    path, result = evidence.experiments[name]
    found: Sweep = {}
    seeds = set()
    for entry in result["numbers"]["groups"]:
        seeds.add(entry["seeds"])
        last = {metric: _estimate(value) for metric, value in entry["last"].items() if value is not None}
        found.setdefault(entry["dataset"], {})[entry["variant"]] = last
    scale = SCALES.get(result["scale"] or "")
    length = f"{rounded(scale.steps)} updates, " if scale else ""
    numbers = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    return found, f"{length}{numbers} seeds", (path,)


def _estimate(value: Mapping[str, Any]) -> Estimate:
    low, high = value["interval_95"] or (np.nan, np.nan)
    return Estimate(value["mean"], low, high)


def _scores(variants: Mapping[str, Mapping[str, Estimate]], wanted: Sequence[str]) -> list[Estimate] | None:
    """The last scores of these variants; None where one is missing."""
    if any(SCORE not in variants.get(name, {}) for name in wanted):
        return None
    return [variants[name][SCORE] for name in wanted]


def decay(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-decay")
    parts, numbers = [], []
    for dataset, variants in found.items():
        narrow = (paper_dataset(dataset) or dataset).endswith("-medium")
        scores = _scores(variants, ("γ_bc = 0.96", "γ_bc = 0.98")) if narrow else None
        if scores is not None:
            fast, usual = scores
            parts.append(1.0 if below(fast, usual) else 0.5 if fast.value < usual.value else 0.0)
            numbers.append(f"{dataset}: {interval(fast)} against {interval(usual)} with 0.98")
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
    for dataset, variants in found.items():
        scores = _scores(variants, ("M = 3", "M = 5", "M = 7", "M = 9"))
        if scores is None:
            continue
        three, five, *more = scores
        wider = all(_width(three) > _width(other) for other in (five, *more))
        unstable, enough = wider and three.value < five.value, not any(below(five, other) for other in more)
        parts += [float(unstable), float(enough)]
        listed = ", ".join(interval(score) for score in scores)
        words = f"three {'unstable' if unstable else 'not unstable'}, five {'enough' if enough else 'not enough'}"
        numbers.append(f"{dataset}: {listed} for 3, 5, 7, 9: {words}")
    return _swept(parts, numbers, length, files)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def beta(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-beta")
    parts, numbers = [], []
    for dataset, variants in found.items():
        scores = _scores(variants, ("β = 2.0", "β = 0.2"))
        if scores is None or TARGET not in variants["β = 2.0"]:
            continue
        much, usual = scores
        value = variants["β = 2.0"][TARGET]
        parts.append(float(below(much, usual) and value.value < 0))
        numbers.append(f"{dataset}: {interval(much)} against {interval(usual)} with 0.2, Q target {value.value:,.0f}")
    return _swept(parts, numbers, length, files)


def alike(evidence: Evidence) -> Verdict:
    found, length, files = sweep(evidence, "sweep-beta")
    parts, numbers = [], []
    for dataset, variants in found.items():
        scores = _scores(variants, ("β = 0.1", "β = 0.2", "β = 0.5"))
        if scores is not None:
            parts.append(float(all(overlap(one, other) for one, other in itertools.combinations(scores, 2))))
            numbers.append(f"{dataset}: {', '.join(map(interval, scores))} for 0.1, 0.2, 0.5")
    return _swept(parts, numbers, length, files)


def _swept(parts: Sequence[float], numbers: Sequence[str], length: str, files: tuple[Path, ...]) -> Verdict:
    if not parts:
        return Verdict(OPEN, "no such sweep is evidence", files)
    return Verdict(one_word(parts), f"{length}. {'; '.join(numbers)}", files)
