"""A window of updates: what it draws, how it averages, what comes before so many updates."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from score_rl.algorithms.algorithm import Algorithm, Batch, Data, cycle
from score_rl.algorithms.settings import config, setting
from score_rl.engine import window
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.window import unrolled_cycles
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.engine.made_up import make_runs, recording, relative, train


@config
class CountingConfig:
    every: int = setting(4, "updates between refreshes")
    batch_size: int = setting(2, "rows drawn")
    normalise_states: bool = setting(False, "no")
    reward_scaling: Literal["none"] = setting("none", "no")


class Counts(NamedTuple):
    step: Array
    refreshed: Array
    latest: Array  # the step of the latest refresh
    seen: Array  # what it drew


def count_refresh(
    config: CountingConfig, state: Counts, data: Data, key: jax.Array
) -> tuple[Counts, dict[str, jax.Array]]:
    seen = data.sample_starts(key, 3).sum() + data.sample(key, 2).rewards.sum()
    return state._replace(refreshed=state.refreshed + 1, latest=state.step, seen=seen), {"seen": seen}


def count_update(
    config: CountingConfig, state: Counts, batch: Batch, key: jax.Array, turn: int
) -> tuple[Counts, dict[str, jax.Array]]:
    age = (state.step - state.latest).astype(jnp.float32)
    drawn = batch.rows.mean()
    return state._replace(step=state.step + 1), {"age": age, "turn": jnp.float32(turn), "drawn": drawn}


COUNTING = Algorithm(
    name="counting",
    title="Counting",
    summary="counts",
    Config=CountingConfig,
    init=lambda config, shapes, key: Counts(*(jnp.zeros((), jnp.int32),) * 3, jnp.zeros(())),
    update=count_update,
    policy=lambda state: state.step,
    act=lambda config, policy, observations, key=None: observations,
    turns=lambda config: 2,
    refresh=count_refresh,
    refresh_every=lambda config: config.every,
)


def count(windows: list[int], every: int = 4, **settings: Any) -> tuple[Counts, list[dict[str, float]]]:
    """A run of `Counting`, window after window; its state, and the metrics of each window."""
    program = FleetProgram([Run("one", COUNTING, recording(), 0, CountingConfig(every=every, **settings))])
    state, start, measured = program.init(), 0, []
    for updates in windows:
        state, metrics = program.advance(state, start, updates)
        start += updates
        measured.append({name: float(value[0]) for name, value in metrics.items()})
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], state), measured


def test_refreshes_come_before_every_so_many_updates() -> None:
    state, (metrics,) = count([12])
    assert [int(count) for count in (state.step, state.refreshed, state.latest)] == [12, 3, 8]
    assert metrics["age"] == 1.5
    assert metrics["turn"] == 0.5


def test_the_length_of_a_window_changes_no_refresh_and_no_batch() -> None:
    (parts, measured), (whole, (average,)) = count([4, 8]), count([12])
    for mine, expected in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(mine, expected)
    assert measured[0]["drawn"] != measured[1]["drawn"], "each window drew rows of its own"
    np.testing.assert_allclose((measured[0]["drawn"] + 2 * measured[1]["drawn"]) / 3, average["drawn"], rtol=1e-5)


def test_every_row_is_drawn_as_often_as_any_other() -> None:
    _, (metrics,) = count([4], batch_size=20_000)
    assert abs(metrics["drawn"] - 249.5) < 2  # 500 rows; five deviations of the mean


def test_windows_are_whole_cycles() -> None:
    assert cycle(COUNTING, CountingConfig(every=3)) == 6
    with pytest.raises(ValueError, match="multiple of 4"):
        count([6])


def test_the_length_of_a_window_changes_no_training() -> None:
    runs = make_runs([recording()])
    assert relative(train(runs, window=50)[0], train(runs, window=10)[0]) < 1e-5


def test_a_loop_holds_more_cycles_where_much_is_held_and_as_many_as_divide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "LARGE_STATE", 1_000)
    little, much = ({"weight": jnp.zeros(number)} for number in (100, 150))  # 800 and 1,200 bytes in two runs

    def unrolled(state: dict[str, jax.Array], cycles: int, turns: int, runs: int = 2) -> int:
        with arithmetic(Arithmetic("bfloat16", kernel_runs=runs)):
            return unrolled_cycles(state, cycles, turns)

    assert [unrolled(little, number, 1) for number in (1, 4, 25)] == [1, 2, 1]
    assert [unrolled(much, number, 1) for number in (1, 4, 25, 26, 30)] == [1, 4, 5, 2, 5]
    assert [unrolled(much, number, 2) for number in (1, 4, 10)] == [1, 2, 2]
    assert unrolled(much, 25, 1, runs=1) == 1
    assert unrolled_cycles(much, 25, 1) == 1  # no kernels
