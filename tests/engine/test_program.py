"""The compiled program: what a run computes depends on the run alone."""

from typing import Any

import jax
import numpy as np
import pytest

from score_rl.algorithms.score import State
from score_rl.engine import effort, window
from score_rl.engine.program import FleetProgram
from score_rl.errors import InputError
from score_rl.nets.kernels.fused import Fused, Tiling
from tests.engine.made_up import leaves, make_runs, recording, relative, train


def test_a_run_alone_and_among_eight_is_the_same_run() -> None:
    data = [recording("one"), recording("two", rows=300, seed=1)]
    fleet = make_runs(data, seeds=(0, 1), beta=(0.1, 0.5))
    assert len(fleet) == 8
    state, metrics = train(fleet)
    for number in (0, 3, 6):
        alone, alone_metrics = train([fleet[number]])
        mine = jax.tree.map(lambda leaf, number=number: leaf[number], state)
        single = jax.tree.map(lambda leaf: leaf[0], alone)
        assert relative(mine, single) < 1e-4
        np.testing.assert_allclose(metrics["q"][number], alone_metrics["q"][0], rtol=1e-4)
    different = [leaves(jax.tree.map(lambda leaf, n=n: leaf[n], state.actor))[0] for n in range(8)]
    for a in range(8):
        for b in range(a):
            assert not np.allclose(different[a], different[b]), "two different runs came out the same"


def test_settings_share_their_random_numbers() -> None:
    """β is compared on the same initial networks, batches and noise."""
    runs = make_runs([recording()], beta=(0.1, 0.5))
    start = FleetProgram(runs).init()
    for leaf in leaves(start.critics):
        np.testing.assert_array_equal(leaf[0], leaf[1])


def test_runs_of_different_shapes_are_refused() -> None:
    runs = make_runs([recording("one"), recording("wide", observation=7)])
    with pytest.raises(InputError, match="2 runs of 2 shapes are no fleet"):
        FleetProgram(runs)
    with pytest.raises(InputError, match="0 runs"):
        FleetProgram([])


def test_unrolled_cycles_are_the_same_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU trains: with the kernels, here in the interpreter, and two cycles in the loop's body."""
    runs = make_runs([recording()], seeds=(0, 1), hidden=((64, 64),))
    states, seen = [], []
    scan = jax.lax.scan

    def watched(*arguments: Any, **options: Any) -> tuple[State, jax.Array]:
        seen.append(options.get("unroll", 1))
        return scan(*arguments, **options)

    monkeypatch.setattr(jax.lax, "scan", watched)
    for unrolled in (1, 2):
        monkeypatch.setattr(window, "UNROLLED", unrolled)
        program = FleetProgram(runs, precision="bfloat16")
        form = Fused(2, tiling=Tiling(rows=32, units=64, interpret=True))
        program.arithmetic = program.arithmetic._replace(critics=(form,), actors=(form,), kernel_runs=2)
        states.append(program.advance(program.init(), 0, 8)[0])
        assert max(seen) == unrolled
    assert relative(*states) < 1e-4
    assert int(states[0].step[0]) == 8


def test_more_work_is_cut_into_shorter_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def fleet(**settings: Any) -> FleetProgram:
        return FleetProgram(make_runs([recording()], seeds=(0, 1), **settings))

    assert fleet().updates_per_call(30) == 30, "little work is done in one go"
    work = fleet().operations(30)
    for calls, expected in ((1.01, 10), (2.9, 10), (3.1, 6), (20, 2), (1000, 2)):  # SCORE's cycle is 2
        monkeypatch.setattr(effort, "OPERATIONS_PER_CALL", work / calls)
        assert fleet().updates_per_call(30) == expected, calls
    assert fleet(batch_size=(64,)).operations(30) > 1.5 * work
    on_a_gpu = fleet()
    on_a_gpu.platform = "gpu"
    assert on_a_gpu.updates_per_call(30) == 30


def test_a_copied_policy_outlives_its_state() -> None:
    program = FleetProgram(make_runs([recording()]))
    state = program.init()
    policies = program.policies(state)
    before = leaves(policies)
    state, _ = program.advance(state, 0, 10)
    for old, kept in zip(before, leaves(policies), strict=True):
        np.testing.assert_array_equal(old, kept)
    assert relative(program.policies(state), policies) > 0
