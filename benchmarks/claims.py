"""The paper's headline claims, each with a rule that decides from stored numbers whether it holds here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measured import Result, Stored

from score_rl.errors import InputError
from score_rl.paper.experiments.protocols import METHODS, rounded
from score_rl.paper.experiments.scales import SCALES
from score_rl.report.paper import PAPER_STEPS, paper_dataset, paper_datasets
from score_rl.report.results import algorithm_title
from score_rl.report.statistics import AGGREGATES, Estimate, aggregates, overlap, score_matrix

HOLDS, FAILS, PART, OPEN = "holds", "does not hold", "in part", "not enough data yet"
FEWEST = 3  # data sets that two methods must share before their means are compared
HIGH = "-expert"  # medium-expert and expert: high quality; the other nine sets are of low and medium quality
NARROW = ("-medium", "-expert")  # recorded by one policy or two, unlike random actions and all that was replayed
SPEEDUP = 3.1
CALLED = {"median": "median", "iqm": "interquartile mean", "mean": "mean", "optimality_gap": "gap to 100"}


class Verdict(NamedTuple):
    word: str
    because: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Claim:
    title: str
    rule: str
    judge: Callable[[Stored], Verdict]


def together(parts: Sequence[float]) -> str:
    """1 for what agrees, 0 for what does not, between them for what leans: one word for all."""
    if not parts:
        return OPEN
    if all(part == 1 for part in parts):
        return HOLDS
    return FAILS if all(part == 0 for part in parts) else PART


def said(estimate: Estimate) -> str:
    interval = f" [{estimate.low:.1f}, {estimate.high:.1f}]" if estimate.has_interval else ""
    return f"{estimate.value:,.1f}{interval}"


def below(one: Estimate, other: Estimate) -> bool:
    """The whole interval below the whole other one."""
    return overlap(one, other) is False and one.value < other.value


# -- SCORE among the methods -----------------------------------------------------------------------------------------


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
        return (
            f"{said(self.score)} against {algorithm_title(self.algorithm)}'s {said(self.other)} on {len(self.datasets)}"
        )


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


def comparisons(stored: Stored, among: Sequence[str], ours: Results | None = None) -> dict[str, Comparison]:
    """With every other method of the paper; SCORE has the common setting unless `ours` is given."""
    mine = stored.whole("score") if ours is None else ours
    found = {a: compare(mine, stored.whole(a), a, among) for a in METHODS if a != "score"}
    return {algorithm: one for algorithm, one in found.items() if one is not None}


def _chosen_said(stored: Stored, numbers: Callable[[Results], str]) -> str:
    """The same numbers with chosen settings, where a grid chose some: for comparison, they decide nothing."""
    ours = stored.with_choices()
    return f". With settings chosen on {len(stored.chosen)} of the 15: {numbers(ours)}" if ours else ""


def _files(stored: Stored, algorithms: Sequence[str]) -> tuple[Path, ...]:
    named = [file for a in algorithms for result in stored.whole(a).values() for file in result.files]
    return tuple(dict.fromkeys(named))


def _chosen_files(stored: Stored) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file for result in stored.chosen.values() for file in result.files))


def _coverage(stored: Stored) -> str:
    counts = {algorithm_title(a): len(stored.whole(a)) for a in METHODS if stored.whole(a)}
    return "finished with 1 M updates, of 15: " + (", ".join(f"{t} {n}" for t, n in counts.items()) or "none")


def first_overall(stored: Stored) -> Verdict:
    every = paper_datasets()
    found = comparisons(stored, every) if len(stored.whole("score")) == len(every) else {}
    files = _files(stored, ["score", *(found or METHODS[1:])])
    if not found:
        return Verdict(OPEN, _coverage(stored), files)

    def leads(compared: Mapping[str, Comparison]) -> str:
        return "; ".join(map(str, compared.values()))

    chosen = _chosen_said(stored, lambda ours: leads(comparisons(stored, every, ours)))
    because = f"mean over shared data sets: {leads(found)}{chosen}{_missing(found)}"
    return Verdict(_among_all(found, every), because, files + _chosen_files(stored))


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


def all_aggregates(stored: Stored) -> Verdict:
    every = paper_datasets()
    whole = {a: mine for a in METHODS if len(mine := stored.whole(a)) == len(every)}
    files = _files(stored, list(whole))
    if "score" not in whole or len(whole) < 2:
        return Verdict(OPEN, _coverage(stored), files)
    try:
        matrices = {a: score_matrix(a, {d: result.scores for d, result in mine.items()}) for a, mine in whole.items()}
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
        numbers.append(f"{CALLED[name]} {said(ours)} against {algorithm_title(best)}'s {said(theirs[best])}")
    missing = [algorithm_title(a) for a in METHODS if a not in whole]
    because = "; ".join(numbers) + _chosen_said(stored, _four)
    because += f". Not on all 15: {', '.join(missing)}" if missing else ""
    files += _chosen_files(stored)
    if 0.0 in parts:
        return Verdict(FAILS, because, files)
    if 0.5 in parts:
        return Verdict(PART, because, files)
    return Verdict(OPEN if missing else HOLDS, because, files)


def _four(ours: Results) -> str:
    found = aggregates({"score": score_matrix("score", {d: result.scores for d, result in ours.items()})})["score"]
    return ", ".join(f"{CALLED[name]} {said(found[name])}" for name in AGGREGATES)


def low_and_medium(stored: Stored) -> Verdict:
    every = paper_datasets()
    high = [dataset for dataset in every if dataset.endswith(HIGH)]
    low = [dataset for dataset in every if dataset not in high]
    complete = len(stored.whole("score")) == len(every)
    on_low, on_high = (comparisons(stored, among) if complete else {} for among in (low, high))
    files = _files(stored, ["score", *(on_low or METHODS[1:])])
    if not on_low:
        return Verdict(OPEN, _coverage(stored), files)

    def leads(on_low: Mapping[str, Comparison], on_high: Mapping[str, Comparison]) -> str:
        return "; ".join(
            f"lead over {algorithm_title(a)} {one.lead:+.1f} on {len(one.datasets)} of low and medium quality"
            + (f", {on_high[a].lead:+.1f} on {len(on_high[a].datasets)} of high" if a in on_high else "")
            for a, one in on_low.items()
        )

    chosen = _chosen_said(stored, lambda ours: leads(*(comparisons(stored, among, ours) for among in (low, high))))
    because = leads(on_low, on_high) + chosen + _missing(on_low)
    return Verdict(_among_all(on_low, low), because, files + _chosen_files(stored))


# -- speed -----------------------------------------------------------------------------------------------------------


def speed(stored: Stored) -> Verdict:
    """How many times as long PBRL takes as SCORE, on every machine that has timed both."""
    found: list[tuple[float, bool, str]] = []
    files = []
    if "runtime" in stored.experiments:
        path, result = stored.experiments["runtime"]
        methods = result["numbers"]["methods"]
        if {"score", "pbrl-prior"} <= set(methods):
            device = result["numbers"]["device"]
            seconds = [methods[name]["seconds_per_epoch"] for name in ("pbrl-prior", "score")]
            numbers = f"{seconds[0]:.2f} s against {seconds[1]:.2f} s an epoch"
            used = [methods[name].get("precision", "float32") for name in ("pbrl-prior", "score")]
            numbers += f" (in {used[0]} and {used[1]})" if used[0] != used[1] else f" ({used[0]})"
            found.append((seconds[0] / seconds[1], device.lower() != "cpu", f"{numbers} on {device}"))
            files.append(path)
    for path, parts in stored.speeds.items():
        methods = parts.get("methods", {})
        rates = [
            methods.get(name, {}).get("rates", {}).get("1", {}).get("run_steps_per_second")
            for name in ("score", "pbrl-prior")
        ]
        if all(rates):
            stamp = methods["pbrl-prior"]["provenance"]
            gpu = stamp["device"]["platform"] != "cpu"
            device = stamp["device"]["kind"] if gpu else f"{stamp['cores']} CPU cores"
            numbers = f"{rates[0]:,.1f} against {rates[1]:,.1f} updates a second"
            found.append((rates[0] / rates[1], gpu, f"{numbers} on {device}, one run"))
            files.append(path)
    if not found:
        return Verdict(OPEN, "no machine has timed both")
    word = together([1.0 if times >= SPEEDUP else 0.5 if times > 1 else 0.0 for times, _, _ in found])
    because = "; ".join(f"{times:,.1f} times: {numbers}" for times, _, numbers in found)
    if word == HOLDS and not any(gpu for _, gpu, _ in found):
        word, because = PART, because + ". No GPU has timed both, and the paper's is one"
    return Verdict(word, because, tuple(files))


# -- sweeps ----------------------------------------------------------------------------------------------------------

Sweep = dict[str, dict[str, dict[str, Estimate]]]  # data set, variant, metric
SCORE, TARGET = "evaluation/score", "train/q_target"


def sweep(stored: Stored, name: str) -> tuple[Sweep, str, tuple[Path, ...]]:
    """A stored sweep, how long its runs were, its file; empty where there is none."""
    if name not in stored.experiments:
        return {}, "", ()
    path, result = stored.experiments[name]
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


def decay(stored: Stored) -> Verdict:
    found, length, files = sweep(stored, "sweep-decay")
    parts, numbers = [], []
    for dataset, variants in found.items():
        narrow = (paper_dataset(dataset) or dataset).endswith("-medium")
        scores = _scores(variants, ("γ_bc = 0.96", "γ_bc = 0.98")) if narrow else None
        if scores is not None:
            fast, usual = scores
            parts.append(1.0 if below(fast, usual) else 0.5 if fast.value < usual.value else 0.0)
            numbers.append(f"{dataset}: {said(fast)} against {said(usual)} with 0.98")
    swept = [f"{length}. {'; '.join(numbers)}"] if numbers else []
    more, ended, named = _ended(stored)
    if ended:
        swept.append(f"{rounded(PAPER_STEPS)} updates, runs that collapsed. {'; '.join(ended)}")
    if not swept:
        return Verdict(OPEN, "no such sweep is stored", files)
    return Verdict(together(parts + more), ". ".join(swept), files + named)


def _ended(stored: Stored) -> tuple[list[float], list[str], tuple[Path, ...]]:
    """Of trainings in the paper's length on narrow data: how many collapsed with γ_bc 0.96 and with 0.98, by β."""
    parts, numbers, files = [], [], []
    for dataset in (name for name in paper_datasets() if name.endswith(NARROW)):
        mine = [ending for ending in stored.endings if ending.dataset == dataset]
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


