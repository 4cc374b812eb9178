"""Starting points of networks other than PyTorch's own, for methods whose published code draws them so."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

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
        draw = partial(jax.nn.initializers.orthogonal(scale), shape=(fan_in, fan_out))
        weights.append(draw(weight_key) if members is None else jax.vmap(draw)(jax.random.split(weight_key, members)))
        biases.append(jnp.zeros((*lead, fan_out)))
    return Perceptron(tuple(weights), tuple(biases))
