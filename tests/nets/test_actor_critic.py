"""The least of many critics, and its slope by the action."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from score_rl.nets.actor_critic import least_value, values
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import distance

OBSERVATIONS, ACTIONS, ROWS = 5, 3, 20


def setting(members: int, hidden: tuple[int, ...] = (64, 64, 64)) -> tuple[Perceptron, jax.Array, jax.Array]:
    critics = Perceptron.init(jax.random.key(0), (OBSERVATIONS + ACTIONS, *hidden, 1), members=members)
    keys = jax.random.split(jax.random.key(1))
    return critics, jax.random.normal(keys[0], (ROWS, OBSERVATIONS)), jax.random.normal(keys[1], (ROWS, ACTIONS))


def slope_of(
    function: Callable[..., Any], critics: Perceptron, *rows: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    weights = jnp.arange(1.0, ROWS + 1)
    return jax.value_and_grad(lambda s, a: (weights * function(critics, s, a)).sum(), argnums=(0, 1))(*rows)


def plain(critics: Perceptron, observations: jax.Array, actions: jax.Array) -> jax.Array:
    return values(critics, observations, actions).min(axis=0)


@pytest.mark.parametrize("hidden", [(16,), (16, 24), (64, 64, 64)])
@pytest.mark.parametrize("members", [3, ROWS, ROWS + 1, 150])
def test_it_is_the_minimum_with_the_slope_of_the_minimum(members: int, hidden: tuple[int, ...]) -> None:
    critics, *rows = setting(members, hidden)
    value, slopes = slope_of(least_value, critics, *rows)
    expected, expected_slopes = slope_of(plain, critics, *rows)
    assert float(value) == pytest.approx(float(expected), rel=1e-6)
    assert distance(slopes, expected_slopes) < 1e-5


def test_a_fleet_is_its_runs() -> None:
    both = [setting(40), jax.tree.map(lambda leaf: 0.9 * leaf, setting(40))]
    fleet = jax.tree.map(lambda *leaves: jnp.stack(leaves), *both)
    together = jax.vmap(lambda *arguments: slope_of(least_value, *arguments))(*fleet)
    alone = [slope_of(least_value, *one) for one in both]
    assert distance(together, jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)) < 1e-5


def test_in_bfloat16_the_slope_is_that_of_the_kernels() -> None:
    critics, *rows = setting(64)
    with arithmetic(Arithmetic("bfloat16", (LayerByLayer(rows=64, units=64, interpret=True),))):
        value, slopes = slope_of(least_value, critics, *rows)
        expected, expected_slopes = slope_of(plain, critics, *rows)
    assert float(value) == pytest.approx(float(expected), rel=1e-6)
    apart, size = (jnp.linalg.norm(each, axis=1) for each in (slopes[1] - expected_slopes[1], expected_slopes[1]))
    assert 0 < jnp.median(apart / size) < 0.02  # a unit near its kink may fall on the other side, in few of the rows


def test_with_many_critics_the_way_back_is_through_one_network_for_each_row() -> None:
    def effort(function: Callable[..., Any], members: int) -> float:
        critics, *rows = setting(members)
        compiled = jax.jit(lambda *rows: slope_of(function, critics, *rows)[1]).lower(*rows).compile()
        analysis = compiled.cost_analysis()
        assert analysis is not None
        return analysis["flops"]

    assert effort(least_value, ROWS) == effort(plain, ROWS)
    assert effort(least_value, 10 * ROWS) < 0.7 * effort(plain, 10 * ROWS)


def test_the_critics_are_held_fixed() -> None:
    critics, *rows = setting(150)
    slopes = jax.grad(lambda critics: least_value(critics, *rows).sum())(critics)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(slopes))
    few, *rows = setting(2)
    slopes = jax.grad(lambda critics: least_value(critics, *rows).sum())(few)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(slopes))
