"""What the experiments say that are no sweeps: a task of our own, a map of uncertainty, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from score_rl.paper.evidence.sweep_questions import NEITHER, NO, WORDS, YES, word_of
from score_rl.paper.experiments.runtime import PRINTED
from score_rl.report.results import algorithm_title

ESTIMATE, BOUND = "sample mean", "lower bound (Hoeffding)"  # of false-correlation, as its table names them
MEAN, LEAST = "critics' mean, all actions", "critics' least, all actions"
RECORDED, REDRAWN = "critics' mean, recorded actions", "bootstrapped critics' least, all actions"
PENALTY_OFF = "SCORE without pessimism"
WITHIN = 5_000  # parameters: what two digits after a million's point leave open
COIN = 0.5  # AUROC of a u that knows nothing
Result = Mapping[str, Any]  # of result.json


def uncertainty_map(result: Result) -> str:
    """How well u tells the expert's pairs from the data's."""
    tasks = result["numbers"]
    area = {task: found["auroc"]["mean"] for task, found in tasks.items()}
    times = {task: found["mean_u_expert"] / found["mean_u_data"] for task, found in tasks.items()}
    seeds = max(len(found["auroc_of_each_seed"]) for found in tasks.values())
    low = {task: (found["auroc"].get("interval_95") or [area[task]])[0] for task, found in tasks.items()}
    holds = min(low.values()) > COIN and max(area, key=lambda task: area[task]) == "halfcheetah"
    listed = "; ".join(f"{task} {_area(found)}, u {times[task]:.1f} times as high" for task, found in tasks.items())
    length = result["what_it_shows"].partition(";")[0].partition(", where")[0]
    return (
        f"**{'holds' if holds else 'does not hold'}**{', as far as so little training tells' if seeds < 5 else ''}. "
        f"{length}{f', {seeds} seeds' if seeds > 1 else ''}.\n"
        f"    - the expert's pairs have the higher u on every task, and most clearly on halfcheetah? AUROC {listed}. "
        f"{COIN} is a coin."
    )


def _area(found: Result) -> str:
    """With its interval, where several seeds give one."""
    interval = found["auroc"].get("interval_95")
    value = f"{found['auroc']['mean']:.2f}"
    return f"{value} [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else value


def runtime(result: Result) -> str:
    """Parameters and seconds an epoch beside the paper's."""
    methods = result["numbers"]["methods"]
    right = all(abs(found["parameters"] - PRINTED[name][0]) < WITHIN for name, found in methods.items())
    listed = "; ".join(
        f"{algorithm_title(name)} {found['parameters'] / 1e6:.2f} million, {found['seconds_per_epoch']:.3g} s in "
        f"{found['precision']} (paper {PRINTED[name][1]} to {PRINTED[name][2]} s)"
        for name, found in methods.items()
    )
    score = methods["score"]["seconds_per_epoch"]
    fastest = all(found["seconds_per_epoch"] >= score for found in methods.values())
    return (
        f"the numbers of parameters **{'are' if right else 'are not'}** the paper's, and SCORE "
        f"**{'is' if fastest else 'is not'}** the fastest.\n"
        f"    - Parameters, and the time of an epoch of 1,000 updates with its evaluation: {listed}.\n"
        f"    - The paper's times are of a GPU, ours of a {result['numbers']['device'].upper()}. How much faster SCORE "
        "is there says little about a GPU: PBRL's many rows fill two cores and not a GPU. "
        "[performance.md](performance.md) has more."
    )


def false_correlation(result: Result) -> str:
    """Luck, extrapolation, and what cures them, on drawn data of one decision."""
    numbers = result["numbers"]
    sets = numbers["data_sets"]

    def street(label: str) -> str:
        luck, none = numbers[label]["lucky"], numbers[label]["unlucky"]
        return f"{luck['street']} of {luck['sets']} lucky sets and {none['street']} of {none['sets']} others"

    def taken(label: str, *luck: str) -> int:
        return sum(int(numbers[label][which]["street"]) for which in luck)

    def cured(label: str) -> float:
        lucky = taken(label, "lucky")
        return YES if lucky == 0 else NO if lucky == sets["lucky"] else NEITHER

    none = numbers[MEAN]["unlucky"]
    never, near = none["never_tried"], none["street"] - none["never_tried"]
    plain, without = (taken(label, "lucky", "unlucky") for label in ("SCORE", PENALTY_OFF))
    answers = [
        float(taken(ESTIMATE, "lucky") == sets["lucky"] and taken(BOUND, "lucky") == 0),
        float(taken(MEAN, "unlucky") == 0),
        cured(LEAST),
        cured(REDRAWN),
        float(without > plain),
    ]
    word = [WORDS[answer] for answer in answers]
    recorded = f" Among recorded actions alone it is {street(RECORDED)}." if RECORDED in numbers else ""
    return (
        f"**{word_of(answers)}**. {sets['all']} data sets of one decision were drawn. In {sets['lucky']} of them the "
        "four drives through the side street were lucky: their mean is higher than the avenue's.\n"
        f"    - The estimate takes a lucky street, and its lower bound does not? *{word[0]}*: the mean of a road's "
        f"rows takes it in {street(ESTIMATE)}, Hoeffding's lower bound in {street(BOUND)}.\n"
        f"    - Critics take the street by this luck alone? *{word[1]}*: the mean of five takes it in {street(MEAN)}. "
        f"Of these {none['street']} others it picks an action that nobody had tried in {never}, and one near a "
        f"recorded drive in {near}.{recorded} So there are three causes: luck of the road, extrapolation, and luck of "
        "single drives.\n"
        f"    - Disagreement cures the luck? With five critics on the same rows *{word[2]}*: their minimum takes the "
        f"street in {street(LEAST)}. With rows drawn anew for each *{word[3]}*: {street(REDRAWN)}.\n"
        f"    - As a method, SCORE needs the penalty here? *{word[4]}*: SCORE takes the street in {street('SCORE')}, "
        f"without the penalty in {street(PENALTY_OFF)}, without cloning in {street('SCORE without BC')}."
    )


OTHERS: dict[str, Callable[[Result], str]] = {
    "false-correlation": false_correlation,
    "uncertainty-map": uncertainty_map,
    "runtime": runtime,
}
