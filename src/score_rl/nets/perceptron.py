"""The multi-layer perceptron, alone or as an ensemble that is evaluated in one go."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.kernels.choice import actor_form, critics_form
from score_rl.nets.precision import chosen_arithmetic, product

Activation = Callable[[Array], Array]
Multiply = Callable[[str, Array, Array], Array]


class Perceptron(eqx.Module):
    """Affine layers with an activation between them; none after the last.

    Members of an ensemble share nothing but the shape: their parameters carry a leading axis.
    """

    weights: tuple[Float[Array, "*members _in _out"], ...]
    biases: tuple[Float[Array, "*members _out"], ...]

    @classmethod
    def init(cls, key: PRNGKeyArray, sizes: Sequence[int], members: int | None = None) -> Self:
        """Weights and biases uniform in ±1/√fan_in, as PyTorch's linear layers start."""
        lead = () if members is None else (members,)
        shapes = [shape for i, o in pairwise(sizes) for shape in ((i, o), (o,))]
        counts = [prod(shape) for shape in shapes]
        # One draw for all layers: every further call of the generator makes programs slower to compile.
        drawn = jax.random.uniform(key, (*lead, sum(counts)), minval=-1, maxval=1)
        parts = jnp.split(drawn, list(accumulate(counts))[:-1], axis=-1)
        limits = [i**-0.5 for i in sizes[:-1] for _ in range(2)]
        layers = [limit * part.reshape(*lead, *shape) for limit, part, shape in zip(limits, parts, shapes, strict=True)]
        return cls(tuple(layers[0::2]), tuple(layers[1::2]))

    def __call__(
        self, x: Float[Array, "*batch fan_in"], activation: Activation = jax.nn.relu, multiply: Multiply = jnp.einsum
    ) -> Float[Array, "*batch fan_out"]:
        """A network alone is small, and as an actor it is the result: its products stay float32 unless asked."""
        *hidden, last = zip(self.weights, self.biases, strict=True)
        batch = "abc"[: x.ndim - 1]
        for weight, bias in hidden:
            x = activation(multiply(f"{batch}i,io->{batch}o", x, weight) + _beside(bias, x.ndim))
        weight, bias = last
        return multiply(f"{batch}i,io->{batch}o", x, weight) + _beside(bias, x.ndim)

    def members(
        self, x: Float[Array, "batch fan_in"], activation: Activation = jax.nn.relu, multiply: Multiply = jnp.einsum
    ) -> Float[Array, "members batch fan_out"]:
        """Every member on the same input."""
        x = repeated(x, self.weights[0].shape[0])
        layers = len(self.weights)
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = multiply("mbi,mio->mbo", x, weight) + bias[:, None, :]
            if number < layers - 1:
                x = activation(x)
        return x

    def scalars(self, x: Float[Array, "batch fan_in"]) -> Float[Array, "members batch"]:
        """Critics: the only output of every member, ReLU between the layers, in the chosen precision; differentiable
        once."""
        form = critics_form(self.weights, x.shape[0])
        if form is not None:
            return form.scalars(self.weights, self.biases, x)
        return self.members(x, multiply=product)[..., 0]

    def vectors(self, x: Float[Array, "batch fan_in"]) -> Float[Array, "batch fan_out"]:
        """Actors: one network, ReLU between the layers, in the form that the chosen arithmetic has for it, if any;
        differentiable once."""
        alone = jax.tree.map(lambda leaf: leaf[None], self)
        form = actor_form(alone.weights, x.shape[0])
        return self(x) if form is None else form.vectors(alone.weights, alone.biases, x)


def repeated(x: Float[Array, "..."], members: int) -> Float[Array, "members ..."]:
    """The same input for every member of an ensemble.

    Small as it is, that is cheaper than what the compiler makes of one product for all first layers: it comes out
    transposed, which slows the layers after it. The barrier keeps it from computing the input once for each member.
    """
    return jnp.broadcast_to(jax.lax.optimization_barrier(x)[None], (members, *x.shape))


def aligned(net: Perceptron) -> Perceptron:
    """The same function with hidden layers as wide as the device likes them: further units that are always 0.

    A GPU's matrix units read rows of whole 16 bytes, which the VAEs' 750 float32 numbers are not.
    """
    multiple = chosen_arithmetic().multiple
    more = [0, *(-weight.shape[-1] % multiple for weight in net.weights[:-1]), 0]
    if not any(more):
        return net

    def filled(array: Array, *after: int) -> Array:
        return jnp.pad(array, [(0, 0)] * (array.ndim - len(after)) + [(0, number) for number in after])

    weights = [filled(weight, i, o) for weight, (i, o) in zip(net.weights, pairwise(more), strict=True)]
    return Perceptron(tuple(weights), tuple(map(filled, net.biases, more[1:])))


def _beside(bias: Array, ndim: int) -> Array:
    """`bias` with as many axes as its partner: ranks are never promoted silently."""
    return bias.reshape((1,) * (ndim - 1) + bias.shape)
