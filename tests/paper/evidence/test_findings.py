"""What is said of the stored experiments: numbers recomputed from the stored curves, and rules that can fail."""

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from score_rl.paper.evidence.findings import FINDINGS, findings, lowest
from score_rl.paper.evidence.other_findings import (
    BOUND,
    ESTIMATE,
    LEAST,
    MEAN,
    PENALTY_OFF,
    RECORDED,
    REDRAWN,
    false_correlation,
    runtime,
    uncertainty_map,
)
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.sweep_claims import Line
from score_rl.paper.evidence.sweep_questions import (
    IN_PART,
    MEDIUM,
    NEITHER,
    NO,
    REPLAY,
    UNDECIDED,
    YES,
    all_alike,
    critics,
    early_end,
    higher,
    higher_value,
    same_values,
    too_much,
    word_of,
)
from score_rl.paper.evidence.verdicts import FAILS, HOLDS
from score_rl.paper.experiments.curves import EVALUATIONS, EXPERIMENTS
from score_rl.paper.experiments.false_correlation import summary
from score_rl.report.statistics import Estimate

STORED = Path(__file__).parents[3] / "benchmarks" / "results" / "experiments"
SCORE = "evaluation/score"


# What every variant changes in SCORE's usual settings, written down a second time.
PENALTY = {"penalty": "here", "beta": 0.2, "next_beta": 0.0}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "ablation-bc": {"SCORE": {"bc_weight": 1.0}, "without BC": {"bc_weight": 0.0}},
    "ablation-constraint": {name: {"constraint": name.lower()} for name in ("BC", "Fix", "MMD")},
    "ablation-pessimism": {"SCORE": {"beta": 0.2}, "without pessimism": {"beta": 0.0}},
    "ablation-uncertainty": {
        "Ensemble": {"uncertainty": "ensemble"}, "Dropout": {"uncertainty": "dropout"},
        "Min Q": {"uncertainty": "min-q"},
    },
    "ablation-penalty": {
        "u(s, a) only": PENALTY,
        "u(s', a') only": {"penalty": "here+next", "beta": 0.0, "next_beta": 0.2},
        "both (0.1)": {"penalty": "here+next", "beta": 0.1, "next_beta": 0.1},
        "both (0.2)": {"penalty": "here+next", "beta": 0.2, "next_beta": 0.2},
    },
    "sweep-beta": {f"β = {beta}": {"beta": beta} for beta in (0.1, 0.2, 0.5, 2.0)},
    "sweep-decay": {f"γ_bc = {decay}": {"bc_decay": decay} for decay in (0.96, 0.98, 1.0)},
    "sweep-critics": {f"M = {critics}": {"critics": critics} for critics in (3, 5, 7, 9)},
    "sweep-alpha": {f"α = {alpha:g}": {"alpha": alpha} for alpha in (1.0, 2.0, 2.5, 3.0, 4.0)},
}  # fmt: skip


