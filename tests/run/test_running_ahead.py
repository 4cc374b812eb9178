"""On an accelerator the next window is begun before the last one is known to be done. Nothing else changes."""

from pathlib import Path
from typing import Any

import pytest

import score_rl
from score_rl.errors import Stopped
from score_rl.run.experiment import Experiment
from score_rl.run.training import FleetTrainer, StartedCall, Workers
from score_rl.store.metrics import Row

OPTIONS: dict[str, Any] = {
    "steps": 80, "seeds": [0, 1], "eval_every": 20, "log_every": 10, "eval_episodes": 1, "transitions": 2_000,
    "config": {"hidden": (32, 32), "batch_size": 32}, "quiet": True,
}  # fmt: skip


def measured(experiment: Experiment) -> list[Row]:
    return sorted(row for row in experiment.metrics if not row.name.startswith("speed/"))


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[Row]:
    return measured(score_rl.train("replica:hopper-medium", out=tmp_path / "undisturbed", **OPTIONS))


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """As on an accelerator. The windows that were begun, and those that were dealt with, in their order."""
    order: list[tuple[str, int]] = []
    make, deal_with = FleetTrainer.__init__, FleetTrainer._deal_with

    def watched(self: FleetTrainer, *arguments: Any) -> None:
        make(self, *arguments)
        self.starts_ahead = True
        real = self.program.advance
        begun = lambda state, step, length: (order.append(("begun", step)), real(state, step, length))[1]  # noqa: E731
        monkeypatch.setattr(self.program, "advance", begun)

    def dealt(self: FleetTrainer, started: StartedCall, workers: Workers) -> None:
        order.append(("dealt", started.call.end))
        deal_with(self, started, workers)

    monkeypatch.setattr(FleetTrainer, "__init__", watched)
    monkeypatch.setattr(FleetTrainer, "_deal_with", dealt)
    return order


def test_the_same_is_measured(undisturbed: list[Row], ahead: list[Any], tmp_path: Path) -> None:
    experiment = score_rl.train("replica:hopper-medium", out=tmp_path / "out", **OPTIONS)
    assert measured(experiment) == undisturbed
    # The first window is the trial; then the next is begun before one is dealt with.
    assert ahead[:5] == [("begun", 0), ("begun", 10), ("dealt", 10), ("begun", 20), ("dealt", 20)]
    assert [step for what, step in ahead if what == "dealt"] == list(range(10, 81, 10))


@pytest.mark.parametrize("at", [10, 30, 40])
def test_stopped_in_between_and_gone_on_with(
    undisturbed: Any, ahead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    deal_with = FleetTrainer._deal_with

    def stopping(self: Any, started: Any, workers: Any) -> None:
        deal_with(self, started, workers)
        if started.call.end == at:
            self.context.stop.asked = True

    with monkeypatch.context() as patched:
        patched.setattr(FleetTrainer, "_deal_with", stopping)
        with pytest.raises(Stopped, match=f"stopped at update {at + 10} with a checkpoint"):
            score_rl.train("replica:hopper-medium", out=tmp_path / "out", **OPTIONS)
    assert {row.step for row in measured(score_rl.load(tmp_path / "out"))} == set(range(10, at + 11, 10))
    assert measured(score_rl.resume(tmp_path / "out", quiet=True)) == undisturbed