def critics(stored: Stored) -> Verdict:
    found, length, files = sweep(stored, "sweep-critics")
    parts, numbers = [], []
    for dataset, variants in found.items():
        scores = _scores(variants, ("M = 3", "M = 5", "M = 7", "M = 9"))
        if scores is None:
            continue
        three, five, *more = scores
        wider = all(_width(three) > _width(other) for other in (five, *more))
        unstable, enough = wider and three.value < five.value, not any(below(five, other) for other in more)
        parts += [float(unstable), float(enough)]
        listed = ", ".join(said(score) for score in scores)
        words = f"three {'unstable' if unstable else 'not unstable'}, five {'enough' if enough else 'not enough'}"
        numbers.append(f"{dataset}: {listed} for 3, 5, 7, 9: {words}")
    return _swept(parts, numbers, length, files)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def beta(stored: Stored) -> Verdict:
    found, length, files = sweep(stored, "sweep-beta")
    parts, numbers = [], []
    for dataset, variants in found.items():
        scores = _scores(variants, ("β = 2.0", "β = 0.2"))
        if scores is None or TARGET not in variants["β = 2.0"]:
            continue
        much, usual = scores
        value = variants["β = 2.0"][TARGET]
        parts.append(float(below(much, usual) and value.value < 0))
        numbers.append(f"{dataset}: {said(much)} against {said(usual)} with 0.2, Q target {value.value:,.0f}")
    return _swept(parts, numbers, length, files)


