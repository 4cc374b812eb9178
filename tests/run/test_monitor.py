"""Runs that diverged and values that are impossible: found, said once, stored for as long as it is so."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.treatment import Treatment
from score_rl.engine.runs import Run
from score_rl.run.messages import RUNS_NAMED
from score_rl.run.monitor import RunMonitor
from score_rl.run.status import StatusKeeper
from score_rl.store.folder import Folder
from score_rl.store.metrics import Row
from tests.run.conftest import recording


@pytest.fixture
def monitor_of(tmp_path: Path) -> Callable[..., Any]:
    """For so many runs of SCORE on rewards of 0 to 1: Q is at most 100."""
    algorithm, dataset = get_algorithm("score"), recording()

    def make(number: int) -> tuple[RunMonitor, StatusKeeper, list[Any]]:
        status = StatusKeeper(Folder(tmp_path))
        said: list[str] = []
        runs = [Run(f"run-{n}", algorithm, dataset, n, make_config(algorithm, {})) for n in range(number)]
        low, high = float(dataset.rewards.min()), float(dataset.rewards.max())
        one = Treatment(*(jnp.float32(0) for _ in Treatment._fields))._replace(
            reward_shift=jnp.float32(low), reward_scale=jnp.float32(high - low)
        )
        stacked = jax.tree.map(lambda leaf: np.stack([leaf] * number), one)
        status.begin([run.id for run in runs], 0, 100)
        context: Any = types.SimpleNamespace(status=status, announcer=types.SimpleNamespace(say=said.append))
        return RunMonitor(runs, stacked, context), status, said

    return make


def means(*q: float, **others: Any) -> dict[str, np.ndarray]:
    return {"q": np.array(q), **{name: np.array(column) for name, column in others.items()}}


def test_rows_of_a_window(monitor_of: Callable[..., Any]) -> None:
    monitor, status, said = monitor_of(2)
    rows = monitor.inspect(10, means(1.0, 2.0, loss=[3.0, 4.0]))
    assert rows == [
        Row("run-0", 10, "train/q", 1.0), Row("run-0", 10, "train/loss", 3.0),
        Row("run-1", 10, "train/q", 2.0), Row("run-1", 10, "train/loss", 4.0),
    ]  # fmt: skip
    assert [run.step for run in status.record.runs.values()] == [10, 10]
    assert said == []


def test_measurements_of_a_run_end_where_it_diverges(monitor_of: Callable[..., Any]) -> None:
    monitor, status, said = monitor_of(2)
    rows = monitor.inspect(10, means(1.0, 2.0, loss=[np.inf, 0.0]))
    assert {row.run for row in rows} == {"run-1"}
    assert said == ["run-0 diverged by update 10 (loss is not finite); others go on."]
    assert {row.run for row in monitor.inspect(20, means(1.0, 2.0, loss=[0.0, 0.0]))} == {"run-1"}
    assert monitor.sound == ["run-1"]
    assert status.record.of("run-0").diverged_at == 10
    assert len(said) == 1


def test_impossible_values_are_said_once_and_stored_while_they_last(monitor_of: Callable[..., Any]) -> None:
    monitor, status, said = monitor_of(2)
    monitor.inspect(10, means(1000.0, 50.0))
    assert "run-0 by update 10: Q is 1e+03, but rewards add up to" in said[0]
    assert status.warned(monitor.ids) == ["run-0"]
    monitor.inspect(20, means(50.0, 50.0))
    assert status.warned(monitor.ids) == []
    monitor.inspect(30, means(1000.0, 50.0))
    assert len(said) == 1
    monitor.conclude()
    assert said[1].startswith("Warning: 1 of 2 runs ended with values that their rewards cannot add up to (run-0)")


def test_not_more_runs_are_named_than_a_person_reads(monitor_of: Callable[..., Any]) -> None:
    monitor, _, said = monitor_of(RUNS_NAMED + 2)
    monitor.inspect(10, means(*[1000.0] * (RUNS_NAMED + 2)))
    assert len(said) == RUNS_NAMED
    monitor.conclude()
    assert f"run-{RUNS_NAMED - 1}, ...)" in said[-1]


def test_a_sound_end_is_not_remarked_on(monitor_of: Callable[..., Any]) -> None:
    monitor, _, said = monitor_of(1)
    monitor.inspect(10, means(50.0))
    monitor.conclude()
    assert said == []
