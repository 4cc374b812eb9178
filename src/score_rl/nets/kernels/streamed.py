"""An ensemble of critics with three hidden layers or more: every weight is held on the chip, rows stream past it.

The kernels of `layers` cut a product into tiles of rows and units, and each tile fetches its part of the weight and of
the rows again. Here a program holds one member's whole weight of a layer (256 by 256 at most) in shared memory, takes
its share of the rows past it tile by tile, and there is one program for each multiprocessor. What can be had again for
less than a trip through memory is not stored:

- forward: the first two layers are one kernel, h₂ = relu(relu(x·W₁)·W₂ + b₂). x has a column of ones and W₁ a row for
  its bias. h₁ is not stored unless `stored` asks for it;
- backward: δ_below = (δ·Wᵀ)·(h_below > 0) and its sum over rows. Below the second layer δ₁ only meets x, in the same
  kernel: ∂L/∂W₁ = xᵀ·δ₁, and ∂L/∂x = δ₁·W₁ᵀ in another, whichever is asked for;
- ∂L/∂W = h_belowᵀ·δ, where h₁ is computed again from x.

The last layer's δ is dq·w·(h > 0), made from h where it is needed. Products take bfloat16 and sum in float32. The
kernels are Pallas in its Triton dialect; `interpret` runs them anywhere, slowly, for tests.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, BFloat16, Float

from score_rl.nets.kernels.interface import Biases, Weights
from score_rl.nets.kernels.launching import In, Out, ProgramShape, launch, summed

DTYPE = jnp.bfloat16
WIDTHS = (64, 128, 256)
MOST_INPUTS = 31  # and a column of ones; a program holds them too


class Streamed(NamedTuple):
    """The form for critics of three hidden layers or more on many rows, and the shape of each kernel's programs."""

    runs: int = 1  # on the device, among which its multiprocessors are shared
    least_rows: int = 2_048  # an H200's time with `layers` is 0.96 of this for 256, 1.13 for 5,376 and for 7,936
    first: ProgramShape = ProgramShape(128, 8, 2, 132)  # the first two layers
    forward: ProgramShape = ProgramShape(64, 8, 2, 132)
    pull: ProgramShape = ProgramShape(64, 8, 2, 132)
    down: ProgramShape = ProgramShape(64, 4, 1, 264)  # to the first layer's gradient
    sums: ProgramShape = ProgramShape(64, 8, 3, 132)  # a weight's gradient
    down_units: int = 128  # of a program
    sum_inputs: int = 128  # of a tile of a weight's gradient
    sum_outputs: int = 256
    stored: bool = False  # the first hidden layer, for the second weight's gradient
    interpret: bool = False

    def fits(self, weights: Weights, rows: int) -> bool:
        """Three hidden layers or more that a program can hold, a narrow input, one output, and rows enough to gain."""
        if rows < self.least_rows or len(weights) < 4:
            return False
        if any(weight.ndim != 3 or weight.dtype != jnp.float32 for weight in weights):
            return False
        hidden = all(weight.shape[-1] in WIDTHS for weight in weights[:-1])
        return hidden and weights[-1].shape[-1] == 1 and weights[0].shape[1] <= MOST_INPUTS

    def scalars(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
        return _outputs(self, weights, biases, x)


# -- inside the kernels ----------------------------------------------------------------------------------------------


class _Share(NamedTuple):
    """Which rows are a program's: those along an axis of the grid share them, tile by tile."""

    tile: int
    programs: int
    axis: int = 0

    def over(self, rows: int, step: Callable[[Any, Any], Any], start: Any) -> Any:
        # The grid's length is not asked of the device: there, several axes may have become one.
        number, tiles = pl.program_id(self.axis), rows // self.tile
        first, end = number * tiles // self.programs, (number + 1) * tiles // self.programs
        return jax.lax.fori_loop(first, end, lambda i, carry: step(pl.ds(i * self.tile, self.tile), carry), start)


def _relu(total: Array) -> Array:
    return jnp.maximum(total, 0).astype(DTYPE)


def _where_active(hidden: Array, value: Array) -> Array:
    return jnp.where(hidden > 0, value.astype(DTYPE), jnp.zeros((), DTYPE))


def _first_kernel(share: _Share, *refs: Any) -> None:
    x_ref, w1_ref, w2_ref, b2_ref, h2_ref, *kept = refs
    w1, w2 = w1_ref[...], w2_ref[...]

    def step(tile: Any, carry: None) -> None:
        b2 = b2_ref[...]
        hidden = _relu(plt.dot(x_ref[tile, :], w1))  # all units at once: in parts it needs more registers
        if kept:
            kept[0][tile, :] = hidden
        h2_ref[tile, :] = _relu(plt.dot(hidden, w2) + b2[None, :])

    share.over(x_ref.shape[0], step, None)


def _forward_kernel(share: _Share, top: bool, *refs: Any) -> None:
    below_ref, w_ref, b_ref, *rest = refs
    out_ref, q_ref, *kept = rest if top else (None, None, *rest)
    weight = w_ref[...]

    def step(tile: Any, carry: None) -> None:
        bias, last = b_ref[...], out_ref[...] if top else None  # loaded before the product, to be there after it
        hidden = jnp.maximum(plt.dot(below_ref[tile, :], weight) + bias[None, :], 0)
        if kept:
            kept[0][tile, :] = hidden.astype(DTYPE)
        if last is not None:
            q_ref[tile] = jnp.sum(hidden * last[None, :], axis=1)

    share.over(below_ref.shape[0], step, None)


def _pull_kernel(share: _Share, top: bool, *refs: Any) -> None:
    above_ref, w_ref, below_ref, *rest = refs
    dq_ref, delta_ref, bias_ref = rest if top else (None, *rest)
    weight = w_ref[...]

    def step(tile: Any, total: Array) -> Array:
        above, below, dq = above_ref[tile, :], below_ref[tile, :], dq_ref[tile] if top else None
        slope = _where_active(above, jnp.ones(())) if top else above
        delta = jnp.where(below > 0, plt.dot(slope, weight, trans_b=True), 0)
        if dq is not None:
            delta = delta * dq[:, None]
        delta_ref[tile, :] = delta.astype(DTYPE)
        return total + delta

    start = jnp.zeros((share.tile, weight.shape[0]), jnp.float32)
    bias_ref[...] = jnp.sum(share.over(above_ref.shape[0], step, start), axis=0)


def _first_slope(above: Array, x: Array, w1: Array, w2: Array) -> Float[Array, "tile units"]:
    return jnp.where(plt.dot(x, w1) > 0, plt.dot(above, w2, trans_b=True), 0).astype(DTYPE)


def _down_kernel(share: _Share, *refs: Any) -> None:
    """The first weight's gradient, transposed: x is too narrow to be the left factor."""
    above_ref, x_ref, w1_ref, w2_ref, share_ref = refs
    w1, w2 = w1_ref[...], w2_ref[...]

    def step(tile: Any, total: Array) -> Array:
        x = x_ref[tile, :]
        return total + plt.dot(_first_slope(above_ref[tile, :], x, w1, w2), x, trans_a=True)

    share_ref[...] = share.over(x_ref.shape[0], step, jnp.zeros(share_ref.shape, jnp.float32))


def _input_kernel(share: _Share, *refs: Any) -> None:
    above_ref, x_ref, w1_ref, w2_ref, dx_ref = refs
    w1, w2 = w1_ref[...], w2_ref[...]

    def step(tile: Any, carry: None) -> None:
        slope = _first_slope(above_ref[tile, :], x_ref[tile, :], w1, w2)
        dx_ref[tile, :] = plt.dot(slope, w1, trans_b=True)

    share.over(x_ref.shape[0], step, None)


def _sum_kernel(share: _Share, top: bool, again: bool, *refs: Any) -> None:
    """h_belowᵀ·δ over some rows. For the last layer (h_belowᵀ·(dq·(h > 0)))·w; `again`: h_below = relu(x·W₁)."""
    below_ref, above_ref, *rest, share_ref = refs
    w1 = rest.pop()[...] if again else None

    def step(tile: Any, total: Array) -> Array:
        above, below = above_ref[tile, :], below_ref[tile, :]
        slope = _where_active(above, rest[0][tile][:, None]) if top else above
        return total + plt.dot(below if w1 is None else _relu(plt.dot(below, w1)), slope, trans_a=True)

    total = share.over(above_ref.shape[0], step, jnp.zeros(share_ref.shape, jnp.float32))
    share_ref[...] = total * rest[1][...][None, :] if top else total


# -- calling them ----------------------------------------------------------------------------------------------------


def _call(
    form: Streamed,
    shape: ProgramShape,
    kernel: Callable[..., None],
    grid: tuple[int, ...],
    ins: Sequence[In],
    outs: list[Out],
) -> list[Array]:
    return launch(kernel, grid, ins, outs, warps=shape.warps, stages=shape.stages, interpret=form.interpret)


def _shared(form: Streamed, shape: ProgramShape, others: int, rows: int, axis: int = 0) -> _Share:
    """How the rows are shared where there are `others` for each run beside."""
    programs = max(1, min(shape.programs // (form.runs * others), rows // shape.rows))
    return _Share(shape.rows, programs, axis)


def _whole(array: Array, everyones: bool = False) -> In:
    """An input of which a program may read all that is its member's."""
    shape = array.shape if everyones else (None, *array.shape[1:])
    zeros = (0,) * (array.ndim - 1)
    return array, pl.BlockSpec(shape, lambda p, m: (0, *zeros) if everyones else (m, *zeros))


def _output(*shape: int, dtype: Any = None) -> Out:
    """An output of which a program writes the rows that are its own."""
    return shape, dtype or DTYPE, pl.BlockSpec((None, *shape[1:]), lambda p, m: (m, *(0,) * (len(shape) - 1)))


def _two_layers(
    form: Streamed, x: Array, w1: Array, w2: Array, b2: Array, stored: bool
) -> Sequence[Float[Array, "members rows width"]]:
    """The second hidden layer, and the first if it is to be stored."""
    (members, width, fan_out), rows = w2.shape, x.shape[0]
    mine = _shared(form, form.first, members, rows)
    ins = [_whole(x, everyones=True), _whole(w1), _whole(w2), _whole(b2)]
    outs = [_output(members, rows, fan_out), *([_output(members, rows, width)] if stored else [])]
    return _call(form, form.first, partial(_first_kernel, mine), (mine.programs, members), ins, outs)


def _forward(form: Streamed, below: Array, weight: Array, bias: Array, last: Array | None, keep: bool) -> list[Array]:
    """The next hidden layer if it is to be kept; before it q without its bias, if this is the last one."""
    (members, rows, _), width, shape = below.shape, weight.shape[-1], form.forward
    mine, top = _shared(form, shape, members, rows), last is not None
    ins = [_whole(below), _whole(weight), _whole(bias), *([] if last is None else [_whole(last)])]
    outs = [_output(members, rows, dtype=jnp.float32)] if top else []
    outs += [_output(members, rows, width)] if keep else []
    return _call(form, shape, partial(_forward_kernel, mine, top), (mine.programs, members), ins, outs)


class _Top(NamedTuple):
    """What the last hidden layer's δ is made of; below it, δ is an array."""

    hidden: BFloat16[Array, "members rows width"]
    dq: Float[Array, "members rows"]
    w: Float[Array, "members width"]


Slope = _Top | Array


def _pull(form: Streamed, slope: Slope, weight: Array, below: Array) -> list[Array]:
    """δ of the layer below and its sum over rows."""
    (members, rows, width), shape, top = below.shape, form.pull, isinstance(slope, _Top)
    mine = _shared(form, shape, members, rows)
    programs = mine.programs
    if isinstance(slope, _Top):
        weight = (weight * slope.w[:, None, :]).astype(DTYPE)
    ins = [_whole(slope.hidden if isinstance(slope, _Top) else slope), _whole(weight), _whole(below)]
    ins += [_whole(slope.dq)] if isinstance(slope, _Top) else []
    share = pl.BlockSpec((None, None, width), lambda p, m: (p, m, 0))
    outs = [_output(members, rows, width), ((programs, members, width), jnp.float32, share)]
    delta, biases = _call(form, shape, partial(_pull_kernel, mine, top), (programs, members), ins, outs)
    return [delta, summed(biases)]


def _first_layer(
    form: Streamed, slope: Array, x: Array, w1: Array, w2: Array
) -> tuple[Float[Array, "members columns width"], Float[Array, "rows columns"]]:
    """The gradients by the first layer's weight, its bias a row of it, and by the input."""
    (members, columns, width), (rows, fan_out), shape = w1.shape, slope.shape[1:], form.down
    units = min(form.down_units, width)
    shares = width // units
    mine = _shared(form, shape, members * shares, rows)
    programs = mine.programs
    ins = [(slope, pl.BlockSpec((None, rows, fan_out), lambda p, u, m: (m, 0, 0)))]
    ins.append((x, pl.BlockSpec((rows, columns), lambda p, u, m: (0, 0))))
    ins.append((w1, pl.BlockSpec((None, columns, units), lambda p, u, m: (m, 0, u))))
    ins.append((w2, pl.BlockSpec((None, units, fan_out), lambda p, u, m: (m, u, 0))))
    grid = programs, shares, members
    share = pl.BlockSpec((None, None, units, columns), lambda p, u, m: (p, m, u, 0))
    of_weights: Out = (programs, members, width, columns), jnp.float32, share
    (d_first,) = _call(form, shape, partial(_down_kernel, mine), grid, ins, [of_weights])
    by_units = pl.BlockSpec((None, None, rows, columns), lambda p, u, m: (u, m, 0, 0))
    of_input: Out = (shares, members, rows, columns), jnp.float32, by_units
    # Of these two kernels the compiler leaves out the one that nobody asked for.
    (dx,) = _call(form, shape, partial(_input_kernel, mine), grid, ins, [of_input])
    return summed(d_first).mT, dx.sum(axis=(0, 1))


def _weight_gradient(
    form: Streamed, below: Array, slope: Slope, w1: Array | None
) -> Float[Array, "members fan_in fan_out"]:
    """By a weight between two hidden layers. With `w1`, `below` is the input."""
    above, shape, top = slope.hidden if isinstance(slope, _Top) else slope, form.sums, isinstance(slope, _Top)
    (members, rows, fan_out), fan_in = above.shape, below.shape[-1] if w1 is None else w1.shape[-1]
    tile_in, tile_out = min(form.sum_inputs, fan_in), min(form.sum_outputs, fan_out)
    tiles = (fan_out // tile_out, fan_in // tile_in)
    mine = _shared(form, shape, members * tiles[0] * tiles[1], rows, axis=2)
    programs = mine.programs
    if w1 is None:
        ins = [(below, pl.BlockSpec((None, rows, tile_in), lambda o, i, p, m: (m, 0, i)))]
    else:
        ins = [(below, pl.BlockSpec(below.shape, lambda o, i, p, m: (0, 0)))]
    ins.append((above, pl.BlockSpec((None, rows, tile_out), lambda o, i, p, m: (m, 0, o))))
    if isinstance(slope, _Top):
        ins.append((slope.dq, pl.BlockSpec((None, rows), lambda o, i, p, m: (m, 0))))
        ins.append((slope.w, pl.BlockSpec((None, tile_out), lambda o, i, p, m: (m, o))))
    if w1 is not None:
        ins.append((w1, pl.BlockSpec((None, w1.shape[1], tile_in), lambda o, i, p, m: (m, 0, i))))
    share = pl.BlockSpec((None, None, tile_in, tile_out), lambda o, i, p, m: (p, m, i, o))
    kernel = partial(_sum_kernel, mine, top, w1 is not None)
    outs: list[Out] = [((programs, members, fan_in, fan_out), jnp.float32, share)]
    return summed(*_call(form, shape, kernel, (*tiles, programs, members), ins, outs))


class _Prepared(NamedTuple):
    """In bfloat16, and as wide and as many as whole tiles ask for."""

    x: BFloat16[Array, "rows columns"]  # with a column of ones
    weights: list[Array]  # of the hidden layers; in the first the bias is a row
    biases: list[Float[Array, "members _width"]]  # of the hidden layers from the second on
    w: Float[Array, "members width"]  # of the output


def _prepare(form: Streamed, weights: Any, biases: Any, x: Float[Array, "rows inputs"]) -> _Prepared:
    (rows, inputs), first = x.shape, jnp.concatenate([weights[0], biases[0][:, None, :]], axis=1)
    tile = max(shape.rows for shape in (form.first, form.forward, form.pull, form.down, form.sums))
    columns = max(16, 1 << inputs.bit_length())
    more = columns - inputs - 1
    wide = jnp.concatenate([x, jnp.ones((rows, 1)), jnp.zeros((rows, more))], axis=1)
    return _Prepared(
        x=jnp.pad(wide.astype(DTYPE), ((0, -rows % tile), (0, 0))),
        weights=[
            jnp.pad(first, ((0, 0), (0, more), (0, 0))).astype(DTYPE),
            *(weight.astype(DTYPE) for weight in weights[1:-1]),
        ],
        biases=list(biases[1:-1]),
        w=weights[-1][..., 0],
    )


def _all_layers(form: Streamed, given: _Prepared, keep: bool) -> tuple[Array, list[Array], Array | None]:
    """q without its bias; if they are to be kept every hidden layer from the second on, and the first where it is."""
    (w1, w2, *middle, top), stored = given.weights, keep and form.stored
    second, *first = _two_layers(form, given.x, w1, w2, given.biases[0], stored)
    hidden = [second]
    for weight, bias in zip(middle, given.biases[1:-1], strict=True):
        hidden += _forward(form, hidden[-1], weight, bias, None, True)
    q, *kept = _forward(form, hidden[-1], top, given.biases[-1], given.w, keep)
    return q, hidden + kept, first[0] if first else None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _outputs(form: Streamed, weights: Any, biases: Any, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
    return _all_layers(form, _prepare(form, weights, biases, x), False)[0][:, : x.shape[0]] + biases[-1]


def _outputs_forward(form: Streamed, weights: Any, biases: Any, x: Array) -> tuple[Array, Any]:
    given = _prepare(form, weights, biases, x)
    q, hidden, first = _all_layers(form, given, True)
    return q[:, : x.shape[0]] + biases[-1], (given, hidden, first, x.shape)


def _outputs_backward(form: Streamed, saved: Any, dq: Float[Array, "members rows"]) -> tuple[Any, Any, Array]:
    given, hidden, first, (number, inputs) = saved
    dq_rows = jnp.pad(dq, ((0, 0), (0, given.x.shape[0] - number)))
    w1, w2, *weights = given.weights
    top = hidden[-1]
    # Both sums are one pass over the last hidden layer.
    d_w = (top.astype(jnp.float32) * dq_rows[..., None]).sum(axis=1)
    d_biases = [given.w * jnp.where(top > 0, dq_rows[..., None], 0).sum(axis=1), dq.sum(axis=1, keepdims=True)]
    d_weights = [d_w[..., None]]
    slope: Slope = _Top(top, dq_rows, given.w)
    for weight, below in zip(weights[::-1], hidden[-2::-1], strict=True):
        d_weights.insert(0, _weight_gradient(form, below, slope, None))
        slope, d_bias = _pull(form, slope, weight, below)
        d_biases.insert(0, d_bias)
    assert not isinstance(slope, _Top)  # there are three hidden layers at least
    d_weights.insert(
        0, _weight_gradient(form, given.x if first is None else first, slope, w1 if first is None else None)
    )
    d_first, dx = _first_layer(form, slope, given.x, w1, w2)
    d_weights.insert(0, d_first[:, :inputs])
    d_biases.insert(0, d_first[:, inputs])
    return tuple(d_weights), tuple(d_biases), dx[:number, :inputs]


_outputs.defvjp(_outputs_forward, _outputs_backward)
