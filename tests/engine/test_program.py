"""The compiled program: what a run computes depends on the run alone."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.registry import get_algorithm
from score_rl.data.treatment import fit_treatment
from score_rl.engine.program import FleetProgram, _written_out, draw_batch, pack_rows
from score_rl.engine.runs import group_fleets
from score_rl.nets.kernels.fused import How, Kernels
from score_rl.nets.precision import Arithmetic, arithmetic
from score_rl.run.expansion import expand_runs
from score_rl.store.request import ExperimentSpec
from tests.run.conftest import recording

SMALL = {"hidden": ((32, 32),), "batch_size": (32,)}


def runs_of(datasets, seeds=(0,), **settings):
    spec = ExperimentSpec(
        algorithm="score", datasets=tuple(d.name for d in datasets), seeds=tuple(seeds), settings=SMALL | settings,
        steps=100, eval_every=100, eval_episodes=1, log_every=50,
    )  # fmt: skip
    return expand_runs(spec, get_algorithm("score"), datasets)


def train(runs, updates=100, window=50):
    program = FleetProgram(runs)
    state = program.init()
    for start in range(0, updates, window):
        state, metrics = program.advance(state, start, window)
    return state, metrics


def leaves(tree):
    return [np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
            for x in jax.tree.leaves(tree)]  # fmt: skip


def relative(a, b):
    return max(np.linalg.norm(x - y) / (np.linalg.norm(y) + 1e-12) for x, y in zip(leaves(a), leaves(b), strict=True))


def test_a_run_alone_and_among_eight_is_the_same_run():
    data = [recording("one"), recording("two", rows=300, seed=1)]
    fleet = runs_of(data, seeds=(0, 1), beta=(0.1, 0.5))
    assert len(fleet) == 8
    state, metrics = train(fleet)
    for place in (0, 3, 6):
        alone, alone_metrics = train([fleet[place]])
        mine = jax.tree.map(lambda leaf, place=place: leaf[place], state)
        single = jax.tree.map(lambda leaf: leaf[0], alone)
        assert relative(mine, single) < 1e-4
        np.testing.assert_allclose(metrics["q"][place], alone_metrics["q"][0], rtol=1e-4)
    different = [leaves(jax.tree.map(lambda leaf, p=p: leaf[p], state.actor))[0] for p in range(8)]
    for a in range(8):
        for b in range(a):
            assert not np.allclose(different[a], different[b]), "two different runs came out the same"


def test_settings_share_their_random_numbers():
    """β is compared on the same initial networks, batches and noise."""
    runs = runs_of([recording()], beta=(0.1, 0.5))
    start = FleetProgram(runs).init()
    for leaf in leaves(start.critics):
        np.testing.assert_array_equal(leaf[0], leaf[1])


def test_the_length_of_a_window_changes_nothing():
    runs = runs_of([recording()])
    assert relative(train(runs, window=50)[0], train(runs, window=10)[0]) < 1e-5


def test_cycles_written_out_are_the_same_cycles(monkeypatch):
    """As a GPU trains: with the kernels, here in the interpreter, and two cycles in the loop's body."""
    runs = runs_of([recording()], seeds=(0, 1), hidden=((64, 64),))
    states, seen = [], []
    scan = jax.lax.scan

    def watched(*arguments, **options):
        seen.append(options.get("unroll", 1))
        return scan(*arguments, **options)

    monkeypatch.setattr(jax.lax, "scan", watched)
    for written_out in (1, 2):
        monkeypatch.setattr("score_rl.engine.program.WRITTEN_OUT", written_out)
        program = FleetProgram(runs, precision="bfloat16")
        kernels = Kernels(2, always=How(rows=32, units=64, interpret=True))
        program.arithmetic = program.arithmetic._replace(kernels=kernels, padded=None)
        states.append(program.advance(program.init(), 0, 8)[0])
        assert max(seen) == written_out
    assert relative(*states) < 1e-4
    assert int(states[0].step[0]) == 8


