"""Actors and ensembles of critics for processors that multiply bfloat16, in the form in which the compiler's library
does so.

XLA's CPU backend multiplies bfloat16 with YNNPACK, which knows AMX and AVX-512's products of pairs, if the left factor
ends with what is summed over; any other product is converted back to float32 without a word. Two more facts about that
library, found by measuring: with AMX it is three times slower on products of exactly 256 × 256 × 256 than on slightly
larger ones, and it is slow where it sums over thousands of rows. So here

- layers are widened: every activation has a column of ones and zeros up to a multiple of what the processor takes at
  once, every matrix holds its bias as one more row. That also leaves no elementwise work between two layers but the
  ReLU;
- many rows are taken in blocks that fit into a core's cache, one after the other;
- the last layer, which has few outputs, is float32.

Products take bfloat16 and give float32; what is kept for the gradient is bfloat16 but for the last hidden layer.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, BFloat16, Float

DTYPE = jnp.bfloat16
MOST_ROWS = 2048  # of a block
MOST_BLOCKS = 16

Parameters = tuple[Array, ...]  # of all layers, each with a leading axis of members


def _times(equation: str, x: Array, y: Array) -> Array:
    return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _inputs(x: Float[Array, "rows inputs"], members: int, multiple: int) -> BFloat16[Array, "members rows widened"]:
    """The same for every member. The barrier keeps the compiler from computing it once for each."""
    rows, inputs = x.shape
    ones, zeros = jnp.ones((rows, 1), DTYPE), jnp.zeros((rows, _up(inputs + 1, multiple) - inputs - 1), DTYPE)
    widened = jax.lax.optimization_barrier(jnp.concatenate([x.astype(DTYPE), ones, zeros], axis=1))
    return jnp.broadcast_to(widened[None], (members, *widened.shape))


def _matrices(
    weights: Parameters, biases: Parameters, multiple: int
) -> list[BFloat16[Array, "members widened columns"]]:
    """Of the hidden layers: weights above bias above zeros; where another follows, a column that passes on the ones."""
    matrices = []
    for number, (weight, bias) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
        members, fan_in, fan_out = weight.shape
        below = jnp.zeros((members, _up(fan_in + 1, multiple) - fan_in - 1, fan_out), DTYPE)
        matrix = jnp.concatenate([weight.astype(DTYPE), bias.astype(DTYPE)[:, None], below], axis=1)
        if number < len(weights) - 2:
            beside = jnp.zeros((members, matrix.shape[1], _up(fan_out + 1, multiple) - fan_out), DTYPE)
            matrix = jnp.concatenate([matrix, beside.at[:, fan_in, 0].set(1)], axis=2)
        matrices.append(matrix)
    return matrices


def _turned(x: BFloat16[Array, "members rows columns"]) -> BFloat16[Array, "members columns rows"]:
    """Rows and columns exchanged, in a form that the compiler does not fold into the product that follows."""
    members, rows, columns = x.shape
    part = 16 if rows % 16 == 0 else 1
    return x.reshape(members, rows // part, part, columns).transpose(0, 3, 1, 2).reshape(members, columns, rows)


def _forward(
    matrices: list[Array], weight: Array, bias: Array, x: Float[Array, "rows inputs"], multiple: int
) -> tuple[Float[Array, "members rows outputs"], tuple[list[Array], Array]]:
    """The outputs, and what the gradient needs: what each hidden layer took, and what the last one gave."""
    hidden = [_inputs(x, weight.shape[0], multiple)]
    for matrix in matrices[:-1]:
        hidden.append(jax.nn.relu(_times("mbi,mio->mbo", hidden[-1], matrix)).astype(DTYPE))
    top = _times("mbi,mio->mbo", hidden[-1], matrices[-1])
    return _times("mbi,mio->mbo", jax.nn.relu(top), weight) + bias[:, None], (hidden, top)


def _backward(
    matrices: list[Array], weight: Array, kept: tuple[list[Array], Array], dq: Float[Array, "members rows outputs"]
) -> tuple[list[Array], Float[Array, "rows widened"]]:
    """Gradients by every matrix and by the last weight, and by the input."""
    hidden, top = kept
    gradients = [_times("mbi,mbo->mio", jax.nn.relu(top), dq)]
    slope = jnp.where(top > 0, _times("mbo,mio->mbi", dq, weight), 0).astype(DTYPE)
    for number in reversed(range(len(matrices))):
        gradients.append(_times("mib,mbo->mio", _turned(hidden[number]), slope))
        below = _times("mbo,mio->mbi", slope, matrices[number])
        if number:
            slope = jnp.where(hidden[number] > 0, below, 0).astype(DTYPE)
    return gradients[::-1], below.sum(axis=0)


# -- blocks of rows --------------------------------------------------------------------------------------------------


def _blocks(rows: int, multiple: int) -> list[slice]:
    """Written out one by one: a compiled loop over them would spend a fifth of the time on its buffers."""
    number = min(-(-rows // MOST_ROWS), MOST_BLOCKS)
    size = _up(-(-rows // number), multiple)
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def outputs(
    weights: Parameters, biases: Parameters, x: Float[Array, "rows inputs"], multiple: int
) -> Float[Array, "members rows outputs"]:
    """Every member's outputs on every row, of networks with at least one hidden layer; differentiable once."""
    return _outputs_forward(weights, biases, x, multiple)[0]


def _outputs_forward(weights: Parameters, biases: Parameters, x: Array, multiple: int) -> tuple[Array, Any]:
    matrices, blocks = _matrices(weights, biases, multiple), _blocks(x.shape[0], multiple)
    done = [_forward(matrices, weights[-1], biases[-1], x[block], multiple) for block in blocks]
    return jnp.concatenate([q for q, _ in done], axis=1), (weights, biases, x.shape, [kept for _, kept in done])


def _outputs_backward(
    multiple: int, saved: Any, dq: Float[Array, "members rows outputs"]
) -> tuple[Parameters, Parameters, Array]:
    weights, biases, (rows, inputs), kept = saved
    matrices, blocks = _matrices(weights, biases, multiple), _blocks(rows, multiple)
    dq = jax.lax.optimization_barrier(dq)  # not computed again for every unit
    done = [_backward(matrices, weights[-1], one, dq[:, block]) for one, block in zip(kept, blocks, strict=True)]
    gradients = [sum(parts[1:], start=parts[0]) for parts in zip(*(parts for parts, _ in done), strict=True)]
    d_weights = tuple(g[:, : w.shape[1], : w.shape[2]] for g, w in zip(gradients, weights, strict=True))
    hidden = zip(gradients[:-1], weights[:-1], strict=True)
    d_biases = (*(g[:, w.shape[1], : w.shape[2]] for g, w in hidden), dq.sum(axis=1))
    return d_weights, d_biases, jnp.concatenate([dx for _, dx in done])[:, :inputs]


outputs.defvjp(_outputs_forward, _outputs_backward)


def scalars(
    weights: Parameters, biases: Parameters, x: Float[Array, "rows inputs"], multiple: int
) -> Float[Array, "members rows"]:
    """The only output of every member."""
    return outputs(weights, biases, x, multiple)[..., 0]
