"""The rule of the choice on stored policies of the judge's measurement, written by hand here."""

from typing import Any

import pytest

from benchmarks.judging.choosing_by_trust import of_trust, rules, table
from score_rl.store.judgements import BETTER, DOUBTFUL, MODEL, PESSIMISTIC, SAME


def policy(name: str, verdict: str, rank: float, score: float, updates: int = 2_000) -> dict[str, Any]:
    return {
        "name": f"{name}, {updates}", "contender": name, "verdict": verdict, "rank": rank, "score": score,
        "estimates": {kind: {"difference_low": rank} for kind in (PESSIMISTIC, MODEL)},
        "moved": 0.1, "updates": updates,
    }  # fmt: skip


def result(*policies: dict[str, Any], behaviour: float = -70.0) -> dict[str, Any]:
    return {"data": {"name": "heating", "behaviour_score": behaviour}, "policies": list(policies)}


def test_the_rule_takes_the_last_age_and_leaves_who_is_doubted() -> None:
    each = of_trust(
        result(
            policy("score", BETTER, 9.0, -20.0, updates=1_000),
            policy("score", BETTER, 0.3, -40.0),
            policy("score, alpha 0.1", SAME, 0.1, -60.0),
            policy("td3-bc", DOUBTFUL, 5.0, -340.0),
            policy("bc", SAME, 0.0, -72.0),
        )
    )
    assert each["choice"] == {"run": "score, 2000", "better": True}
    assert len(each["policies"]) == 4
    assert rules()["the rule of `score select`"](each) == 1.0
    assert rules()["always score, alpha 0.1"](each) == pytest.approx(1 / 3)


def test_one_bad_seed_leads_back_to_cloning() -> None:
    bad = result(policy("score", BETTER, 0.3, -40.0), policy("score", DOUBTFUL, 0.2, -90.0), policy("bc", SAME, 0, -72))
    assert of_trust(bad)["choice"] == {"run": "bc, 2000", "better": False}


def test_a_set_that_cannot_be_bettered_is_named_and_not_counted() -> None:
    flat = result(policy("score", SAME, 0, -75), policy("score, alpha 0.1", SAME, 0, -74), policy("bc", SAME, 0, -72))
    assert "so in no mean: heating" in table([flat])
