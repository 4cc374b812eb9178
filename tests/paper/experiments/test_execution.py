"""What is said of a figure beside its numbers."""

from dataclasses import replace
from pathlib import Path

from score_rl.paper.experiments.execution import mixed_precision
from score_rl.report.results import RunResult


def test_runs_of_both_precisions_are_told() -> None:
    run = RunResult(Path(), "one", "score", "data", None, None, 0, {}, "finished", 10, 10, {})
    low = replace(run, request={"precision": "bfloat16"})
    assert mixed_precision([run, run]) == mixed_precision([low, low]) == mixed_precision([]) == []
    assert mixed_precision([run, low, low]) == ["Runs of both precisions: 1 in float32, 2 in bfloat16."]
