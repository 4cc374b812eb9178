"""Shares, regret and what is never ruinous, on results written by hand."""

from typing import Any

import pytest

from benchmarks.judging.choosing_summary import DEFAULT, NAMED, has_a_choice, rules, safest, shares, summary

OTHER = "score alpha=1 beta=0.2 bc_decay=1"


def stored(name: str, returns: dict[str, float], chosen: str | None, behaviour: float = -90.0) -> dict[str, Any]:
    rows = [
        {"run": run, "variant": run, "verdict": "not distinguishable", "value": value, "moved": 0.1, "return": value}
        for run, value in returns.items()
    ]
    return {"set": name, "behaviour": behaviour, "choice": {"run": chosen}, "policies": rows}


def test_shares_are_of_what_the_best_policy_gains() -> None:
    found = shares(stored("heating", {DEFAULT: -50.0, NAMED: -70.0, OTHER: -150.0}, NAMED))
    assert found == {DEFAULT: [1.0], NAMED: [0.5], OTHER: [-1.5]}


def test_no_policy_is_the_behaviour() -> None:
    each = stored("heating", {DEFAULT: -50.0, NAMED: -70.0, "bc": -92.0}, None)
    by_name = rules(NAMED)
    assert by_name["score select"](each) == 0.0
    assert by_name[f"always {NAMED}"](each) == 0.5


def test_the_safest_setting_is_that_whose_worst_set_is_best() -> None:
    first = stored("heating", {DEFAULT: -50.0, NAMED: -70.0, OTHER: -80.0}, None)
    second = stored("tank", {DEFAULT: -200.0, NAMED: -85.0, OTHER: -60.0}, None)
    assert safest([first, second], ("heating", "tank")) == OTHER
    assert safest([first, second], ("heating",)) == DEFAULT


def test_a_set_where_nothing_can_be_gained_counts_in_no_mean() -> None:
    flat = stored("flat", {DEFAULT: -89.0, NAMED: -95.0, "bc": -91.0}, DEFAULT)
    rich = stored("rich", {DEFAULT: -50.0, NAMED: -70.0, "bc": -91.0}, NAMED)
    assert not has_a_choice(flat)
    assert has_a_choice(rich)
    (line,) = (line for line in summary([flat, rich], ()).splitlines() if line.startswith("| score select"))
    assert float(line.split("|")[-3]) == pytest.approx(0.5)


def test_the_sets_that_were_named_later_have_a_mean_of_their_own() -> None:
    early = stored("early", {DEFAULT: -50.0, NAMED: -70.0, "bc": -91.0}, NAMED)  # a share of 0.5
    late = stored("late", {DEFAULT: -50.0, NAMED: -70.0, "bc": -91.0}, DEFAULT)  # the best
    text = summary([early, late], (), ("late",))
    (line,) = (line for line in text.splitlines() if line.startswith("| score select"))
    assert line.split("|")[-3:-1] == [" 0.25 ", " 0.00 "]


def test_a_set_that_was_chosen_from_without_a_method_has_a_dash_there() -> None:
    """`--methods score` has no behaviour cloning to compare with."""
    line = next(
        row
        for row in summary([stored("heating", {DEFAULT: -50.0, NAMED: -70.0}, DEFAULT)], ()).splitlines()
        if row.startswith("| always behaviour cloning |")
    )
    assert line == "| always behaviour cloning | – | – | – |"
