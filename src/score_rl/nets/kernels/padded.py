"""Actors and ensembles of critics for processors that multiply bfloat16, in the form in which the compiler's library
does so.

XLA's CPU backend multiplies bfloat16 with YNNPACK, which knows AMX and AVX-512's products of pairs, if the left factor
ends with what is summed over; any other product is converted back to float32 without a word. Two more facts about that
library, found by measuring: with AMX it is three times slower on products of exactly 256 × 256 × 256 than on slightly
larger ones, and it is slow where it sums over thousands of rows. So here

- with AMX layers are widened: every activation has a column of ones and zeros up to a multiple of what the processor
  takes at once, every matrix holds its bias as one more row. That also leaves no elementwise work between two layers
  but the ReLU. With AVX-512 wider products of many rows cost more than that is worth, so biases are added there;
- many rows are taken in blocks that fit into a core's cache, one after the other;
- the last layer, which has few outputs, is float32.

Products take bfloat16 and give float32; what is kept for the gradient is bfloat16 but for the last hidden layer.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from score_rl.nets.kernels.interface import Biases, Weights

DTYPE = jnp.bfloat16


class Layout(NamedTuple):
    """How layers are laid out."""

    multiple: int  # what widths are filled up to: as many numbers as the processor takes at once
    inside: bool = True  # matrices hold their biases


class Padded(NamedTuple):
    """The form for critics and actors on a kind of processor: its layout for few rows and for many."""

    few: Layout
    many: Layout  # for more rows than `MANY`

    def of(self, rows: int) -> Layout:
        return self.many if rows > MANY else self.few

    def fits(self, weights: Weights, rows: int) -> bool:
        """Any network with a hidden layer, on any number of rows."""
        return len(weights) > 1

    def scalars(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
        return outputs(weights, biases, x, self)[..., 0]

    def vectors(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        return outputs(weights, biases, x, self)[0]


MANY = 1024
FORM_FOR_UNITS = {  # by what Linux calls the units that multiply bfloat16
    "amx_bf16": Padded(Layout(32), Layout(32)),
    "avx512_bf16": Padded(Layout(16), Layout(16, inside=False)),
}

MOST_ROWS = 2048  # of a block
MOST_BLOCKS = 16


def _times(equation: str, x: Array, y: Array) -> Array:
    return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _wide(width: int, layout: Layout) -> int:
    return _up(width + layout.inside, layout.multiple)


def _inputs(x: Float[Array, "rows inputs"], members: int, layout: Layout) -> Float[Array, "members rows widened"]:
    """The same for every member. The barrier keeps the compiler from computing it once for each."""
    rows, inputs = x.shape
    ones = jnp.ones((rows, int(layout.inside)), DTYPE)
    zeros = jnp.zeros((rows, _wide(inputs, layout) - inputs - layout.inside), DTYPE)
    widened = jax.lax.optimization_barrier(jnp.concatenate([x.astype(DTYPE), ones, zeros], axis=1))
    return jnp.broadcast_to(widened[None], (members, *widened.shape))


def _matrices(weights: Weights, biases: Biases, layout: Layout) -> list[Float[Array, "members _widened _columns"]]:
    """Of the hidden layers: weights above bias, if it is inside, above zeros; where another layer follows, zeros beside
    them, and a column that passes on the ones."""
    matrices = []
    for number, (weight, bias) in enumerate(zip(weights[:-1], biases[:-1], strict=True)):
        members, fan_in, fan_out = weight.shape
        parts = [weight.astype(DTYPE), *([bias.astype(DTYPE)[:, None]] if layout.inside else [])]
        parts.append(jnp.zeros((members, _wide(fan_in, layout) - fan_in - layout.inside, fan_out), DTYPE))
        matrix = jnp.concatenate(parts, axis=1)
        if number < len(weights) - 2:
            beside = jnp.zeros((members, matrix.shape[1], _wide(fan_out, layout) - fan_out), DTYPE)
            if layout.inside:
                beside = beside.at[:, fan_in, 0].set(1)
            matrix = jnp.concatenate([matrix, beside], axis=2)
        matrices.append(matrix)
    return matrices


def _outside(biases: Biases, matrices: list[Array], layout: Layout) -> list[Float[Array, "members 1 _columns"] | None]:
    """What is still to be added after each hidden layer's product, as wide as that."""
    if layout.inside:
        return [None] * len(matrices)
    both = zip(biases[:-1], matrices, strict=True)
    return [jnp.pad(bias, ((0, 0), (0, matrix.shape[2] - bias.shape[1])))[:, None] for bias, matrix in both]


