"""How well a judge ranks grids, by hand-made policies."""

from typing import Any

import pytest

from benchmarks.judging.choosing_summary import DEFAULT
from benchmarks.judging.grid_measures import HEADINGS, grid_measures
from score_rl.store.judgements import BETTER, DOUBTFUL

COLUMN = {name: place for place, name in enumerate(HEADINGS, 1)}


def policy(value: float | None, truth: float, *, verdict: str = BETTER, variant: str = "bc") -> dict[str, Any]:
    return {"value": value, "return": truth, "verdict": verdict, "variant": variant, "moved": truth}


def line(*policies: dict[str, Any]) -> list[str]:
    stored = {"set": "replica:plant", "behaviour": 1.0, "policies": list(policies)}
    return [cell.strip() for cell in grid_measures([stored]).splitlines()[2].split("|")]


def test_a_judge_that_is_right() -> None:
    cells = line(policy(1.0, 0.0, variant=DEFAULT), policy(2.0, 1.0), policy(3.0, 4.0))
    assert cells[1:4] == ["plant", "3", "1.00"]
    assert cells[4] == "-1.00", "the truly better ones are further away here"
    assert float(cells[COLUMN["regret@1: judge"]]) == 0
    assert float(cells[COLUMN["always the default"]]) == 1
    assert float(cells[COLUMN["at random"]]) == pytest.approx((4 - 5 / 3) / 4, abs=0.01)


def test_what_is_not_to_be_trusted_or_has_no_estimate_comes_last() -> None:
    cells = line(policy(9.0, 0.0, verdict=DOUBTFUL), policy(1.0, 1.0), policy(None, 0.5))
    assert float(cells[COLUMN["regret@1: judge"]]) == 0
    assert cells[COLUMN["always the default"]] == ""
