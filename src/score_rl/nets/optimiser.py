"""Adam with a traced learning rate, and the moving average that target networks follow."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8  # β₁, β₂, ε: the defaults of every method here
T = TypeVar("T")


class OptimiserState(NamedTuple):
    mu: PyTree  # moving average of the gradients
    nu: PyTree  # of their squares
    steps: Int[Array, ""]


def adam_init(parameters: PyTree) -> OptimiserState:
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return OptimiserState(zeros, zeros, jnp.zeros((), jnp.int32))


def adam_step(
    parameters: T, gradients: PyTree, state: OptimiserState, learning_rate: Float[Array, ""] | float
) -> tuple[T, OptimiserState]:
    """One step downhill. Adam works element by element, so one call serves a whole ensemble of optimisers.

    With m and v the averages of gradient and squared gradient, c₁ = 1 - β₁ᵗ and c₂ = 1 - β₂ᵗ, the step is
    η·(m/c₁)/(√(v/c₂) + ε), written as (η·√c₂/c₁)·m/(√v + ε·√c₂): the same, with one division for each number
    where memory would otherwise wait for three.
    """
    steps = state.steps + 1
    mu = jax.tree.map(lambda m, g: FIRST_DECAY * m + (1 - FIRST_DECAY) * g, state.mu, gradients)
    nu = jax.tree.map(lambda v, g: SECOND_DECAY * v + (1 - SECOND_DECAY) * g**2, state.nu, gradients)
    root = jnp.sqrt(1 - SECOND_DECAY**steps)
    rate, epsilon = learning_rate * root / (1 - FIRST_DECAY**steps), EPSILON * root
    moved = jax.tree.map(
        lambda p, m, v: p - rate.astype(p.dtype) * m / (jnp.sqrt(v) + epsilon.astype(p.dtype)),
        parameters,
        mu,
        nu,
    )
    return moved, OptimiserState(mu, nu, steps)


def move_towards(target: T, online: T, rate: Float[Array, ""] | float) -> T:
    """target ← (1 - rate)·target + rate·online."""
    return jax.tree.map(lambda t, o: (1 - rate) * t + rate * o, target, online)
