"""Two ways of computing the same ensemble, compared in values and gradients."""

from typing import Any

import jax
import jax.numpy as jnp

from score_rl.nets.perceptron import Perceptron


def plain(net: Perceptron, x: Any) -> Any:
    return net.members(x)[..., 0]


def gradients(function: Any, net: Perceptron, x: Any) -> Any:
    """Values, and what a random slope of them gives by parameters and input."""

    @jax.jit
    def both(net: Perceptron, x: Any) -> Any:
        values, pull_back = jax.vjp(function, net, x)
        return values, pull_back(jax.random.normal(jax.random.key(2), values.shape))

    return both(net, x)


def distance(one: Any, other: Any) -> float:
    """The largest relative one between two trees' arrays."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in pairs)
