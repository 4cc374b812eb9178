"""Loops of unknown length in blocks: the same as the plain loop, for every length and for fleets of lengths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.nets.repetition import TOGETHER, loop_in_blocks


def step(index: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    total, key = carry
    return total * 1.01 + jax.random.normal(jax.random.fold_in(key, index)), key


def both(number: jax.Array) -> tuple[jax.Array, jax.Array]:
    start = jnp.float32(1.0), jax.random.key(0)
    return loop_in_blocks(number, step, start)[0], jax.lax.fori_loop(0, number, step, start)[0]


@pytest.mark.parametrize("number", [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER + 5])
def test_equals_the_plain_loop(number: int) -> None:
    blocks, plain = jax.jit(both)(jnp.int32(number))
    assert blocks == plain


def test_every_run_of_a_fleet_has_its_own_length() -> None:
    blocks, plain = jax.jit(jax.vmap(both))(jnp.arange(2 * TOGETHER + 2))
    np.testing.assert_array_equal(blocks, plain)
    assert len(np.unique(blocks)) == len(blocks)
