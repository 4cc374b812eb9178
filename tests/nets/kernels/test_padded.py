"""Critics in the form for processors that multiply bfloat16, against the plain network."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

from score_rl.nets.actor_critic import deterministic, values, values_of_many
from score_rl.nets.kernels import padded
from score_rl.nets.kernels.padded import FORMS, Form, Forms
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance, gradients, plain

MEMBERS = 3
LOW = Arithmetic("bfloat16", padded=FORMS["amx_bf16"], emulated=True)


ALL = sorted({form for forms in FORMS.values() for form in forms})


def network(*sizes: int) -> Perceptron:
    return Perceptron.init(jax.random.key(0), (*sizes, 1), members=MEMBERS)


def widened(net: Perceptron, x, form=FORMS["amx_bf16"].few):
    return padded.scalars(net.weights, net.biases, x, Forms(form, form))


@pytest.mark.parametrize("sizes", [(5, 16), (23, 64, 64), (31, 32, 48, 16), (32, 33, 31)])
@pytest.mark.parametrize("rows", [50, 64])
@pytest.mark.parametrize("form", ALL)
def test_in_float32_it_is_the_network(sizes, rows, form, monkeypatch):
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)  # the same without rounding: its algebra
    net, x = network(*sizes), jax.random.normal(jax.random.key(1), (rows, sizes[0]))
    q, slopes = gradients(partial(widened, form=form), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert jnp.abs(q - expected).max() < 1e-6
    assert distance(slopes, expected_slopes) < 1e-5


@pytest.mark.parametrize(("most_rows", "most_blocks"), [(32, 16), (64, 2), (7, 3)])
@pytest.mark.parametrize("form", ALL)
def test_blocks_of_rows_change_nothing(form, most_rows, most_blocks, monkeypatch):
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)
    net, x = network(5, 16, 16), jax.random.normal(jax.random.key(1), (150, 5))
    whole = gradients(partial(widened, form=form), net, x)
    monkeypatch.setattr(padded, "MOST_ROWS", most_rows)
    monkeypatch.setattr(padded, "MOST_BLOCKS", most_blocks)
    assert 1 < len(padded._blocks(150, form)) <= most_blocks
    assert distance(gradients(partial(widened, form=form), net, x), whole) < 1e-5


@pytest.mark.parametrize("form", ALL)
def test_rounding_costs_what_bfloat16_costs(form):
    net, x = network(23, 128, 128), jax.random.normal(jax.random.key(1), (50, 23))
    q, slopes = gradients(partial(widened, form=form), net, x)
    expected, expected_slopes = gradients(plain, net, x)
    assert 0 < jnp.abs(q - expected).max() < 4e-3
    assert distance(slopes, expected_slopes) < 0.1  # a unit near its kink may fall on the other side


def test_fleets_of_networks(monkeypatch):
    monkeypatch.setattr(padded, "DTYPE", jnp.float32)
    nets = jax.vmap(lambda key: Perceptron.init(key, (5, 16, 16, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 2)
    )
    x = jax.random.normal(jax.random.key(1), (2, 20, 5))

    def slopes(function):
        return jax.vmap(jax.grad(lambda net, x: (function(net, x) ** 2).sum(), argnums=(0, 1)))(nets, x)

    assert distance(slopes(widened), slopes(plain)) < 1e-5


@pytest.mark.parametrize("number", [1, 6])
@pytest.mark.parametrize("form", ALL)
def test_actors(form, number, monkeypatch):
    actor, x = Perceptron.init(jax.random.key(0), (17, 64, 64, number)), jax.random.normal(jax.random.key(1), (50, 17))

    def both():
        slopes = jax.grad(lambda net, x: (deterministic(net, x) ** 3).sum(), argnums=(0, 1))
        return deterministic(actor, x), slopes(actor, x)

    plain_values, plain_slopes = both()
    with arithmetic(LOW._replace(padded=Forms(form, form))):
        rounded, _ = both()
        monkeypatch.setattr(padded, "DTYPE", jnp.float32)
        exact, slopes = both()
    assert 0 < jnp.abs(rounded - plain_values).max() < 4e-3
    assert jnp.abs(exact - plain_values).max() < 1e-6
    assert distance(slopes, plain_slopes) < 1e-5


def test_critics_take_this_form_where_it_is_chosen():
    net, s = network(5, 16, 16), jax.random.normal(jax.random.key(1), (8, 3))
    a = jax.random.normal(jax.random.key(2), (4, 8, 2))
    with arithmetic(LOW):
        one, many = values(net, s, a[1]), values_of_many(net, s, a)
    assert many.shape == (MEMBERS, 4, 8)
    assert (one == widened(net, jnp.concatenate([s, a[1]], axis=1))).all()
    assert jnp.abs(many[:, 1] - one).max() < 1e-6
    assert (one != values(net, s, a[1])).any()


def test_many_rows_may_take_another_form(monkeypatch):
    monkeypatch.setattr(padded, "MANY", 20)
    few, many = Form(16), Form(16, inside=False)
    net, x = network(5, 16, 16), jax.random.normal(jax.random.key(1), (21, 5))
    both = partial(padded.scalars, net.weights, net.biases, forms=Forms(few, many))
    assert (both(x) == widened(net, x, many)).all()
    assert (both(x[:20]) == widened(net, x[:20], few)).all()
    assert (widened(net, x, few) != widened(net, x, many)).any()
