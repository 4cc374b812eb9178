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


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy leaves, safe to keep after the scope of double precision has closed."""
    import jax

    return jax.tree.map(np.asarray, tree)