def stored_curves(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """Every stored curve by its run and its metric, read as plainly as can be."""
    found: dict[tuple[str, str], list[float]] = {}
    with (folder / "runs" / "curves.csv").open() as file:
        for row in csv.DictReader(file):
            found.setdefault((row["run"], row["name"]), []).append(float(row["value"]))
    return {key: np.array(values) for key, values in found.items()}


def same_estimate(stored: Mapping[str, Any], values: list[float]) -> bool:
    """Whether a stored mean over seeds and its 95 % interval are those of the values, by SciPy."""
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return [stored["mean"], *stored["interval_95"]] == pytest.approx([np.mean(values), low, high], rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_stored_number_is_that_of_the_stored_curves(name: str) -> None:
    """Scores of both halves and of last policies, Q and u at the end, and the highest u: of all variants and data."""
    folder, variants = STORED / name, VARIANTS[name]
    groups = json.loads((folder / "result.json").read_text())["numbers"]["groups"]
    runs = json.loads((folder / "runs" / "summary.json").read_text())["runs"]
    curves = stored_curves(folder)
    assert {group["variant"] for group in groups} == set(variants)
    assert len(runs) == sum(group["seeds"] for group in groups)
    for group in groups:
        settings = variants[group["variant"]]
        mine = [
            str(number)
            for number, run in enumerate(runs)
            if run["dataset"] == group["dataset"] and {key: run["config"][key] for key in settings} == settings
        ]
        assert len(mine) == group["seeds"] == 5
        scores = [curves[run, SCORE] for run in mine]
        assert same_estimate(group["late"][SCORE], [each[6:].mean() for each in scores])
        assert same_estimate(group["early"][SCORE], [each[:6].mean() for each in scores])
        for metric, found in group["last"].items():
            assert same_estimate(found, [curves[run, metric][-1] for run in mine]), metric
        for metric, highest in group["largest"].items():
            assert highest == pytest.approx(np.mean([curves[run, metric] for run in mine], axis=0).max(), rel=1e-4)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_every_ablation_and_sweep_has_its_finding_and_numbers_for_it(experiment: Any) -> None:
    assert EVALUATIONS == 6
    assert experiment.name in {finding.experiment for finding in FINDINGS}
    groups = json.loads((STORED / experiment.name / "result.json").read_text())["numbers"]["groups"]
    assert all(group["late"][SCORE] and group["early"][SCORE] and group["seeds"] == 5 for group in groups)


def estimate(value: float, half: float = 1.0) -> Estimate:
    return Estimate(value, value - half, value + half)


def line(late: float, half: float = 1.0, **other: Any) -> Line:
    """A variant whose last policies say nothing true."""
    usual = {"early": estimate(0.0), "last": estimate(-99.0), "target": None, "uncertainty": None, "peak": None}
    return Line(late=estimate(late, half), **(usual | other))


def answer(ask: Any, **lines: Line) -> float:
    found = ask(MEDIUM, lines)
    assert found is not None
    return float(found.answer)


def test_higher_means_that_the_intervals_do_not_touch() -> None:
    assert answer(higher("a", "b"), a=line(10), b=line(7)) == YES
    assert answer(higher("a", "b"), a=line(7), b=line(10)) == NO
    assert answer(higher("a", "b"), a=line(10), b=line(8.5)) == NEITHER
    counted = higher("a", "b", counted=(REPLAY,))(MEDIUM, {"a": line(10), "b": line(7)})
    assert counted is not None
    assert not counted.counts
    high, low = estimate(0.5, 0.01), estimate(0.4, 0.01)
    ask = higher_value("uncertainty", "a", "b")
    assert answer(ask, a=line(1, uncertainty=high), b=line(9, uncertainty=low)) == YES
    assert ask(MEDIUM, {"a": line(1), "b": line(9)}) is None


def test_alike_means_each_with_each() -> None:
    assert answer(all_alike("a", "b", "c"), a=line(10), b=line(11), c=line(12)) == YES
    assert answer(all_alike("a", "b", "c"), a=line(10), b=line(11.5), c=line(13)) == NO, "a and c do not overlap"


def test_values_within_a_tenth_are_the_same() -> None:
    def at(q: float, u: float) -> Line:
        return line(1, target=estimate(q), uncertainty=estimate(u))

    assert answer(same_values("a", "b"), a=at(36, 0.125), b=at(37, 0.132)) == YES
    assert answer(same_values("a", "b"), a=at(36, 0.125), b=at(37, 0.152)) == NO
    assert answer(same_values("a", "b"), a=at(36, 0.125), b=at(31, 0.125)) == NO


def test_what_still_rises_has_not_converged_early() -> None:
    assert answer(early_end("a"), a=line(45, early=estimate(35))) == NO
    assert answer(early_end("a"), a=line(35, early=estimate(40))) == YES
    assert answer(early_end("a"), a=line(41, early=estimate(40))) == YES


def test_too_much_pessimism_needs_both_signs() -> None:
    usual = {"β = 0.2": line(70, target=estimate(36))}
    assert answer(too_much, **usual, **{"β = 2.0": line(10, target=estimate(-5e4))}) == YES
    assert answer(too_much, **usual, **{"β = 2.0": line(10, target=estimate(3))}) == NO
    assert answer(too_much, **usual, **{"β = 2.0": line(69, target=estimate(-5e4))}) == NO


def test_critics_are_judged_by_spread_and_by_what_more_of_them_add() -> None:
    def lines(*late: tuple[float, float]) -> dict[str, Line]:
        return {f"M = {m}": line(*each) for m, each in zip((3, 5, 7, 9), late, strict=True)}

    shaky = lines((60, 9), (70, 2), (71, 2), (72, 2))
    assert answer(critics(unsteady=True), **shaky) == YES
    assert answer(critics(unsteady=False), **shaky) == YES
    assert answer(critics(unsteady=True), **lines((75, 9), (70, 2), (71, 2), (72, 2))) == NO, "not lower"
    assert answer(critics(unsteady=True), **lines((60, 9), (70, 10), (71, 2), (72, 2))) == NO, "not the widest"
    assert answer(critics(unsteady=False), **lines((60, 9), (70, 2), (71, 2), (80, 2))) == NO


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ([YES, YES], HOLDS),
        ([NO, NO], FAILS),
        ([NEITHER, NEITHER], UNDECIDED),
        ([YES, NEITHER], IN_PART),
        ([NO, NEITHER], IN_PART),
        ([YES, NO], IN_PART),
    ],
)
def test_one_word_for_a_finding(answers: list[float], word: str) -> None:
    assert word_of(answers) == word


