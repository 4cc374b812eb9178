"""Random numbers for a whole update in one draw: one kernel instead of many, and far less to compile."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import jax
from jaxtyping import Array, PRNGKeyArray


def standard_normal(key: PRNGKeyArray, shapes: Sequence[tuple[int, ...]], dtype: Any) -> list[Array]:
    """Independent standard normal arrays of these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    drawn = jax.random.normal(key, (sum(sizes),), dtype)
    return [
        drawn[stop - size : stop].reshape(shape)
        for shape, size, stop in zip(shapes, sizes, accumulate(sizes), strict=True)
    ]
