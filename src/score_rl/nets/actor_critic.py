"""What actors and critics compute, the same in every method that has them."""

from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from score_rl.nets.kernels.choice import critics_form
from score_rl.nets.layer_norm import Critics, NormalisedPerceptron
from score_rl.nets.perceptron import Multiply, Perceptron, repeated
from score_rl.nets.precision import product, rounded

CriticsT = TypeVar("CriticsT", Perceptron, NormalisedPerceptron, Critics)


def deterministic(actor: Perceptron, observations: Float[Array, "batch observation"]) -> Float[Array, "batch action"]:
    """π(s) = tanh of the network's output."""
    return jnp.tanh(actor.vectors(observations))


def values(
    critics: Critics,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, "members batch"]:
    """Q_i(s, a) of every critic."""
    return critics.scalars(jnp.concatenate([observations, actions], axis=-1))


def least_value(
    critics: Critics,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a) of critics that are held fixed, as an actor's loss has it.

    In every row one critic is the least, and the slope is its alone. Where there are more critics than rows, going back
    through one network for each row is less work than through all of them.
    """
    critics, inputs = jax.lax.stop_gradient(critics), jnp.concatenate([observations, actions], axis=-1)
    if isinstance(critics, NormalisedPerceptron) or critics.weights[0].shape[0] <= inputs.shape[0]:
        return critics.scalars(inputs).min(axis=0)
    return _least(critics, inputs)


@jax.custom_vjp
def _least(critics: Perceptron, inputs: Float[Array, "batch input"]) -> Float[Array, " batch"]:
    return critics.scalars(inputs).min(axis=0)


def _least_forward(critics: Perceptron, inputs: Float[Array, "batch input"]) -> tuple[Array, Any]:
    q = critics.scalars(inputs)
    return q.min(axis=0), (critics, inputs, q.argmin(axis=0))


def _least_backward(saved: Any, slope: Float[Array, " batch"]) -> tuple[Any, Float[Array, "batch input"]]:
    critics, inputs, which = saved
    weights, biases = ([leaf[which] for leaf in leaves] for leaves in (map(rounded, critics.weights), critics.biases))
    hidden, active = inputs, []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        total = product("bi,bio->bo", hidden, weight) + bias
        active.append(total > 0)
        hidden = jax.nn.relu(total)
    slopes = slope[:, None] * weights[-1][..., 0].astype(slope.dtype)
    for weight, on in zip(weights[-2::-1], active[::-1], strict=True):
        slopes = product("bo,bio->bi", jnp.where(on, slopes, 0), weight)
    return jax.tree.map(jnp.zeros_like, critics), slopes  # nobody asks for the first: `least_value` holds them fixed


_least.defvjp(_least_forward, _least_backward)


def member(critics: CriticsT, number: int) -> CriticsT:
    """One critic of an ensemble."""
    return jax.tree.map(lambda leaf: leaf[number], critics)


def first_hidden(
    net: Perceptron,
    shared: Float[Array, "batch shared"],
    varied: Float[Array, "samples batch varied"],
    multiply: Multiply = jnp.einsum,
) -> Float[Array, "samples batch width"]:
    """The first hidden layer on (s, x) for many x beside every s; the product with s is done once."""
    weight, bias, width = net.weights[0], net.biases[0], shared.shape[-1]
    beside = multiply("bi,io->bo", shared, weight[:width]) + bias[None]
    return jax.nn.relu(beside[None] + multiply("sbi,io->sbo", varied, weight[width:]))


def on_many(
    net: Perceptron,
    shared: Float[Array, "batch shared"],
    varied: Float[Array, "samples batch varied"],
    multiply: Multiply = jnp.einsum,
) -> Float[Array, "samples batch fan_out"]:
    """The network on (s, x) for many x beside every s."""
    return Perceptron(net.weights[1:], net.biases[1:])(first_hidden(net, shared, varied, multiply), multiply=multiply)


def values_of_many(
    critics: Critics,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "samples batch action"],
) -> Float[Array, "members samples batch"]:
    """Q_i(s, a) of every critic for many actions in each state; differentiable once."""
    layers = critics.layers if isinstance(critics, NormalisedPerceptron) else critics
    members, (samples, batch) = layers.weights[0].shape[0], actions.shape[:2]
    if isinstance(critics, NormalisedPerceptron) or critics_form(critics.weights, samples * batch) is not None:
        # Each state beside each of its actions: small, the same for all members, and too cheap to be shared.
        inputs = jnp.concatenate([repeated(observations, samples), actions], axis=-1)
        return critics.scalars(inputs.reshape(-1, inputs.shape[-1])).reshape(members, samples, batch)
    return jax.vmap(partial(on_many, multiply=product))(
        critics, repeated(observations, members), repeated(actions, members)
    )[..., 0]


def smoothed(
    actions: Float[Array, "batch action"],
    noise: Float[Array, "batch action"],
    deviation: Float[Array, ""] | float,
    bound: Float[Array, ""] | float,
) -> Float[Array, "batch action"]:
    """clip(a + clip(σ·ε, ±c), ±1): TD3's smoothing of the target's action, `noise` standard normal."""
    return jnp.clip(actions + jnp.clip(deviation * noise, -bound, bound), -1, 1)


def soft_clipped(q: Float[Array, " members *batch"], weight: Float[Array, ""] | float) -> Float[Array, " *batch"]:
    """λ·min_i Q_i + (1 - λ)·max_i Q_i: BCQ's soft clipped double Q."""
    return weight * q.min(axis=0) + (1 - weight) * q.max(axis=0)


def best_of(
    actions: Float[Array, "samples batch action"], q: Float[Array, "samples batch"]
) -> Float[Array, "batch action"]:
    """In every state the candidate of the highest value."""
    return jnp.take_along_axis(actions, q.argmax(axis=0)[None, :, None], axis=0)[0]
