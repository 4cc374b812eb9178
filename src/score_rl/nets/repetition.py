"""Loops whose length is known only as the program runs."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

T = TypeVar("T")
TOGETHER = 32  # rounds in a block


def loop_in_blocks(number: Int[Array, ""], step: Callable[[Int[Array, ""], T], T], start: T) -> T:
    """What `jax.lax.fori_loop(0, number, step, start)` gives, in blocks of fixed length.

    After every round of a loop of unknown length a GPU waits for the host to say whether there is another; a block is
    launched as a whole. Rounds beyond the end are computed and thrown away.
    """

    def block(first: Int[Array, ""], carry: T) -> T:
        def one(carry: T, index: Int[Array, ""]) -> tuple[T, None]:
            after = step(index, carry)
            return jax.tree.map(lambda new, old: jnp.where(index < number, new, old), after, carry), None

        return jax.lax.scan(one, carry, first * TOGETHER + jnp.arange(TOGETHER))[0]

    return jax.lax.fori_loop(0, -(-number // TOGETHER), block, start)
