"""Spectral normalisation of an ensemble's weights by power iteration."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from score_rl.nets.perceptron import Perceptron

_TINY = 1e-12


def power_iteration(
    weight: Float[Array, "members fan_in fan_out"], vector: Float[Array, "members fan_out"]
) -> Float[Array, "members fan_out"]:
    """One step towards each weight's leading right singular vector."""
    left = jnp.einsum("mio,mo->mi", weight, vector)
    left = left / (jnp.linalg.norm(left, axis=-1, keepdims=True) + _TINY)
    right = jnp.einsum("mio,mi->mo", weight, left)
    return right / (jnp.linalg.norm(right, axis=-1, keepdims=True) + _TINY)


def normalise_layer(net: Perceptron, layer: int, vector: Float[Array, "members fan_out"]) -> Perceptron:
    """`net` with the weight of `layer` divided by its largest singular value, as `vector` estimates it.

    The vector carries no gradient, the singular value σ = ‖W v‖ does.
    """
    weight = net.weights[layer]
    sigma = jnp.linalg.norm(jnp.einsum("mio,mo->mi", weight, vector), axis=-1)
    weights = list(net.weights)
    weights[layer] = weight / (sigma[:, None, None] + _TINY)
    return Perceptron(tuple(weights), net.biases)
