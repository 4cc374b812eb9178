"""A perceptron whose hidden layers are normalised after their activation."""

from collections.abc import Callable, Sequence
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.perceptron import Activation, Perceptron, repeated
from score_rl.nets.precision import product

EPSILON = 1e-6  # flax's, with which ReBRAC was published


class NormalisedPerceptron(eqx.Module):
    """Affine layer, activation, layer normalisation with a learned scale and shift; the last layer has neither."""

    layers: Perceptron
    scales: tuple[Float[Array, "*members _width"], ...]
    shifts: tuple[Float[Array, "*members _width"], ...]

    @classmethod
    def init(
        cls,
        key: PRNGKeyArray,
        sizes: Sequence[int],
        members: int | None = None,
        start: Callable[..., Perceptron] = Perceptron.init,
    ) -> Self:
        """Layers as `start` draws them, scales 1, shifts 0."""
        lead = () if members is None else (members,)
        shapes = [(*lead, width) for width in sizes[1:-1]]
        return cls(
            start(key, sizes, members),
            tuple(jnp.ones(shape) for shape in shapes),
            tuple(jnp.zeros(shape) for shape in shapes),
        )

    def __call__(self, x: Float[Array, "batch fan_in"]) -> Float[Array, "batch fan_out"]:
        """A network alone."""
        return jax.tree.map(lambda leaf: leaf[None], self).members(x)[0]

    def scalars(self, x: Float[Array, "batch fan_in"]) -> Float[Array, "members batch"]:
        """Critics: the only output of every member."""
        return self.members(x)[..., 0]

    def members(
        self, x: Float[Array, "batch fan_in"], activation: Activation = jax.nn.relu
    ) -> Float[Array, "members batch fan_out"]:
        """Every member on the same input, in the chosen precision."""
        x = repeated(x, self.layers.weights[0].shape[0])
        *hidden, last = zip(self.layers.weights, self.layers.biases, strict=True)
        for (weight, bias), scale, shift in zip(hidden, self.scales, self.shifts, strict=True):
            x = activation(product("mbi,mio->mbo", x, weight) + bias[:, None])
            x = normalise(x) * scale[:, None] + shift[:, None]
        return product("mbi,mio->mbo", x, last[0]) + last[1][:, None]


Critics = Perceptron | NormalisedPerceptron


def make_critics(
    key: PRNGKeyArray,
    sizes: Sequence[int],
    members: int | None = None,
    *,
    normalised: bool,
    start: Callable[..., Perceptron] = Perceptron.init,
) -> Critics:
    """Networks as `start` draws them, with layer normalisation or without."""
    return NormalisedPerceptron.init(key, sizes, members, start) if normalised else start(key, sizes, members)


def normalise(x: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
    """(x - mean)/√(variance + ε) over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
