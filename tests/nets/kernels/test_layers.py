"""The kernels of one layer against the plain network, in Pallas's interpreter."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import score_rl.nets.kernels.layers as layers
from score_rl.nets.actor_critic import values, values_of_many
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, lowered_for_gpus, plain

MEMBERS, INPUTS, ROWS = 2, 23, 50  # 50 rows: the last tile is not full
SMALL = LayerByLayer(rows=64, units=64, interpret=True)


def network(*hidden: int, inputs: int = INPUTS) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (inputs, *hidden, 1), members=MEMBERS)


def kernels(form: LayerByLayer) -> Callable[..., Any]:
    return lambda net, x: form.scalars(net.weights, net.biases, x)


CASES = [  # form, hidden widths, inputs, rows
    (SMALL, (64,), 5, ROWS),
    (SMALL, (64, 64), 63, ROWS),  # the widest input whose first layer is not stored
    (SMALL, (64, 64), 64, ROWS),
    (SMALL._replace(columns=0), (64, 64, 64), INPUTS, ROWS),  # stored although it is narrow
    (SMALL, (64, 128), 16, 1),
    (SMALL._replace(units=128), (128, 64, 128), INPUTS, ROWS),
    (SMALL._replace(units=128), (192, 64, 64, 64), 65, 65),
    (SMALL._replace(programs=100), (64, 64), 65, 511),  # the rows' sums in two parts
    (LayerByLayer(interpret=True), (256, 256), 64, 130),
]


@pytest.mark.parametrize(("form", "hidden", "inputs", "rows"), CASES)
def test_in_float32_the_kernels_are_the_network(
    form: Any, hidden: tuple[int, ...], inputs: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "DTYPE", jnp.float32)  # the same kernels without rounding: their algebra
    net, x = network(*hidden, inputs=inputs), jax.random.normal(jax.random.key(1), (rows, inputs))
    q, slopes = gradients(kernels(form), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert jnp.abs(kernels(form)(net, x) - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


def test_rounding_costs_what_bfloat16_costs() -> None:
    net, x = network(64, 64, 64), jax.random.normal(jax.random.key(1), (ROWS, INPUTS))
    q, slopes = gradients(kernels(SMALL), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (INPUTS, 64, 64, 64, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, ROWS, INPUTS))

    def slopes(function: Callable[..., Any]) -> tuple[Perceptron, jax.Array]:
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(kernels(SMALL)), slopes(plain)) < 1e-5


def fits(*sizes: int, members: int | None = MEMBERS) -> bool:
    return LayerByLayer().fits(Perceptron.init(jax.random.key(0), sizes, members=members).weights, ROWS)


def test_only_networks_of_their_shape() -> None:
    assert fits(INPUTS, 256, 256, 256, 1)
    assert fits(INPUTS, 64, 1)
    assert fits(INPUTS, 64, 192, 1)
    assert not fits(INPUTS, 400, 300, 1)
    assert not fits(INPUTS, 1)
    assert not fits(5, 64, 64, 2)
    assert not fits(5, 64, 64, 1, members=None)


def test_sums_are_cut_into_equal_parts() -> None:
    assert layers._parts(124, 4) == 4
    assert layers._parts(124, 5) == 4
    assert layers._parts(124, 20) == 31
    assert layers._parts(80, 6) == 5
    assert layers._parts(4, 100) == 1
    assert layers._parts(7, 2) == 1
    few, some, many = (LayerByLayer.for_runs(runs).programs for runs in (1, 9, 1_000))
    assert few > some > many == 1


def test_critics_use_them_where_they_are_chosen() -> None:
    net, s = network(64, 64, 64), jax.random.normal(jax.random.key(1), (ROWS, 17))
    a = jax.random.uniform(jax.random.key(2), (4, ROWS, 6), minval=-1, maxval=1)
    with arithmetic(Arithmetic("bfloat16", (SMALL,))):
        one, many = values(net, s, a[0]), values_of_many(net, s, a)
    assert (one == kernels(SMALL)(net, jnp.concatenate([s, a[0]], axis=1))).all()
    assert many.shape == (MEMBERS, 4, ROWS)
    assert jnp.abs(many[:, 0] - one).max() < 1e-6
    assert 0 < jnp.abs(many - values_of_many(net, s, a)).max() < 4e-3


def test_slopes_by_states_and_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "DTYPE", jnp.float32)
    net, s = network(64, 64), jax.random.normal(jax.random.key(1), (ROWS, 17))
    a = jax.random.uniform(jax.random.key(2), (2, ROWS, 6), minval=-1, maxval=1)

    def slopes() -> tuple[Perceptron, jax.Array, jax.Array]:
        return jax.grad(lambda net, s, a: (values_of_many(net, s, a) ** 2).sum(), argnums=(0, 1, 2))(net, s, a)

    with arithmetic(Arithmetic("bfloat16", (SMALL,))):
        chosen = slopes()
    assert distance(chosen, slopes()) < 1e-5


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # jax 0.11
@pytest.mark.parametrize(
    "form",
    [
        LayerByLayer(),
        LayerByLayer(units=256, stages=4),
        LayerByLayer(rows=64, units=64, warps=4),
        LayerByLayer.for_runs(9),
    ],
)
@pytest.mark.parametrize(("members", "rows", "inputs"), [(2, 7_936, 23), (10, 256, 119), (3, 100, 14)])
def test_they_can_be_lowered_for_gpus(form: Any, members: int, rows: int, inputs: int) -> None:
    """As far as a machine without one can tell."""
    lowered = lowered_for_gpus(kernels(form), members, rows, inputs)
    # A narrow input: two forward, one back, two gradients of weights, by the first weight and by the input. A wide one:
    # three forward, two back and by the input, three gradients of weights.
    assert lowered.count("triton") == (7 if inputs < form.columns else 9)
