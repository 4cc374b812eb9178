"""The arithmetic of matrix products: chosen once for a compiled program, the same in every network.

Parameters, optimiser states, losses and sums are float32 always. What can be lower is the precision of what goes
into a product: `bfloat16` halves the bytes that activations take through memory and doubles the rate of a GPU's
matrix units. `float32` is left as it is; a GPU's matrix units then round it to TF32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from score_rl.nets.kernels.interface import ActorForm, CriticsForm, PassesForm

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


class Arithmetic(NamedTuple):
    """What networks are computed with; `kernels.choice.arithmetic_for` makes the one for a device."""

    precision: Precision = "float32"
    critics: tuple[CriticsForm, ...] = ()  # the fast forms for critics: the first that fits is taken
    actors: tuple[ActorForm, ...] = ()  # the same for actors
    passes: PassesForm | None = None  # the same for many passes with dropout
    multiple: int = 1  # hidden widths are filled up to multiples of this, see `perceptron.aligned`
    emulated: bool = False  # other products round to bfloat16 but multiply in float32: CPUs' libraries lack some
    kernel_runs: int = 0  # runs on each device whose networks are GPU kernels; 0 without kernels
    bfloat16_library: bool = False  # the program must be compiled with the CPU library that multiplies bfloat16


_PLAIN = Arithmetic()
_CHOSEN: ContextVar[Arithmetic] = ContextVar("arithmetic", default=_PLAIN)


@contextmanager
def arithmetic(chosen: Arithmetic) -> Iterator[None]:
    """What is traced inside uses this arithmetic."""
    token = _CHOSEN.set(chosen)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen_arithmetic() -> Arithmetic:
    return _CHOSEN.get()


def product(equation: str, x: Float[Array, "..."], weight: Float[Array, "..."]) -> Float[Array, "..."]:
    """`einsum` of two arrays in the chosen precision, and so are its gradients."""
    if chosen_arithmetic().precision == "float32":
        return jnp.einsum(equation, x, weight)
    return _rounded(equation, x, weight)


def rounded(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """As it goes into products: what is used often is rounded once."""
    return x if chosen_arithmetic().precision == "float32" else _round(x)


def _round(x: Array) -> Array:
    if chosen_arithmetic().emulated:
        return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
    return x.astype(jnp.bfloat16)


def _einsum(equation: str, x: Array, y: Array) -> Array:
    return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rounded(equation: str, x: Array, weight: Array) -> Array:
    return _einsum(equation, _round(x), _round(weight))


def _rounded_forward(equation: str, x: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
    rounded = _round(x), _round(weight)
    return _einsum(equation, *rounded), rounded


def _rounded_backward(equation: str, saved: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    inputs, out = equation.split("->")
    first, second = inputs.split(",")
    x, weight = saved
    slope = _round(slope)
    return _einsum(f"{out},{second}->{first}", slope, weight), _einsum(f"{first},{out}->{second}", x, slope)


_rounded.defvjp(_rounded_forward, _rounded_backward)
