"""Double precision and one notation for two array libraries.

The functions of this package are written once, against the array API. Given NumPy arrays they treat one
MDP and any shape at once; given JAX tracers they are mapped over thousands of drawn data sets. Double
precision is switched on in a scope, never for the process: the rest of the project trains in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

FEW_SETS = 64  # so many data sets are handled faster than a program is compiled


@contextmanager
def double_precision() -> Iterator[None]:
    """A scope in which JAX computes in float64; what leaves it should be turned into NumPy first."""
    import jax

    with jax.enable_x64(True):
        yield


def namespace(*arrays: Any) -> Any:
    """`numpy` if every array is NumPy's, else the namespace of the first that is not (jax.numpy)."""
    for array in arrays:
        if not isinstance(array, (np.ndarray, np.generic, float, int)):
            return array.__array_namespace__()
    return np


def solve(matrix: Any, rhs: Any) -> Any:
    """x with matrix·x = rhs (a vector or columns), for I - γP_π, its transpose, or a positive definite matrix.

    NumPy's solver for NumPy arrays. Under JAX, elimination without pivoting: diagonal dominance or positive
    definiteness makes it stable, it batches into plain array operations, and batched LAPACK calls inside
    concurrent loops can wait for each other forever on a machine with two cores.
    """
    xp = namespace(matrix, rhs)
    if xp is np:
        return np.linalg.solve(matrix, rhs)
    import jax

    def eliminate(i: Any, system: Any) -> Any:
        row = system[i] / system[i, i]
        return (system - system[:, i][:, None] * row[None, :]).at[i].set(row)

    columns = rhs[:, None] if rhs.ndim == 1 else rhs
    system = xp.concatenate([matrix, columns], axis=1)
    solution = jax.lax.fori_loop(0, matrix.shape[0], eliminate, system)[:, matrix.shape[0] :]
    return solution[:, 0] if rhs.ndim == 1 else solution


def map_over_sets(function: Any, sets: Any, chunk: int = 128) -> Any:
    """`function` over the leading axis of every array in the tuple `sets`, as NumPy.

    Compiled once by JAX and mapped in chunks, so that memory stays small. A few sets are done with NumPy
    before a program would be compiled.
    """
    count = len(sets[0])
    if count <= FEW_SETS:
        return _stack([function(tuple(array[i] for array in sets)) for i in range(count)])
    with double_precision():
        import jax
        import jax.numpy as jnp

        chunk = min(chunk, count)
        program = jax.jit(jax.vmap(function))
        parts = []
        for start in range(0, count, chunk):
            # The last chunk is filled up with repetitions, so that no second program is compiled.
            index = np.minimum(np.arange(start, start + chunk), count - 1)
            part = program(tuple(jnp.asarray(array[index]) for array in sets))
            parts.append(jax.tree.map(lambda x: np.asarray(x), part))
        return jax.tree.map(lambda *pieces: np.concatenate(pieces)[:count], *parts)


def _stack(results: list[Any]) -> Any:
    """Equal named tuples of numbers and arrays as one, with a leading axis."""
    if isinstance(results[0], tuple):
        return type(results[0])(*(_stack(list(column)) for column in zip(*results, strict=True)))
    return np.array(results)


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy leaves, safe to keep after the scope of double precision has closed."""
    import jax

    return jax.tree.map(np.asarray, tree)
