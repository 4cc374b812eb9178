"""Adam with a traced learning rate, and the moving average that target networks follow."""

from typing import Any, TypeVar

import jax
import optax
from jaxtyping import Array, Float, PyTree

_ADAM = optax.scale_by_adam()  # β₁ 0.9, β₂ 0.999, ε 1e-8: the defaults of every method here

OptimiserState = Any
T = TypeVar("T")


def adam_init(parameters: PyTree) -> OptimiserState:
    return _ADAM.init(parameters)


def adam_step(
    parameters: T, gradients: PyTree, state: OptimiserState, learning_rate: Float[Array, ""] | float
) -> tuple[T, OptimiserState]:
    """One step downhill. Adam works element by element, so one call serves a whole ensemble of optimisers."""
    direction, state = _ADAM.update(gradients, state)
    return jax.tree.map(lambda p, d: p - learning_rate * d, parameters, direction), state


def move_towards(target: T, online: T, rate: Float[Array, ""] | float) -> T:
    """target ← (1 - rate)·target + rate·online."""
    return jax.tree.map(lambda t, o: (1 - rate) * t + rate * o, target, online)
