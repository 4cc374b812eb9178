"""The first screen of docs/results.md says what the results say, on results made up here."""

from pathlib import Path

import pytest

from score_rl.paper.evidence import reading
from score_rl.paper.evidence.found import found
from score_rl.paper.evidence.records import Evidence
from tests.paper.evidence.made_up import complete


def test_nothing_stored_is_nothing_found() -> None:
    assert found(Evidence({}), Path()) == "Nothing is stored yet."


@pytest.mark.usefixtures("hastily")
def test_means_disagreements_and_verdicts_are_those_of_the_results() -> None:
    agreed = found(reading.collect(complete({"score": 0.0}, methods=("score",))), Path())
    assert "mean over 15 data sets** is 77.0 with one setting for all. The paper prints 77.0." in agreed
    assert "meets the paper's on 15 of 15 data sets." in agreed
    lower = found(reading.collect(complete({"score": -40.0}, methods=("score",))), Path())
    assert "is 37.0 with one setting" in lower
    assert "meets the paper's on 0 of 15 data sets. It does not on halfcheetah-random (-40.0), " in lower
    assert "**Not enough data yet**: SCORE is first overall;" in lower
