"""What a log file is told of a stage that is within an epoch."""

import io

import pytest
from rich.console import Console

from score_rl.run import progress
from score_rl.run.messages import Announcer


def test_a_line_says_where_an_epoch_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    told = io.StringIO()
    with progress.TrainingProgress(
        Announcer(Console(file=told, width=200)), "model", 1_000, 1.25, unit="epochs"
    ) as shown:
        shown.start -= 10
        shown.show({"update": "300 of 400"})
        shown.advance(1.75)
        shown.show({"loss": "0.5"})
        shown.show({"update": ""})
        shown.advance(2)
        shown.show({"update": "100 of 400"})
    lines = told.getvalue().splitlines()
    assert lines[1].startswith("model: 1 of 1,000 epochs, 0.05 epochs/s, 5 h")
    assert lines[1].endswith("min left, update 300 of 400")
    assert lines[4].startswith("model: 2 of 1,000 epochs, 0.075 epochs/s, 3 h")
    assert lines[4].endswith("min left, loss 0.5")
    assert lines[5].endswith("left, update 100 of 400, loss 0.5")