def test_a_loop_holds_more_cycles_where_much_is_held_and_as_many_as_divide(monkeypatch):
    monkeypatch.setattr("score_rl.engine.program.LARGE", 1_000)
    little, much = ({"weight": jnp.zeros(number)} for number in (100, 150))  # 800 and 1,200 bytes in two runs

    def cycles(state, number, turns, runs=2):
        with arithmetic(Arithmetic("bfloat16", Kernels(runs))):
            return _written_out(state, jnp.zeros((number, turns), jnp.int32))

    assert [cycles(little, number, 1) for number in (1, 4, 25)] == [1, 2, 1]
    assert [cycles(much, number, 1) for number in (1, 4, 25, 26, 30)] == [1, 4, 5, 2, 5]
    assert [cycles(much, number, 2) for number in (1, 4, 10)] == [1, 2, 2]
    assert cycles(much, 25, 1, runs=1) == 1
    assert _written_out(much, jnp.zeros((25, 1), jnp.int32)) == 1  # no kernels


def test_sampling_reaches_every_row_of_its_own_data_set_and_no_other():
    data = [recording("one", rows=140), recording("two", rows=160, seed=1)]
    program = FleetProgram(runs_of(data))
    np.testing.assert_array_equal(program.inputs.offset, [0, 140])
    np.testing.assert_array_equal(program.inputs.length, [140, 160])
    np.testing.assert_array_equal(program.rows[140:], pack_rows(data[1]))


def test_unpacking_treats_every_column():
    data = recording()
    treatment = fit_treatment(data, normalise_states=True, reward_scaling="minmax")
    batch = draw_batch(treatment, Shapes(5, 2), jnp.asarray(pack_rows(data)), 0, len(data), jnp.arange(len(data)))
    np.testing.assert_allclose(batch.observations.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(batch.observations.std(0), 1, atol=2e-3)  # the 1e-3 in the denominator
    assert float(batch.rewards.min()) == 0
    assert float(batch.rewards.max()) == 1
    np.testing.assert_array_equal(batch.actions, data.actions)
    np.testing.assert_array_equal(batch.rows, np.arange(len(data)))
    np.testing.assert_array_equal(batch.terminals, data.terminals.astype(np.float32))
    assert not np.array_equal(batch.terminals.astype(bool), data.terminals | data.timeouts)
    ends = np.zeros(len(data), bool)
    ends[49::50] = True
    np.testing.assert_array_equal(batch.followed, ~ends)
    np.testing.assert_array_equal(batch.next_actions[:-1][~ends[:-1]], data.actions[1:][~ends[:-1]])
    expected = (data.next_observations - data.observations.mean(0)) / (data.observations.std(0) + 1e-3)
    np.testing.assert_allclose(batch.next_observations, expected, atol=1e-4)


def test_other_shapes_are_other_fleets():
    data = [recording("one"), recording("wide", observation=7)]
    fleets = group_fleets(runs_of(data, seeds=(0, 1), critics=(3, 5), beta=(0.1, 0.2)))
    assert [len(fleet) for fleet in fleets] == [4, 4, 4, 4]
    assert {(f[0].config.critics, f[0].dataset.name) for f in fleets} == {
        (3, "one"), (5, "one"), (3, "wide"), (5, "wide")
    }  # fmt: skip


def test_runs_are_sharded_over_devices():
    """Three runs on two forced CPU devices: equal to the same runs on one."""
    code = textwrap.dedent(
        """
        import jax, numpy as np
        from score_rl.engine.program import FleetProgram
        from tests.run.conftest import recording
        from tests.engine.test_program import runs_of, relative
        assert len(jax.devices()) == 2
        runs = runs_of([recording()], seeds=(0, 1, 2))
        states = []
        for devices in (jax.devices(), jax.devices()[:1]):
            program = FleetProgram(runs, devices)
            state, metrics = program.advance(program.init(), 0, 50)
            state, metrics = program.advance(state, 50, 50)
            assert len(state.step.sharding.device_set) == len(devices)
            states.append(jax.tree.map(lambda leaf: leaf[:3], state))
        assert relative(*states) < 1e-5
        print("equal")
        """
    )
    import os

    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": "."}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "equal", done.stderr