def stored(**results: Any) -> Evidence:
    return Evidence({}, experiments={name: (Path(name) / "result.json", found) for name, found in results.items()})


def test_the_text_holds_every_answer_and_skips_what_is_not_stored() -> None:
    def group(variant: str, late: float, u: float) -> dict[str, Any]:
        def number(value: float) -> dict[str, Any]:
            return {"mean": value, "interval_95": [value - 0.01, value + 0.01]}

        return {
            "dataset": MEDIUM, "variant": variant, "seeds": 5, "asked": 5, "late": {SCORE: number(late)},
            "early": {SCORE: number(1.0)}, "last": {SCORE: number(90 - late), "train/uncertainty": number(u)},
            "largest": {"train/uncertainty": 3 * u},
        }  # fmt: skip

    result = {"scale": "day", "numbers": {"groups": [group("SCORE", 70, 0.1), group("without BC", 40, 0.4)]}}
    text = findings(stored(**{"ablation-bc": result}), Path())
    assert text.startswith("- **ablation-bc** ([stored](ablation-bc)): **holds**.")
    assert (
        "    - The score is higher with cloning?\n        - hopper-medium: *yes*, 70.0 [70.0, 70.0] against 40.0"
        in text
    )
    assert "(last policies 20.0 and 50.0)" in text
    assert "1.20 and 0.30 on hopper-medium" in text
    assert text.count("\n- ") == 0
    assert findings(Evidence({}), Path()) == "Nothing is stored yet."


def test_the_lowest_variant_is_named_and_how_nearly_it_is_apart() -> None:
    lines = {"α = 1": line(10), "α = 2": line(11.9), "α = 4": line(11.5)}
    expected = "On hopper-medium α = 1 is the lowest, with 10.0 where the next has 11.5, and the intervals "
    assert lowest({MEDIUM: lines}) == expected + "have 0.1 in common."
    assert lowest({MEDIUM: lines | {"α = 3": line(13)}}) == expected + "do not all overlap."
    assert lowest({}) == ""


def test_the_map_holds_if_all_are_told_apart_and_halfcheetah_best() -> None:
    def map_of(**area: float) -> dict[str, Any]:
        tasks = {
            task: {"auroc": {"mean": value}, "auroc_of_each_seed": [value], "mean_u_data": 0.5, "mean_u_expert": 1.0}
            for task, value in area.items()
        }
        return {"numbers": tasks, "what_it_shows": "1,000 updates and 1 seed, where the paper has more."}

    assert uncertainty_map(map_of(halfcheetah=0.9, hopper=0.6)).startswith("**holds**, as far as")
    assert "u 2.0 times as high" in uncertainty_map(map_of(halfcheetah=0.9, hopper=0.6))
    assert uncertainty_map(map_of(halfcheetah=0.6, hopper=0.9)).startswith("**does not hold**")
    assert uncertainty_map(map_of(halfcheetah=0.9, hopper=0.4)).startswith("**does not hold**")


