"""Solving for a natural gradient without ever forming its matrix."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

TOLERANCE = 1e-10  # a squared residual below this is a solution (published code of MOReL)


def conjugate_gradient(
    times: Callable[[Float[Array, " n"]], Float[Array, " n"]],
    right: Float[Array, " n"],
    start: Float[Array, " n"],
    iterations: int,
) -> Float[Array, " n"]:
    """x with A·x = right, for a positive definite A that is known by its products."""

    def step(index: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, residual, direction = carry
        squared = residual @ residual
        product = times(direction)
        length = squared / (direction @ product)
        next_residual = residual - length * product
        next_direction = next_residual + (next_residual @ next_residual / squared) * direction
        moved = x + length * direction, next_residual, next_direction
        # Once solved, it stays: another step would divide nothing by nothing.
        solved = (index > 0) & (squared < TOLERANCE)
        return jax.tree.map(lambda new, old: jnp.where(solved, old, new), moved, carry)

    residual = right - times(start)
    return jax.lax.fori_loop(0, iterations, step, (start, residual, residual))[0]
