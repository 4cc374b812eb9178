"""Dropout in an ensemble of critics, and the mean and variance of many passes with it.

Every hidden unit is dropped with probability p and otherwise divided by 1 - p, in training and afterwards alike.
"""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.actor_critic import first_hidden
from score_rl.nets.kernels.choice import passes_form
from score_rl.nets.perceptron import Perceptron, repeated
from score_rl.nets.precision import product

Masks = Literal["row", "pass"]

ROWS_AT_ONCE = 25_600  # what is evaluated in one go: enough to fill a device, little enough to hold in memory


def dropout(
    x: Float[Array, "members batch width"], key: PRNGKeyArray, rate: Float[Array, ""] | float, masks: Masks
) -> Float[Array, "members batch width"]:
    """With a mask of its own for every row, or one for all rows of a pass.

    Sixteen random bits decide on a unit: half the cost of thirty-two, and p is met to 1.5e-5.
    """
    members, batch, width = x.shape
    bits = jax.random.bits(key, (members, batch if masks == "row" else 1, width), jnp.uint16)
    kept = bits.astype(x.dtype) < (1 - rate) * 2**16
    return jnp.where(kept, x / (1 - rate), 0)


def hidden_of(
    critics: Perceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "samples batch action"],
) -> Float[Array, "members rows width"]:
    """The critics' first hidden layer, before any dropout; the rows are samples × batch."""
    members = critics.weights[0].shape[0]
    hidden = jax.vmap(partial(first_hidden, multiply=product))(
        critics, repeated(observations, members), repeated(actions, members)
    )
    return hidden.reshape(hidden.shape[0], -1, hidden.shape[-1])


def one_pass(
    critics: Perceptron,
    hidden: Float[Array, "members rows width"],
    key: PRNGKeyArray,
    rate: Float[Array, ""] | float,
    masks: Masks,
) -> Float[Array, "members rows"]:
    """Q_i with dropout after every hidden layer, from the first one on."""
    x = hidden
    layers = list(zip(critics.weights[1:], critics.biases[1:], strict=True))
    for number, (weight, bias) in enumerate(layers):
        x = dropout(x, jax.random.fold_in(key, number), rate, masks)
        x = product("mbi,mio->mbo", x, weight) + bias[:, None]
        if number < len(layers) - 1:
            x = jax.nn.relu(x)
    return x[..., 0]


def many_passes(
    critics: Perceptron,
    hidden: Float[Array, "members rows width"],
    key: PRNGKeyArray,
    rate: Float[Array, ""] | float,
    masks: Masks,
    passes: int,
) -> tuple[Float[Array, "members rows"], Float[Array, "members rows"]]:
    """Mean and variance (divided by passes - 1) of Q_i over passes; the first layer is shared by all of them.

    Where the chosen arithmetic has kernels for it (`passes`), the masks are other draws of the same distribution, and
    only the mean's gradient by `hidden` can be asked for.
    """
    form = passes_form(critics.weights, masks)
    if form is not None:
        return form.statistics(critics.weights, critics.biases, hidden, key, rate, passes)
    at_once = max(1, min(passes, ROWS_AT_ONCE // hidden.shape[1]))
    q = jax.lax.map(
        lambda key: one_pass(critics, hidden, key, rate, masks), jax.random.split(key, passes), batch_size=at_once
    )
    return q.mean(axis=0), q.var(axis=0, ddof=1)
