"""Two ways of computing the same ensemble, compared in values and gradients."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

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


def lowered_for_gpus(function: Any, members: int, rows: int, inputs: int) -> str:
    """What the gradients of two runs' ensembles are given to a GPU's compiler as."""
    shapes = jax.eval_shape(
        lambda: (
            Perceptron.init(jax.random.key(0), (inputs, 256, 256, 256, 1), members=members),
            jnp.zeros((rows, inputs)),
        )
    )
    fleet = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), shapes)
    slopes = jax.grad(lambda net, x: function(net, x).sum(), argnums=(0, 1))
    return written_for_gpus(jax.vmap(slopes), *fleet)


def written_for_gpus(function: Any, *arguments: Any) -> str:
    """What a function is given to a GPU's compiler as, on a machine that need not have one."""
    gpu = AbstractDevice("NVIDIA H200", None, "gpu")
    with use_abstract_mesh(AbstractMesh((1,), ("device",), abstract_device=gpu)):
        return jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