def _turned(x: Float[Array, "members rows columns"]) -> Float[Array, "members columns rows"]:
    """Rows and columns exchanged, in a form that the compiler does not fold into the product that follows."""
    members, rows, columns = x.shape
    part = 16 if rows % 16 == 0 else 1
    return x.reshape(members, rows // part, part, columns).transpose(0, 3, 1, 2).reshape(members, columns, rows)


def _layer(x: Array, matrix: Array, bias: Array | None) -> Float[Array, "members rows columns"]:
    product = _times("mbi,mio->mbo", x, matrix)
    return product if bias is None else product + bias


def _forward(
    matrices: list[Array],
    added: list[Array | None],
    weight: Array,
    bias: Array,
    x: Float[Array, "rows inputs"],
    layout: Layout,
) -> tuple[Float[Array, "members rows outputs"], tuple[list[Array], Array]]:
    """The outputs, and what the gradient needs: what each hidden layer took, and what the last one gave."""
    hidden = [_inputs(x, weight.shape[0], layout)]
    for matrix, more in zip(matrices[:-1], added[:-1], strict=True):
        hidden.append(jax.nn.relu(_layer(hidden[-1], matrix, more)).astype(DTYPE))
    top = _layer(hidden[-1], matrices[-1], added[-1])
    return _times("mbi,mio->mbo", jax.nn.relu(top), weight) + bias[:, None], (hidden, top)


def _backward(
    matrices: list[Array],
    weight: Array,
    kept: tuple[list[Array], Array],
    dq: Float[Array, "members rows outputs"],
    layout: Layout,
) -> tuple[list[Array], list[Array], Float[Array, "rows widened"]]:
    """Gradients by every matrix and by the last weight, by the biases outside of them, and by the input."""
    hidden, top = kept
    gradients, outside = [_times("mbi,mbo->mio", jax.nn.relu(top), dq)], []
    slope = jnp.where(top > 0, _times("mbo,mio->mbi", dq, weight), 0).astype(DTYPE)
    for number in reversed(range(len(matrices))):
        if not layout.inside:
            outside.append(slope.sum(axis=1, dtype=jnp.float32))
        gradients.append(_times("mib,mbo->mio", _turned(hidden[number]), slope))
        below = _times("mbo,mio->mbi", slope, matrices[number])
        if number:
            slope = jnp.where(hidden[number] > 0, below, 0).astype(DTYPE)
    return gradients[::-1], outside[::-1], below.sum(axis=0)


# -- blocks of rows --------------------------------------------------------------------------------------------------


def _blocks(rows: int, layout: Layout) -> list[slice]:
    """Written out one by one: a compiled loop over them would spend a fifth of the time on its buffers."""
    number = min(-(-rows // MOST_ROWS), MOST_BLOCKS)
    size = _up(-(-rows // number), layout.multiple)
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def outputs(
    weights: Weights, biases: Biases, x: Float[Array, "rows inputs"], form: Padded
) -> Float[Array, "members rows outputs"]:
    """Every member's outputs on every row, of networks with at least one hidden layer; differentiable once."""
    return _outputs_forward(weights, biases, x, form)[0]


def _outputs_forward(weights: Weights, biases: Biases, x: Array, form: Padded) -> tuple[Array, Any]:
    layout = form.of(x.shape[0])
    matrices = _matrices(weights, biases, layout)
    added = _outside(biases, matrices, layout)
    blocks = _blocks(x.shape[0], layout)
    done = [_forward(matrices, added, weights[-1], biases[-1], x[block], layout) for block in blocks]
    return jnp.concatenate([q for q, _ in done], axis=1), (weights, biases, x.shape, [kept for _, kept in done])


def _outputs_backward(
    form: Padded, saved: Any, dq: Float[Array, "members rows outputs"]
) -> tuple[Weights, Biases, Array]:
    weights, biases, (rows, inputs), kept = saved
    layout = form.of(rows)
    matrices, blocks = _matrices(weights, biases, layout), _blocks(rows, layout)
    dq = jax.lax.optimization_barrier(dq)  # not computed again for every unit
    done = [
        _backward(matrices, weights[-1], one, dq[:, block], layout) for one, block in zip(kept, blocks, strict=True)
    ]
    gradients, outside = _sums([parts for parts, _, _ in done]), _sums([parts for _, parts, _ in done])
    d_weights = tuple(g[:, : w.shape[1], : w.shape[2]] for g, w in zip(gradients, weights, strict=True))
    hidden = weights[:-1]
    if layout.inside:
        d_biases = [g[:, w.shape[1], : w.shape[2]] for g, w in zip(gradients[:-1], hidden, strict=True)]
    else:
        d_biases = [g[:, : w.shape[2]] for g, w in zip(outside, hidden, strict=True)]
    return d_weights, (*d_biases, dq.sum(axis=1)), jnp.concatenate([dx for _, _, dx in done])[:, :inputs]


def _sums(of_blocks: list[list[Array]]) -> list[Array]:
    return [sum(parts[1:], start=parts[0]) for parts in zip(*of_blocks, strict=True)]


outputs.defvjp(_outputs_forward, _outputs_backward)
