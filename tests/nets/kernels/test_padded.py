"""Critics in the form for processors that multiply bfloat16, against the plain network."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from score_rl.nets.actor_critic import deterministic, values, values_of_many
from score_rl.nets.kernels import padded
from score_rl.nets.kernels.padded import FORM_FOR_UNITS, Layout, Padded
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, plain

MEMBERS = 3
AMX = FORM_FOR_UNITS["amx_bf16"]
ALL = sorted({layout for form in FORM_FOR_UNITS.values() for layout in form})


def network(*sizes: int) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (*sizes, 1), members=MEMBERS)


def chosen(form: Padded) -> Arithmetic:
    return Arithmetic("bfloat16", (form,), (form,), emulated=True)


def widened(net: Perceptron, x: jax.Array, layout: Layout = AMX.few) -> jax.Array:
    return Padded(layout, layout).scalars(net.weights, net.biases, x)


@pytest.mark.parametrize("sizes", [(5, 16), (23, 64, 64), (31, 32, 48, 16), (32, 33, 31)])
@pytest.mark.parametrize("rows", [50, 64])
@pytest.mark.parametrize("layout", ALL)
def test_in_float32_it_is_the_network(
    sizes: tuple[int, ...], rows: int, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)  # the same without rounding: its algebra
    net, x = network(*sizes), jax.random.normal(jax.random.key(1), (rows, sizes[0]))
    q, slopes = gradients(partial(widened, layout=layout), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


@pytest.mark.parametrize(("most_rows", "most_blocks"), [(32, 16), (64, 2), (7, 3)])
@pytest.mark.parametrize("layout", ALL)
def test_blocks_of_rows_change_nothing(
    layout: Layout, most_rows: int, most_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)
    net, x = network(5, 16, 16), jax.random.normal(jax.random.key(1), (150, 5))
    whole = gradients(partial(widened, layout=layout), net, x)
    monkeypatch.setattr(padded, "MOST_ROWS", most_rows)
    monkeypatch.setattr(padded, "MOST_BLOCKS", most_blocks)
    assert 1 < len(padded._blocks(150, layout)) <= most_blocks
    assert distance(gradients(partial(widened, layout=layout), net, x), whole) < 1e-5


@pytest.mark.parametrize("layout", ALL)
def test_rounding_costs_what_bfloat16_costs(layout: Layout) -> None:
    net, x = network(23, 128, 128), jax.random.normal(jax.random.key(1), (50, 23))
    q, slopes = gradients(partial(widened, layout=layout), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (5, 16, 16, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, 20, 5))

    def slopes(function: Callable[..., Any]) -> tuple[Perceptron, jax.Array]:
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(widened), slopes(plain)) < 1e-5


@pytest.mark.parametrize("number", [1, 6])
@pytest.mark.parametrize("layout", ALL)
def test_actors(layout: Layout, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, x = Perceptron.init(jax.random.key(0), (17, 64, 64, number)), jax.random.normal(jax.random.key(1), (50, 17))

    def both() -> Any:
        slopes = jax.grad(lambda net, x: (deterministic(net, x) ** 3).sum(), argnums=(0, 1))
        return deterministic(actor, x), slopes(actor, x)

    plain_values, plain_slopes = both()
    with arithmetic(chosen(Padded(layout, layout))):
        rounded, _ = both()
        monkeypatch.setattr(padded, "DTYPE", jnp.float32)
        exact, slopes = both()
    assert 0 < jnp.abs(rounded - plain_values).max() < 4e-3
    assert jnp.abs(exact - plain_values).max() < 1e-6
    assert distance(slopes, plain_slopes) < 1e-5


def test_critics_take_this_form_where_it_is_chosen() -> None:
    net, s = network(5, 16, 16), jax.random.normal(jax.random.key(1), (8, 3))
    a = jax.random.normal(jax.random.key(2), (4, 8, 2))
    with arithmetic(chosen(AMX)):
        one, many = values(net, s, a[1]), values_of_many(net, s, a)
    assert many.shape == (MEMBERS, 4, 8)
    assert (one == widened(net, jnp.concatenate([s, a[1]], axis=1))).all()
    assert jnp.abs(many[:, 1] - one).max() < 1e-6
    assert (one != values(net, s, a[1])).any()


def test_many_rows_may_take_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded, "MANY", 20)
    few, many = Layout(16), Layout(16, inside=False)
    net, x = network(5, 16, 16), jax.random.normal(jax.random.key(1), (21, 5))
    both = partial(Padded(few, many).scalars, net.weights, net.biases)
    assert (both(x) == widened(net, x, many)).all()
    assert (both(x[:20]) == widened(net, x[:20], few)).all()
    assert (widened(net, x, few) != widened(net, x, many)).any()
