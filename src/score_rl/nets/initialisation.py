"""Starting points of networks other than PyTorch's own, for methods whose published code draws them so."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.nets.perceptron import Perceptron


def rlkit_start(
    key: PRNGKeyArray,
    sizes: Sequence[int],
    members: int | None = None,
    *,
    last: float = 3e-3,
    bound: Literal["fan_in", "fan_out"] = "fan_out",
) -> Perceptron:
    """As rlkit, and the code of CQL, BEAR, PBRL and EDAC that grew from it: hidden weights uniform in ±1/√fan,
    hidden biases 0.1, the last layer uniform in ±`last`.

    rlkit takes the wrong side of PyTorch's weights for the fan-in: what bounds its hidden weights is the fan-out.
    """
    lead = () if members is None else (members,)
    weights, biases = [], []
    final = len(sizes) - 2
    for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        key, weight_key, bias_key = jax.random.split(key, 3)
        limit = last if layer == final else (fan_in if bound == "fan_in" else fan_out) ** -0.5
        weights.append(jax.random.uniform(weight_key, (*lead, fan_in, fan_out), minval=-limit, maxval=limit))
        if layer == final:
            biases.append(jax.random.uniform(bias_key, (*lead, fan_out), minval=-last, maxval=last))
        else:
            biases.append(jnp.full((*lead, fan_out), 0.1))
    return Perceptron(tuple(weights), tuple(biases))


def glorot_start(key: PRNGKeyArray, sizes: Sequence[int], members: int | None = None) -> Perceptron:
    """Weights uniform in ±√(6/(fan_in + fan_out)), biases 0."""
    weights, biases = [], []
    lead = () if members is None else (members,)
    for fan_in, fan_out in pairwise(sizes):
        key, weight_key = jax.random.split(key)
        limit = math.sqrt(6 / (fan_in + fan_out))
        weights.append(jax.random.uniform(weight_key, (*lead, fan_in, fan_out), minval=-limit, maxval=limit))
        biases.append(jnp.zeros((*lead, fan_out)))
    return Perceptron(tuple(weights), tuple(biases))


def orthogonal_start(
    key: PRNGKeyArray,
    sizes: Sequence[int],
    members: int | None = None,
    *,
    gain: float = math.sqrt(2),
    last_gain: float = 1e-2,
) -> Perceptron:
    """Orthogonal weights times a gain, smaller in the last layer; biases 0."""
    weights, biases = [], []
    lead = () if members is None else (members,)
    for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        key, weight_key = jax.random.split(key)
        scale = last_gain if layer == len(sizes) - 2 else gain
        draw = partial(orthogonal, fan_in=fan_in, fan_out=fan_out)
        weight = draw(weight_key) if members is None else jax.vmap(draw)(jax.random.split(weight_key, members))
        weights.append(scale * weight)
        biases.append(jnp.zeros((*lead, fan_out)))
    return Perceptron(tuple(weights), tuple(biases))


def orthogonal(key: PRNGKeyArray, fan_in: int, fan_out: int) -> Float[Array, "fan_in fan_out"]:
    """Uniform among matrices with orthonormal rows or columns, whichever are fewer; `jax.nn.initializers.orthogonal`
    gives the same.

    Not with its factorisation: several at once on a CPU of two cores wait for each other for ever (JAX 0.10: each takes
    a thread and waits there for its parts to be done by others).
    """
    tall = jax.random.normal(key, (max(fan_in, fan_out), min(fan_in, fan_out)))
    found = orthonormal_columns(tall)
    return found if fan_in >= fan_out else found.T


def orthonormal_columns(matrix: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    """By Gram and Schmidt, each column twice: once leaves rounding errors where columns are nearly dependent."""

    def add(number: Int[Array, ""], found: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
        column = matrix[:, number]
        for _ in range(2):
            known = jnp.einsum("rc,r->c", found, column, precision="highest")
            column = column - jnp.einsum("rc,c->r", found, known, precision="highest")
        return found.at[:, number].set(column / jnp.linalg.norm(column))

    return jax.lax.fori_loop(0, matrix.shape[1], add, jnp.zeros_like(matrix))
