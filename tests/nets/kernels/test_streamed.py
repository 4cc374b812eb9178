"""The kernels that hold a whole weight against the plain network, in Pallas's interpreter."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import score_rl.nets.kernels.streamed as streamed
from score_rl.nets.actor_critic import values, values_of_many
from score_rl.nets.kernels.streamed import Streamed
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, lowered_for_gpus, plain

MEMBERS, INPUTS, ROWS = 2, 23, 50  # 50 rows: the last tile is not full
MANY_RUNS = Streamed(runs=100, least_rows=1, interpret=True)  # one program for each member


def network(*hidden: int, inputs: int = INPUTS) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (inputs, *hidden, 1), members=MEMBERS)


def kernels(form: Streamed) -> Callable[..., Any]:
    return lambda net, x: form.scalars(net.weights, net.biases, x)


CASES = [  # form, hidden widths, inputs, rows
    (MANY_RUNS, (64, 64, 64), 5, 1),
    (MANY_RUNS, (64, 128, 64), 15, ROWS),
    (MANY_RUNS._replace(stored=True), (128, 64, 256), 16, 130),
    (Streamed(interpret=True), (128, 64, 64), INPUTS, 513),  # as many programs as tiles
    (Streamed(runs=13, interpret=True), (64, 64, 64), 31, 600),  # five programs, ten tiles
    (
        Streamed(runs=13, down_units=64, sum_inputs=64, sum_outputs=64, interpret=True),
        (128, 128, 128, 64),
        INPUTS,
        300,
    ),
    (MANY_RUNS, (256, 256, 256), INPUTS, 65),
]


@pytest.mark.parametrize(("form", "hidden", "inputs", "rows"), CASES)
def test_in_float32_the_kernels_are_the_network(
    form: Any, hidden: tuple[int, ...], inputs: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "DTYPE", jnp.float32)  # the same kernels without rounding: their algebra
    net, x = network(*hidden, inputs=inputs), jax.random.normal(jax.random.key(1), (rows, inputs))
    q, slopes = gradients(kernels(form), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert jnp.abs(kernels(form)(net, x) - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


@pytest.mark.parametrize("stored", [False, True])
def test_rounding_costs_what_bfloat16_costs(stored: bool) -> None:
    net, x = network(64, 64, 64), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    q, slopes = gradients(kernels(MANY_RUNS._replace(stored=stored)), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (INPUTS, 64, 64, 64, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, 200, INPUTS))

    def slopes(function: Callable[..., Any]) -> tuple[Perceptron, jax.Array]:
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(kernels(Streamed(runs=2, interpret=True))), slopes(plain)) < 1e-5


def suits(net: Perceptron, rows: int = 2_048) -> bool:
    return Streamed().fits(net.weights, rows)


def test_only_networks_of_their_shape_on_many_rows() -> None:
    assert suits(network(256, 256, 256))
    assert suits(network(64, 128, 256, 64))
    assert not suits(network(256, 256))
    assert not suits(network(256, 512, 256))
    assert not suits(network(64, 192, 64))
    assert suits(network(64, 64, 64, inputs=31))
    assert not suits(network(64, 64, 64, inputs=32))
    assert not suits(Perceptron.init(jax.random.key(0), (5, 64, 64, 64, 2), members=2))
    assert not suits(Perceptron.init(jax.random.key(0), (5, 64, 64, 64, 1)))
    assert not suits(network(256, 256, 256), rows=2_047)


def test_critics_use_them_where_they_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "DTYPE", jnp.float32)
    net, s = network(64, 64, 64), jax.random.normal(jax.random.key(1), (ROWS, 17))
    a = jax.random.uniform(jax.random.key(2), (2, ROWS, 6), minval=-1, maxval=1)

    def slopes() -> tuple[Perceptron, jax.Array, jax.Array]:
        return jax.grad(lambda net, s, a: (values_of_many(net, s, a) ** 2).sum(), argnums=(0, 1, 2))(net, s, a)

    with arithmetic(Arithmetic("bfloat16", (MANY_RUNS,))):
        one, chosen = values(net, s, a[0]), slopes()
    assert (one == kernels(MANY_RUNS)(net, jnp.concatenate([s, a[0]], axis=1))).all()
    assert distance(chosen, slopes()) < 1e-5


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # jax 0.11
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(("members", "rows", "inputs"), [(2, 7_936, 23), (10, 256, 119), (3, 100, 14)])
def test_they_can_be_lowered_for_gpus(stored: bool, members: int, rows: int, inputs: int) -> None:
    """As far as a machine without one can tell."""
    lowered = lowered_for_gpus(kernels(Streamed(runs=2, stored=stored)), members, rows, inputs)
    assert lowered.count("triton") == 7  # two forward, one back, two sums, the first weight's and the input's


def test_no_program_asks_how_many_there_are() -> None:
    """On a device the axes of a grid are folded into three, so it would be told something else."""
    net, x = network(64, 64, 64), jnp.zeros((ROWS, INPUTS))
    slopes = jax.grad(lambda net, x: kernels(MANY_RUNS)(net, x).sum(), argnums=(0, 1))
    written = str(jax.make_jaxpr(slopes)(net, x))
    assert "program_id" in written
    assert "num_programs" not in written
