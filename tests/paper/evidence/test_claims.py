"""The paper's claims are judged by their rules, on results made up here."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.paper.evidence import reading
from score_rl.paper.evidence.claims import CLAIMS
from score_rl.paper.evidence.method_claims import all_aggregates, first_overall, low_and_medium
from score_rl.paper.evidence.records import Ending, Evidence
from score_rl.paper.evidence.speed_claim import speed
from score_rl.paper.evidence.sweep_claims import SCORE, TARGET, alike, beta, critics, decay
from score_rl.paper.evidence.verdicts import FAILS, HOLDS, OPEN, PART
from score_rl.paper.experiments.protocols import METHODS
from score_rl.report.published import paper_datasets, paper_table
from score_rl.report.results import Curve, RunResult
from tests.paper.evidence.made_up import MILLION, complete, curve_of


def overall(**options: Any) -> str:
    return first_overall(reading.collect(complete(**options))).word


@pytest.mark.usefixtures("hastily")
def test_first_overall() -> None:
    assert overall() == HOLDS
    assert overall(shift={"cql": 20.0}) == FAILS
    assert overall(methods=("score", "td3-bc", "cql")) == OPEN, "not against all that the paper names"
    means = {m: np.mean([paper_table()[d, m].mean for d in paper_datasets()]) for m in ("SCORE", "PBRL")}
    barely = float(means["SCORE"] - means["PBRL"]) + 0.01
    assert overall(shift={"pbrl-prior": barely}) == PART, "behind, by less than the intervals"
    assert overall(methods=("score", "td3-bc"), steps=300_000) == OPEN
    assert overall(methods=("score", "td3-bc"), datasets=paper_datasets()[:14]) == OPEN
    assert overall(methods=("score",)) == OPEN
    shorter = complete(methods=("score", "td3-bc")) + complete({"cql": 50.0}, ("cql",), steps=300_000)
    verdict = first_overall(reading.collect(shorter))
    assert verdict.word == OPEN, "what was trained more briefly decides nothing"
    assert "CQL" in verdict.because.partition("Not compared")[2]


@pytest.mark.usefixtures("hastily")
def test_strongest_on_low_and_medium_quality() -> None:
    def word(runs: list[RunResult]) -> str:
        return low_and_medium(reading.collect(runs)).word

    low = [dataset for dataset in paper_datasets() if not dataset.endswith("expert")]
    high = [dataset for dataset in paper_datasets() if dataset.endswith("expert")]
    two = ("score", "td3-bc")
    assert word(complete()) == HOLDS, "the paper's own table"
    assert word(complete(methods=two)) == OPEN
    assert word(complete(methods=two)[:30]) == OPEN
    ahead = complete(methods=("score",)) + complete({"td3-bc": 40.0}, ("td3-bc",), low)
    assert word(ahead + complete(methods=("td3-bc",), datasets=high)) == FAILS
    others = [m for m in METHODS if m != "score"]
    mixed = complete(dict.fromkeys(others, -99.0), others, low) + complete(dict.fromkeys(others, 99.0), others, high)
    assert word(complete(methods=("score",)) + mixed) == HOLDS, "the other six do not count"


@pytest.mark.usefixtures("hastily")
def test_best_in_all_aggregates() -> None:
    def word(runs: list[RunResult]) -> str:
        return all_aggregates(reading.collect(runs)).word

    two = ("score", "td3-bc")
    assert word(complete()) == HOLDS, "the paper's own table"
    assert word(complete(methods=two)) == OPEN
    assert word(complete(methods=("score",))) == OPEN
    assert word(complete({"td3-bc": 30.0}, two)) == FAILS
    equal = complete(methods=("score",))
    same = [dataclasses.replace(run, algorithm="td3-bc") for run in equal]
    higher = Curve(np.array([MILLION]), np.array([(same[0].score or 0.0) + 0.2]))
    same[0] = dataclasses.replace(same[0], curves={"evaluation/score": higher})
    assert word(equal + same) == PART, "better in value, within the intervals"


def sweep(name: str, values: Mapping[str, Mapping[str, tuple[float, ...]]]) -> Evidence:
    """{data set: {variant: (score, half its interval, Q target)}} as an experiment stores it.

    The last policies say the opposite of the last six evaluations, so that whoever reads them is wrong.
    """
    groups = [
        {"dataset": dataset, "variant": variant, "seeds": 5, "asked": 5, "largest": {},
         "late": {SCORE: {"mean": score, "interval_95": [score - half, score + half]}},
         "last": {SCORE: {"mean": -score, "interval_95": [-score, -score]},
                  TARGET: {"mean": target, "interval_95": None}}}
        for dataset, variants in values.items() for variant, (score, half, target) in variants.items()
    ]  # fmt: skip
    result = {"scale": "day", "numbers": {"groups": groups}}
    return Evidence({}, experiments={name: (Path(name) / "result.json", result)})


@pytest.mark.parametrize(("fast", "half", "word"), [(50, 5, HOLDS), (75, 9, PART), (85, 1, FAILS)])
def test_late_collapse(fast: int, half: int, word: Any) -> None:
    narrow = {"γ_bc = 0.96": (fast, half, 0), "γ_bc = 0.98": (80, 2, 0)}
    broad = {"γ_bc = 0.96": (90, 1, 0), "γ_bc = 0.98": (80, 2, 0)}
    verdict = decay(sweep("sweep-decay", {"replica:hopper-medium": narrow, "replica:hopper-medium-replay": broad}))
    assert verdict.word == word
    assert "300k updates, 5 seeds" in verdict.because
    assert "medium-replay" not in verdict.because


def ended(dataset: str, beta: float, decay: float, best: int, last: int) -> Ending:
    return Ending(dataset, beta, decay, best, last, Path("curves.csv"))


def test_late_collapse_in_the_papers_length() -> None:
    """A fall below half of the best is a collapse; a fall of the usual setting as well is no sign of γ_bc."""

    def word(*endings: Ending, **sweeps: Any) -> str:
        stored = sweep("sweep-decay", {"replica:hopper-medium": sweeps["swept"]}) if sweeps else Evidence({})
        return decay(dataclasses.replace(stored, endings=endings)).word

    fallen, steady = ended("hopper-expert", 0.2, 0.96, 104, 36), ended("hopper-expert", 0.2, 0.96, 104, 60)
    usual, broken = ended("hopper-expert", 0.2, 0.98, 104, 69), ended("hopper-expert", 0.2, 0.98, 104, 20)
    assert word() == OPEN
    assert word(fallen, fallen, usual) == HOLDS
    assert word(steady, steady, usual) == FAILS
    assert word(fallen, steady, usual) == PART, "not every run"
    assert word(fallen, fallen, broken) == PART, "not γ_bc alone"
    assert word(fallen, ended("hopper-expert", 0.5, 0.96, 104, 103)) == PART, "not with every β"
    assert word(ended("hopper-medium-replay", 0.2, 0.96, 90, 10), usual) == OPEN, "not narrow"
    swept = {"γ_bc = 0.96": (85, 1, 0), "γ_bc = 0.98": (80, 2, 0)}
    assert word(fallen, fallen, usual, swept=swept) == PART, "the sweep says otherwise"
    because = decay(Evidence({}, endings=[fallen, steady, usual])).because
    assert "hopper-expert: 1 of 2 with β 0.2 (0 of 1 with 0.98)" in because


def test_endings_are_those_of_whole_trainings_of_score_alone() -> None:
    def trained(scores: list[int], algorithm: str = "score", steps: int = MILLION, **config: Any) -> RunResult:
        return curve_of(algorithm, "replica:hopper-expert", scores, steps, **config)

    falling = [100, 90, 10, 10, 10, 10, 10]
    found = reading.endings_of(
        [
            trained(falling, bc_decay=0.96),
            trained(falling, bc_decay=0.96, steps=300_000),
            trained(falling, critics=3, bc_decay=0.96),
            trained(falling, algorithm="td3-bc"),
        ]
    )
    assert [(e.dataset, e.beta, e.bc_decay, e.best, e.last) for e in found] == [
        ("hopper-expert", 0.2, 0.96, 100.0, 10.0)
    ]
    assert found[0].collapsed


@pytest.mark.parametrize(
    ("three", "nine", "word"),
    [((60, 9), (81, 1), HOLDS), ((60, 0.5), (99, 1), FAILS), ((60, 0.5), (81, 1), PART)],
)
def test_numbers_of_critics(three: tuple[float, ...], nine: tuple[int, int], word: Any) -> None:
    values = {"M = 3": (*three, 0), "M = 5": (80, 2, 0), "M = 7": (80, 2, 0), "M = 9": (*nine, 0)}
    assert critics(sweep("sweep-critics", {"replica:hopper-medium": values})).word == word


@pytest.mark.parametrize(("score", "target", "word"), [(10, -1e4, HOLDS), (10, 30, FAILS), (79, -1e4, FAILS)])
def test_over_pessimism(score: int, target: float, word: Any) -> None:
    values = {"β = 0.2": (80, 2, 36), "β = 2.0": (score, 1, target)}
    assert beta(sweep("sweep-beta", {"replica:hopper-medium": values})).word == word


@pytest.mark.parametrize(("half", "word"), [(2, FAILS), (20, HOLDS)])
def test_small_penalties_alike(half: int, word: Any) -> None:
    values = {"β = 0.1": (50, half, 0), "β = 0.2": (60, half, 0), "β = 0.5": (70, half, 0), "β = 2.0": (1, 1, 0)}
    stored = sweep("sweep-beta", {"replica:hopper-medium": values})
    assert alike(stored).word == word
    both = {"replica:hopper-medium": values, "replica:hopper-medium-replay": dict.fromkeys(values, (50, 1, 0))}
    assert alike(sweep("sweep-beta", both)).word == (PART if word == FAILS else word)


def test_what_is_not_stored_is_open() -> None:
    nothing = Evidence({})
    assert {claim.judge(nothing).word for claim in CLAIMS} == {OPEN}
    assert decay(sweep("sweep-decay", {"replica:hopper-medium": {"γ_bc = 0.98": (1, 1, 1)}})).word == OPEN


def timed(score: int, pbrl: int, platform: str) -> dict[str, dict[str, dict[str, Any]]]:
    stamp = {"device": {"platform": platform, "kind": "A GPU"}, "cores": 2}
    rates = {"score": score, "pbrl-prior": pbrl}
    return {
        "methods": {m: {"rates": {"1": {"run_steps_per_second": r}}, "provenance": stamp} for m, r in rates.items()}
    }


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ([timed(400, 100, "gpu")], HOLDS),
        ([timed(400, 100, "cpu")], PART),
        ([timed(400, 100, "gpu"), timed(200, 100, "cpu")], PART),
        ([timed(90, 100, "gpu")], FAILS),
        ([{"methods": {}}, {}], OPEN),
    ],
)
def test_speed(files: Any, word: Any) -> None:
    stored = Evidence({}, speeds={Path(f"{place}.json"): file for place, file in enumerate(files)})
    assert speed(stored).word == word


def test_the_run_time_experiment_counts_epochs() -> None:
    methods = {"score": {"seconds_per_epoch": 1.0}, "pbrl-prior": {"seconds_per_epoch": 3.2}}
    result = {"numbers": {"device": "A GPU", "methods": methods}}
    verdict = speed(Evidence({}, experiments={"runtime": (Path("result.json"), result)}))
    assert verdict.word == HOLDS
    assert "3.2 times" in verdict.because
