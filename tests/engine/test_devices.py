"""Runs are spread over devices; what a run computes does not depend on where."""

import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.engine.devices import FleetDevices


def test_a_function_of_one_run_is_a_function_of_the_fleet() -> None:
    def scaled(factor: jax.Array, numbers: jax.Array, shared: jax.Array) -> dict[str, jax.Array]:
        return {"sum": factor * numbers.sum() + shared}

    for runs in (1, 3):
        devices = FleetDevices(runs)
        factor, numbers = jnp.arange(1.0, runs + 1), jnp.arange(4.0 * runs).reshape(runs, 4)
        result = devices.over_runs(scaled, (0, 0, None))(factor, numbers, jnp.float32(5))["sum"]
        np.testing.assert_allclose(result, factor * numbers.sum(axis=1) + 5)


def test_one_run_has_no_axis_inside() -> None:
    """On a CPU that is a tenth faster than an axis of one."""
    traced = jax.make_jaxpr(FleetDevices(1).over_runs(lambda a, b: a @ b, (0, None)))(jnp.ones((1, 2, 3)), jnp.ones(3))
    (product,) = [equation for equation in traced.jaxpr.eqns if equation.primitive.name == "dot_general"]
    assert product.invars[0].aval.shape == (2, 3)


def forced_devices(number: int, code: str) -> str:
    """What the code prints where a CPU passes for several devices."""
    flags = f"--xla_force_host_platform_device_count={number}"
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_shares_are_of_equal_size() -> None:
    """Three runs on two devices: the last is repeated. On four devices only three are used."""
    code = """
        import jax
        from score_rl.engine.devices import FleetDevices
        for number in (2, 4):
            devices = FleetDevices(3, jax.devices()[:number])
            print(devices.number, devices.width, devices.runs_on_each, devices.filled("abc"))
        """
    assert forced_devices(4, code).splitlines() == ["2 4 2 ['a', 'b', 'c', 'c']", "3 3 1 ['a', 'b', 'c']"]


def test_runs_are_the_same_on_two_devices() -> None:
    """Three runs on two devices: equal to the same runs on one."""
    code = """
        import jax
        from score_rl.engine.program import FleetProgram
        from tests.engine.made_up import make_runs, recording, relative
        runs = make_runs([recording()], seeds=(0, 1, 2))
        states = []
        for devices in (jax.devices(), jax.devices()[:1]):
            program = FleetProgram(runs, devices)
            state, metrics = program.advance(program.init(), 0, 50)
            state, metrics = program.advance(state, 50, 50)
            assert len(state.step.sharding.device_set) == len(devices)
            states.append(jax.tree.map(lambda leaf: leaf[:3], state))
        assert relative(*states) < 1e-5
        print("equal on", len(jax.devices()))
        """
    assert forced_devices(2, code) == "equal on 2"
