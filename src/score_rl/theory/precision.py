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
    definiteness makes it stable, it batches into plain array operations, and batched LAPACK calls inside concurrent loops can wait
    for each other forever on a machine with two cores.
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
    """`function` over the leading axis of `sets`: compiled once, mapped in chunks so that memory stays small."""
    with double_precision():
        import jax
        import jax.numpy as jnp

        leaves, structure = jax.tree.flatten(sets)
        count = len(leaves[0])
        chunk = min(chunk, count)
        program = jax.jit(jax.vmap(function))
        parts = []
        for start in range(0, count, chunk):
            # The last chunk is filled up with repetitions, so that no second program is compiled.
            index = np.minimum(np.arange(start, start + chunk), count - 1)
            part = structure.unflatten([jnp.asarray(np.asarray(leaf)[index]) for leaf in leaves])
            kept = min(chunk, count - start)
            parts.append(jax.tree.map(lambda x, kept=kept: np.asarray(x)[:kept], program(part)))
        return jax.tree.map(lambda *pieces: np.concatenate(pieces), *parts)


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy leaves, safe to keep after the scope of double precision has closed."""
    import jax

    return jax.tree.map(np.asarray, tree)