def test_several_seeds_must_tell_the_experts_pairs_apart_with_their_whole_interval() -> None:
    def map_of(low: float) -> dict[str, Any]:
        estimate = {"mean": 0.7, "interval_95": [low, 0.9]}
        task = {"auroc": estimate, "auroc_of_each_seed": [0.7] * 5, "mean_u_data": 0.5, "mean_u_expert": 1.0}
        return {"numbers": {"halfcheetah": task}, "what_it_shows": "Day scale: 300,000 updates; more is said."}

    assert uncertainty_map(map_of(0.6)).startswith("**holds**. Day scale: 300,000 updates, 5 seeds.\n")
    assert "0.70 [0.60, 0.90]" in uncertainty_map(map_of(0.6))
    assert uncertainty_map(map_of(0.4)).startswith("**does not hold**")


def test_the_clock_is_read_as_it_is() -> None:
    def timed(score: float, parameters: int) -> str:
        one = {"parameters": parameters, "seconds_per_epoch": score, "precision": "float32"}
        other = {"parameters": 5_658_676, "seconds_per_epoch": 10.0, "precision": "float32"}
        return runtime({"numbers": {"device": "cpu", "methods": {"score": one, "pbrl-prior": other}}})

    assert "**are** the paper's, and SCORE **is** the fastest" in timed(3.0, 865_814)
    assert "**are not** the paper's, and SCORE **is not** the fastest" in timed(30.0, 965_814)
    assert "SCORE 0.87 million, 3 s in float32 (paper 16 to 18 s)" in timed(3.0, 865_814)


def test_picks_that_are_stored_say_what_is_said_of_them() -> None:
    """Luck and what had been tried follow from data sets that are drawn anew."""
    numbers = json.loads((STORED / "false-correlation" / "result.json").read_text())["numbers"]
    labels = [label for label in numbers if label not in ("data_sets", "examples")]
    assert {"SCORE", "critics' mean, all actions", "sample mean"} <= set(labels)
    for label in labels:
        found = dict(numbers[label])
        again = summary([(number, action) for number, action in found["picks"]])
        assert found.pop("mean_true_value") == pytest.approx(again.pop("mean_true_value"), abs=1e-6)
        assert found == again, label
    assert numbers["data_sets"]["lucky"] == numbers["SCORE"]["lucky"]["sets"]


def test_luck_extrapolation_and_cures_are_told_apart() -> None:
    def numbers(**street: tuple[int, int, int]) -> dict[str, Any]:
        """{method: streets in 3 lucky sets and in 7 others, of these never tried}."""
        usual = dict.fromkeys(
            (ESTIMATE, BOUND, MEAN, LEAST, REDRAWN, "SCORE", PENALTY_OFF, "SCORE without BC"), (0, 0, 0)
        )
        found: dict[str, Any] = {
            label: {"lucky": {"sets": 3, "street": luck, "never_tried": 0},
                    "unlucky": {"sets": 7, "street": other, "never_tried": far}}
            for label, (luck, other, far) in (usual | street).items()
        }  # fmt: skip
        return {"numbers": found | {"data_sets": {"all": 10, "lucky": 3}}}

    def words(**street: tuple[int, int, int]) -> list[str]:
        return re.findall(r"\*(yes|no|open)\*", false_correlation(numbers(**street)))

    paper = {ESTIMATE: (3, 0, 0), MEAN: (3, 0, 0), PENALTY_OFF: (2, 0, 0)}
    assert words(**paper) == ["yes"] * 5
    assert false_correlation(numbers(**paper)).startswith("**holds**")
    assert words(**(paper | {ESTIMATE: (2, 0, 0)}))[0] == "no"
    assert words(**(paper | {BOUND: (1, 0, 0)}))[0] == "no"
    assert words(**(paper | {MEAN: (3, 1, 1)}))[1] == "no", "without luck"
    assert words(**(paper | {LEAST: (3, 0, 0), REDRAWN: (1, 0, 0)}))[2:4] == ["no", "open"]
    assert words(**(paper | {"SCORE": (1, 1, 0)}))[4] == "no", "as often as without the penalty"
    text = false_correlation(numbers(**(paper | {MEAN: (3, 5, 2), RECORDED: (2, 1, 0)})))
    assert "never tried" not in text
    assert "an action that nobody had tried in 2, and one near a recorded drive in 3" in text
    assert "Among recorded actions alone it is 2 of 3 lucky sets and 1 of 7 others" in text
