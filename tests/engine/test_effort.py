"""Arithmetic is counted in the traced program."""

import jax
import jax.numpy as jnp

from score_rl.engine.effort import OPERATIONS_PER_NUMBER, count_operations


def test_counts_products_and_numbers_and_repeats_loops() -> None:
    def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(carry @ carry) + row[None], None

    traced = jax.make_jaxpr(lambda x, rows: jax.lax.scan(step, x, rows)[0])(jnp.zeros((4, 4)), jnp.zeros((7, 4)))
    products, numbers = 2 * 4 * 4 * 4, 2 * 16  # tanh and a sum
    own = 4 + 16  # the row's broadcast, in one operation or two
    least, most = (7 * (products + OPERATIONS_PER_NUMBER * n) for n in (numbers, numbers + own))
    assert least <= count_operations(traced.jaxpr) <= most + OPERATIONS_PER_NUMBER * 200, "and little outside the loop"
