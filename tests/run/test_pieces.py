"""A slow method's window is done in pieces: progress is seen, a stop is heard, and nothing that is measured changes."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import score_rl
from score_rl.engine import effort, program
from score_rl.engine.effort import OPERATIONS_PER_NUMBER, count_operations
from score_rl.engine.program import FleetProgram
from score_rl.errors import Stopped
from score_rl.run.checkpoint_writer import HISTORY
from score_rl.run.expansion import expand_runs
from score_rl.run.experiment import Experiment
from score_rl.run.progress import TrainingProgress
from score_rl.run.training import FleetTrainer
from score_rl.store.checkpoints import checkpoints, load_checkpoint
from score_rl.store.metrics import Row
from score_rl.store.request import AlgorithmRequest, ExperimentSpec
from tests.run.conftest import recording

OPTIONS: dict[str, Any] = {
    "steps": 60, "seeds": [0, 1, 2], "eval_every": 30, "log_every": 30, "eval_episodes": 1, "transitions": 2_000,
    "config": {"hidden": (32, 32), "batch_size": 32}, "quiet": True,
}  # fmt: skip


def test_counts_products_and_numbers_and_repeats_loops() -> None:
    def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(carry @ carry) + row[None], None

    traced = jax.make_jaxpr(lambda x, rows: jax.lax.scan(step, x, rows)[0])(jnp.zeros((4, 4)), jnp.zeros((7, 4)))
    products, numbers = 2 * 4 * 4 * 4, 2 * 16  # tanh and a sum
    own = 4 + 16  # the row's broadcast, in one operation or two
    least, most = (7 * (products + OPERATIONS_PER_NUMBER * n) for n in (numbers, numbers + own))
    assert least <= count_operations(traced.jaxpr) <= most + OPERATIONS_PER_NUMBER * 200, (
        "and little outside of the loop"
    )


def fleet(**settings: Any) -> FleetProgram:
    spec = ExperimentSpec(
        algorithms=(AlgorithmRequest("score", {"hidden": ((32, 32),), "batch_size": (32,)} | settings),),
        datasets=("recording",), seeds=(0, 1), steps=30, eval_every=30, eval_episodes=1, log_every=30,
    )  # fmt: skip
    return program.FleetProgram(expand_runs(spec, [recording()]))


def test_more_work_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fleet().updates_per_call(30) == 30, "little work is done in one go"
    work = fleet().operations(30)
    for parts, expected in ((1.01, 10), (2.9, 10), (3.1, 6), (20, 2), (1000, 2)):  # SCORE's cycle is 2
        monkeypatch.setattr(effort, "OPERATIONS_PER_CALL", work / parts)
        assert fleet().updates_per_call(30) == expected, parts
    assert fleet(batch_size=(64,)).operations(30) > 1.5 * work
    on_a_gpu = fleet()
    on_a_gpu.platform = "gpu"
    assert on_a_gpu.updates_per_call(30) == 30


@pytest.fixture
def whole(tmp_path: Path) -> Experiment:
    return score_rl.train("replica:hopper-medium", out=tmp_path / "whole", **OPTIONS)


def table(experiment: Experiment) -> list[Row]:
    return sorted(row for row in experiment.metrics if not row.name.startswith("speed/"))


def states(experiment: Experiment) -> dict[str, np.ndarray]:
    """All that a checkpoint holds but its copy of the measurements, which has speeds by the clock."""
    arrays = load_checkpoint(checkpoints(experiment.folder.fleet(0))[0])[1]
    return {name: array for name, array in arrays.items() if name != HISTORY}


def assert_same(one: Experiment, other: Experiment) -> None:
    """But for roundings: programs of different lengths are compiled differently."""
    trained = [[row for row in table(e) if row.name.startswith("train/")] for e in (one, other)]
    assert [row[:3] for row in trained[0]] == [row[:3] for row in trained[1]]
    first_values, other_values = ([row.value for row in rows] for rows in trained)
    np.testing.assert_allclose(first_values, other_values, rtol=1e-4, atol=1e-6)
    first, second = states(one), states(other)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-4, atol=1e-6, err_msg=name)


def in_pieces_of(monkeypatch: pytest.MonkeyPatch, updates: int) -> None:
    monkeypatch.setattr(program.FleetProgram, "updates_per_call", lambda self, window: updates)


def test_pieces_change_nothing(whole: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    advance = TrainingProgress.advance
    monkeypatch.setattr(TrainingProgress, "advance", lambda self, done: (shown.append(done), advance(self, done)))
    in_pieces_of(monkeypatch, 10)
    assert_same(whole, score_rl.train("replica:hopper-medium", out=tmp_path / "pieces", **OPTIONS))
    assert sorted(set(shown)) == [10, 20, 30, 40, 50, 60], "progress is shown after each"


@pytest.mark.parametrize(("at", "afterwards"), [(20, 10), (20, 30), (40, 10), (40, 4)])
def test_a_stop_within_a_window_loses_nothing(
    whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, afterwards: int
) -> None:
    """Gone on with in the same pieces, and in others, as another machine may."""
    in_pieces_of(monkeypatch, 10)
    undisturbed = score_rl.train("replica:hopper-medium", out=tmp_path / "pieces", **OPTIONS)
    wait = FleetTrainer._wait_for

    def stopping(self: Any, started: Any, workers: Any) -> None:
        wait(self, started, workers)
        self.context.stop.asked |= started.call.end == at

    with monkeypatch.context() as patched:
        patched.setattr(FleetTrainer, "_wait_for", stopping)
        with pytest.raises(Stopped, match=f"stopped at update {at} with a checkpoint"):
            score_rl.train("replica:hopper-medium", out=tmp_path / "out", **OPTIONS)
    stopped = score_rl.load(tmp_path / "out")
    assert {run.step for run in stopped} == {at}
    assert {row.step for row in table(stopped)} == set(range(30, at + 1, 30)), "no row of half a window"
    assert np.isfinite(stopped[2].policy(np.zeros(11))).all()
    in_pieces_of(monkeypatch, afterwards)
    resumed = score_rl.resume(tmp_path / "out", quiet=True)
    assert_same(resumed, whole)
    if afterwards == 10:
        assert table(resumed) == table(undisturbed), "to the bit"
        first, second = states(resumed), states(undisturbed)
        assert all((first[name] == second[name]).all() for name in second)