def alike(stored: Stored) -> Verdict:
    found, length, files = sweep(stored, "sweep-beta")
    parts, numbers = [], []
    for dataset, variants in found.items():
        scores = _scores(variants, ("β = 0.1", "β = 0.2", "β = 0.5"))
        if scores is not None:
            parts.append(float(all(overlap(one, other) for one, other in itertools.combinations(scores, 2))))
            numbers.append(f"{dataset}: {', '.join(map(said, scores))} for 0.1, 0.2, 0.5")
    return _swept(parts, numbers, length, files)


def _swept(parts: Sequence[float], numbers: Sequence[str], length: str, files: tuple[Path, ...]) -> Verdict:
    if not parts:
        return Verdict(OPEN, "no such sweep is stored", files)
    return Verdict(together(parts), f"{length}. {'; '.join(numbers)}", files)


CLAIMS = (
    Claim(
        "SCORE is first overall",
        "Compared are means over the data sets that SCORE and another of the paper's methods both finished with 1 M "
        f"updates, if SCORE has all 15 and they share {FEWEST} or more. SCORE has its common setting; what it has with "
        "settings chosen from a grid stands beside it and decides nothing, as in the next two. The claim does not hold "
        "if one is higher with an interval wholly above SCORE's; else it is open until all nine others have finished "
        "on all 15. Then it holds if SCORE's is the highest, and in part if not.",
        first_overall,
    ),
    Claim(
        "SCORE is best in all four aggregates",
        "Median, interquartile mean, mean and gap to 100 of those of the paper's methods that finished on all 15 with "
        "1 M updates. It does not hold if one of them is better in one aggregate with an interval wholly beyond "
        "SCORE's, and holds in part if one is better in value alone; else it is open until all nine have finished.",
        all_aggregates,
    ),
    Claim(
        "SCORE is strongest on data of low and medium quality",
        "The rule of the first claim on random, medium-replay and medium (nine sets). The lead on medium-expert and "
        "expert (six) stands beside it and does not count: in the paper's own table SCORE's lead over MOPO, MOReL and "
        "BEAR is larger there.",
        low_and_medium,
    ),
    Claim(
        "SCORE is 3.1 times as fast as PBRL (PBRL-prior here)",
        f"It holds if SCORE is {SPEEDUP} times as fast or more on every machine that has timed one run of both, a GPU "
        "among them; it does not if SCORE is nowhere faster; in part otherwise.",
        speed,
    ),
    Claim(
        "γ_bc = 0.96 collapses late on narrow data",
        "Narrow data are those of one policy or two: medium, expert, medium-expert. In a sweep, on medium data, the "
        "last score with 0.96 is compared with that of 0.98: yes if its interval lies wholly below, no if its mean is "
        "not lower, else half. Of trainings with 1 M updates, by data set and β: a run has collapsed if its last five "
        "evaluations are on the mean below half of its best one; yes if all with 0.96 did and none with 0.98, no if "
        "none with 0.96 did, else half. It holds if all answers are yes, and does not if all are no.",
        decay,
    ),
    Claim(
        "M = 3 is unstable, M = 5 is enough",
        "Two questions on each data set. Three are unstable if their interval over seeds is wider than those of 5, 7 "
        "and 9 and their mean below that of 5. Five are enough if no larger number has an interval wholly above "
        "theirs. It holds if all answers are yes, does not if all are no.",
        critics,
    ),
    Claim(
        "β = 2.0 is over-pessimistic",
        "On each data set the Q target must be negative and the interval of the last score wholly below that of β = "
        "0.2. It holds if that is so on all, does not if on none.",
        beta,
    ),
    Claim(
        "β = 0.1, 0.2 and 0.5 work alike",
        "On each data set the intervals of the three last scores must overlap, each with each. It holds if they do on "
        "all, does not if on none.",
        alike,
    ),
)
