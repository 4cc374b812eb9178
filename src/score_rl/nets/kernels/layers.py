"""An ensemble of critics, one GPU kernel for a layer: for many rows, and for any number of hidden layers.

`fused` keeps a member's weights on the chip and takes few rows past them. With thousands of rows for each member
(sampled actions beside every state), or with hundreds of members, a layer is a matrix product like any other, cut into
tiles of rows and units. What costs is everything around it, if it is left to the compiler: float32 sums, biases, ReLUs,
their masks on the way back and roundings all travel through memory, some of them transposed. Here each stays in the
kernel of its product:

- forward: h = relu(x·W + b), summed in float32 and stored in bfloat16. The last one also gives its share of
  q = h·w + b for each tile of units, and is stored only if a gradient will need it;
- backward: δ_below = (δ·Wᵀ)·(h_below > 0) in bfloat16, with its sum over a tile's rows, the share of a bias's gradient;
- ∂L/∂W = h_belowᵀ·δ, the rows cut into parts if there are few tiles; if not, it is stored in bfloat16.

The last layer's δ is dq·w·(h > 0): made from h where it is needed, never stored. Nor is the first layer where the input
is narrow: it is computed again by each kernel that needs it, from x with a column of ones and W₁ with b₁ as a row; its
δ₁ only meets x, in the same kernel: ∂L/∂W₁ = xᵀ·δ₁, and ∂L/∂x = δ₁·W₁ᵀ in another, whichever is asked for.

For hidden widths in multiples of 64 (`fits`). The kernels are Pallas in its Triton dialect; `interpret` runs them
anywhere, slowly, for tests.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, BFloat16, Float

from score_rl.nets.kernels.interface import Biases, Weights
from score_rl.nets.kernels.launching import In, Out, launch, summed

DTYPE = jnp.bfloat16
WIDTH = 64  # what a width is a multiple of, and the most of a sum that is loaded at once
FIRST_STEP = 32  # of a sum, loaded at once where the first layer is computed as well: it needs registers too
FIRST_UNITS = 64  # of a tile of the first layer's slope, for the same reason
MOST_INPUTS = 128  # of a tile of a weight's gradient: 256 by 256 sums are more than the registers hold
FEWEST_STEPS = 4  # of a sum over rows in one program: what it reads should outweigh the share it writes
RESIDENT = 264  # programs that an H200 works on at once: two for each multiprocessor


class LayerByLayer(NamedTuple):
    """The form for critics of any depth, and how its work is cut into programs."""

    rows: int = 128  # of a tile
    units: int = 128  # of a tile, at most
    warps: int = 8
    stages: int = 3  # of the pipeline: how many steps' loads are under way at once
    programs: int = 1  # wanted for a run's sum over rows
    columns: int = 64  # of an input, with its ones, up to which the first layer is not stored but computed again
    interpret: bool = False

    @classmethod
    def for_runs(cls, runs: int) -> Self:
        """For so many runs on a device."""
        return cls(programs=max(1, RESIDENT // runs))

    def fits(self, weights: Weights, rows: int) -> bool:
        """Hidden widths in multiples of `WIDTH` and one output, on any number of rows."""
        if len(weights) < 2 or any(weight.ndim != 3 or weight.dtype != jnp.float32 for weight in weights):
            return False
        return weights[-1].shape[-1] == 1 and all(weight.shape[-1] % WIDTH == 0 for weight in weights[:-1])

    def scalars(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
        return _outputs(self, weights, biases, x)


# -- inside the kernels ----------------------------------------------------------------------------------------------


def _sum_of_steps(length: int, product: Callable[[Any], Array], most: int = WIDTH) -> Array:
    """Σ of products over parts of a dimension; a loop, so that loads are under way while products are done."""
    step = min(most, length)
    if length == step:
        return product(pl.ds(0, step))
    total = jnp.zeros(jax.eval_shape(product, pl.ds(0, step)).shape, jnp.float32)
    return jax.lax.fori_loop(0, length // step, lambda i, total: total + product(pl.ds(i * step, step)), total)


def _where_active(hidden: Array, value: Array) -> Array:
    return jnp.where(hidden > 0, value.astype(DTYPE), jnp.zeros((), DTYPE))


def _relu(total: Array) -> Array:
    return jnp.maximum(total, 0).astype(DTYPE)


def _layer_kernel(first: bool, last: bool, *refs: Any) -> None:
    x_ref, *rest = refs
    if first:
        w1_ref, *rest = rest
        x = x_ref[...]
    w_ref, b_ref, *rest = rest

    def product(part: Any) -> Array:
        below = _relu(plt.dot(x, w1_ref[:, part])) if first else x_ref[:, part]
        return plt.dot(below, w_ref[part, :])

    total = _sum_of_steps(w_ref.shape[0], product, FIRST_STEP if first else WIDTH)
    hidden = jnp.maximum(total + b_ref[...][None, :], 0)
    out_ref, q_ref, *kept = rest if last else (None, None, *rest)
    if kept:
        kept[0][...] = hidden.astype(DTYPE)
    if last:
        q_ref[...] = jnp.sum(hidden * out_ref[...][None, :], axis=1)


def _pulled(last: bool, refs: Sequence[Any]) -> tuple[Array, list[Any]]:
    """δ·Wᵀ, and what references are left. For the last layer dq·((h > 0)·(w·W)ᵀ)."""
    above_ref, w_ref, *rest = refs

    def product(part: Any) -> Array:
        above = above_ref[:, part]
        slope = _where_active(above, jnp.ones(())) if last else above
        return plt.dot(slope, w_ref[:, part], trans_b=True)

    total = _sum_of_steps(w_ref.shape[1], product)
    return (total * rest[0][...][:, None], rest[1:]) if last else (total, rest)


def _pull_kernel(last: bool, *refs: Any) -> None:
    """What the ReLU below makes of δ·Wᵀ."""
    total, (below_ref, delta_ref, bias_ref) = _pulled(last, refs)
    delta = jnp.where(below_ref[...] > 0, total, 0)
    delta_ref[...] = delta.astype(DTYPE)
    bias_ref[...] = jnp.sum(delta, axis=0)


def _first_slope(last: bool, refs: Sequence[Any]) -> tuple[Float[Array, "rows units"], list[Any]]:
    """δ₁, and what references are left: those of x and W₁ are the first two."""
    total, rest = _pulled(last, refs)
    x_ref, w_ref = rest[:2]
    return jnp.where(plt.dot(x_ref[...], w_ref[...]) > 0, total, 0).astype(DTYPE), rest


def _down_kernel(last: bool, *refs: Any) -> None:
    """The first weight's gradient, transposed: x is too narrow to be the left factor."""
    delta, (x_ref, _, share_ref) = _first_slope(last, refs)
    share_ref[...] = plt.dot(delta, x_ref[...], trans_a=True)


def _input_kernel(last: bool, *refs: Any) -> None:
    """By the input, what these units give of it."""
    delta, (_, w_ref, share_ref) = _first_slope(last, refs)
    share_ref[...] = plt.dot(delta, w_ref[...], trans_b=True)


def _stored_input_kernel(last: bool, *refs: Any) -> None:
    """The same where the first layer was stored, and with it its δ."""
    total, (share_ref,) = _pulled(last, refs)
    share_ref[...] = total


def _weight_kernel(first: bool, last: bool, *refs: Any) -> None:
    """h_belowᵀ·δ over some rows. For the last layer (h_belowᵀ·(dq·(h > 0)))·w."""
    below_ref, *rest, share_ref = refs
    if first:
        w1_ref, *rest = rest
        w1 = w1_ref[...]
    above_ref, *rest = rest

    def product(part: Any) -> Array:
        above, below = above_ref[part, :], below_ref[part, :]
        slope = _where_active(above, rest[0][part][:, None]) if last else above
        if not first:
            return plt.dot(below, slope, trans_a=True)
        # Transposed as it comes: from one product into the next without leaving the registers.
        return plt.dot(_relu(plt.dot(w1, below, trans_a=True, trans_b=True)), slope)

    total = _sum_of_steps(above_ref.shape[0], product, FIRST_STEP if first else WIDTH)
    share_ref[...] = (total * rest[1][...][None, :] if last else total).astype(share_ref.dtype)


# -- calling them ----------------------------------------------------------------------------------------------------


class _First(NamedTuple):
    """What the first hidden layer is made of, where it is not stored."""

    x: BFloat16[Array, "rows columns"]  # with a column of ones
    weight: BFloat16[Array, "members columns width"]  # the bias is a row of it


class _Last(NamedTuple):
    """What the last hidden layer's δ is made of; below it, δ is an array."""

    hidden: BFloat16[Array, "members rows width"]
    dq: Float[Array, "members rows"]
    w: Float[Array, "members width"]


Below = _First | Array  # a hidden layer, or the input
Slope = _Last | Array


def _tile(width: int, most: int) -> int:
    """The largest power of two that divides a width and is not above `most`."""
    return min(width & -width, most)


def _parts(steps: int, wanted: int) -> int:
    """Into how many equal parts so many steps are cut: the number nearest to what is wanted of those that divide."""
    possible = [n for n in range(1, max(1, steps // FEWEST_STEPS) + 1) if steps % n == 0]
    return min(possible, key=lambda n: max(n / wanted, wanted / n))


def _call(
    form: LayerByLayer, kernel: Callable[..., None], grid: tuple[int, ...], ins: Sequence[In], outs: Sequence[Out]
) -> list[Array]:
    return launch(kernel, grid, ins, outs, warps=form.warps, stages=form.stages, interpret=form.interpret)


def _forward(
    form: LayerByLayer, below: Below, weight: Array, bias: Array, last: Array | None, keep: bool
) -> list[Array]:
    """The next hidden layer if it is to be kept; before it q without its bias, if this is the last one."""
    members, fan_in, width = weight.shape
    units = _tile(width, form.units)
    shares = width // units
    vector = pl.BlockSpec((None, units), lambda u, r, m: (m, u))
    if isinstance(below, _First):
        rows, columns = below.x.shape
        ins = [(below.x, pl.BlockSpec((form.rows, columns), lambda u, r, m: (r, 0)))]
        ins.append((below.weight, pl.BlockSpec((None, columns, fan_in), lambda u, r, m: (m, 0, 0))))
    else:
        rows = below.shape[-2]
        everyones = pl.BlockSpec((form.rows, fan_in), lambda u, r, m: (r, 0))
        own = pl.BlockSpec((None, form.rows, fan_in), lambda u, r, m: (m, r, 0))
        ins = [(below, everyones if below.ndim == 2 else own)]
    ins += [(weight, pl.BlockSpec((None, fan_in, units), lambda u, r, m: (m, 0, u))), (bias, vector)]
    outs: list[Out] = []
    if last is not None:
        ins.append((last, vector))
        share = pl.BlockSpec((None, None, form.rows), lambda u, r, m: (u, m, r))
        outs.append(((shares, members, rows), jnp.float32, share))
    if keep:
        spec = pl.BlockSpec((None, form.rows, units), lambda u, r, m: (m, r, u))
        outs.append(((members, rows, width), DTYPE, spec))
    grid = (shares, rows // form.rows, members)
    results = _call(form, partial(_layer_kernel, isinstance(below, _First), last is not None), grid, ins, outs)
    return results if last is None else [summed(results[0]), *results[1:]]


class _Back(NamedTuple):
    """A way back through a layer: its grid, what a program is given of slope and weight, and its tile of results."""

    grid: tuple[int, int, int]
    ins: list[In]
    last: bool
    tile: pl.BlockSpec
    units: int


def _back(form: LayerByLayer, slope: Slope, weight: Array, most: int | None = None) -> _Back:
    (members, width, fan_out), units = weight.shape, _tile(weight.shape[1], min(form.units, most or form.units))
    if isinstance(slope, _Last):
        weight = (weight * slope.w[:, None, :]).astype(DTYPE)
    above = slope.hidden if isinstance(slope, _Last) else slope
    rows = above.shape[1]
    ins = [(above, pl.BlockSpec((None, form.rows, fan_out), lambda u, r, m: (m, r, 0)))]
    ins.append((weight, pl.BlockSpec((None, units, fan_out), lambda u, r, m: (m, u, 0))))
    if isinstance(slope, _Last):
        ins.append((slope.dq, pl.BlockSpec((None, form.rows), lambda u, r, m: (m, r))))
    some = pl.BlockSpec((None, form.rows, units), lambda u, r, m: (m, r, u))
    return _Back((width // units, rows // form.rows, members), ins, isinstance(slope, _Last), some, units)


def _pull(form: LayerByLayer, slope: Slope, weight: Array, below: Array) -> list[Array]:
    """δ of the layer below and its sum over rows."""
    way, (members, rows, width) = _back(form, slope, weight), below.shape
    share = pl.BlockSpec((None, None, way.units), lambda u, r, m: (r, m, u))
    outs: list[Out] = [((members, rows, width), DTYPE, way.tile), ((way.grid[1], members, width), jnp.float32, share)]
    kernel = partial(_pull_kernel, way.last)
    delta, biases = _call(form, kernel, way.grid, [*way.ins, (below, way.tile)], outs)
    return [delta, summed(biases)]


def _first_layer(
    form: LayerByLayer, slope: Slope, weight: Array, first: _First
) -> tuple[Float[Array, "members columns width"], Float[Array, "rows columns"]]:
    """The gradients by the first layer's weight, its bias a row of it, and by the input."""
    way, (members, columns, width) = _back(form, slope, weight, FIRST_UNITS), first.weight.shape
    rows = first.x.shape[0]
    ins = [*way.ins, (first.x, pl.BlockSpec((form.rows, columns), lambda u, r, m: (r, 0)))]
    ins.append((first.weight, pl.BlockSpec((None, columns, way.units), lambda u, r, m: (m, 0, u))))
    some_rows = pl.BlockSpec((None, None, way.units, columns), lambda u, r, m: (r, m, u, 0))
    of_weight: Out = (way.grid[1], members, width, columns), jnp.float32, some_rows
    (d_weight,) = _call(form, partial(_down_kernel, way.last), way.grid, ins, [of_weight])
    some_units = pl.BlockSpec((None, None, form.rows, columns), lambda u, r, m: (u, m, r, 0))
    of_input: Out = (way.grid[0], members, rows, columns), jnp.float32, some_units
    # Of these two kernels the compiler leaves out the one that nobody asked for.
    (dx,) = _call(form, partial(_input_kernel, way.last), way.grid, ins, [of_input])
    return summed(d_weight).mT, dx.sum(axis=(0, 1))


def _by_input(form: LayerByLayer, slope: Slope, weight: Array) -> Float[Array, "rows columns"]:
    """The gradient by the input below a first layer that was stored."""
    way, (members, columns, _) = _back(form, slope, weight), weight.shape
    shape = (members, way.grid[1] * form.rows, columns)
    (dx,) = _call(form, partial(_stored_input_kernel, way.last), way.grid, way.ins, [(shape, jnp.float32, way.tile)])
    return dx.sum(axis=0)


def _weight_gradient(form: LayerByLayer, below: Below, slope: Slope) -> Float[Array, "members fan_in fan_out"]:
    above, first = slope.hidden if isinstance(slope, _Last) else slope, isinstance(below, _First)
    (members, rows, fan_out), fan_in = above.shape, (below.weight if isinstance(below, _First) else below).shape[-1]
    tile_in, tile_out = _tile(fan_in, min(form.units, MOST_INPUTS)), _tile(fan_out, form.units)
    programs = members * (fan_in // tile_in) * (fan_out // tile_out)
    parts = _parts(rows // WIDTH, -(-form.programs // programs))
    group = rows // parts
    if isinstance(below, _First):
        columns = below.x.shape[1]
        ins = [(below.x, pl.BlockSpec((group, columns), lambda o, i, g, m: (g, 0)))]
        ins.append((below.weight, pl.BlockSpec((None, columns, tile_in), lambda o, i, g, m: (m, 0, i))))
    else:
        everyones = pl.BlockSpec((group, tile_in), lambda o, i, g, m: (g, i))
        own = pl.BlockSpec((None, group, tile_in), lambda o, i, g, m: (m, g, i))
        ins = [(below, everyones if below.ndim == 2 else own)]
    ins.append((above, pl.BlockSpec((None, group, tile_out), lambda o, i, g, m: (m, g, o))))
    if isinstance(slope, _Last):
        ins.append((slope.dq, pl.BlockSpec((None, group), lambda o, i, g, m: (m, g))))
        ins.append((slope.w, pl.BlockSpec((None, tile_out), lambda o, i, g, m: (m, o))))
    share = pl.BlockSpec((None, None, tile_in, tile_out), lambda o, i, g, m: (g, m, i, o))
    grid = (fan_out // tile_out, fan_in // tile_in, parts, members)
    kernel = partial(_weight_kernel, first, isinstance(slope, _Last))
    # A gradient that is whole is only read by the optimiser: half the bytes of what is by far the largest of arrays.
    dtype = DTYPE if parts == 1 else jnp.float32
    shares = summed(*_call(form, kernel, grid, ins, [((parts, members, fan_in, fan_out), dtype, share)]))
    return shares.astype(jnp.float32)


class _Prepared(NamedTuple):
    """In bfloat16, and as wide and as many as whole tiles ask for."""

    below: Below  # what the weights' layers begin with
    weights: list[BFloat16[Array, "members _in _out"]]  # of the hidden layers above it
    biases: list[Float[Array, "members _out"]]  # of these layers
    w: Float[Array, "members width"]  # of the output


def _columns(inputs: int) -> int:
    """What an input is filled up to: a power of two, or a multiple of `WIDTH`."""
    return -(-inputs // WIDTH) * WIDTH if inputs > WIDTH else max(16, 1 << (inputs - 1).bit_length())


def _prepare(form: LayerByLayer, weights: Any, biases: Any, x: Float[Array, "rows inputs"]) -> _Prepared:
    (rows, inputs), more_rows = x.shape, -x.shape[0] % form.rows
    hidden, first = [weight.astype(DTYPE) for weight in weights[1:-1]], weights[0]
    narrow = hidden and inputs < form.columns
    if narrow:
        x, first = jnp.concatenate([x, jnp.ones((rows, 1))], axis=1), jnp.concatenate([first, biases[0][:, None]], 1)
    more = _columns(first.shape[1]) - first.shape[1]
    first = jnp.pad(first, ((0, 0), (0, more), (0, 0))).astype(DTYPE)
    x = jnp.pad(x, ((0, more_rows), (0, more))).astype(DTYPE)
    if narrow:
        return _Prepared(_First(x, first), hidden, list(biases[1:-1]), weights[-1][..., 0])
    return _Prepared(x, [first, *hidden], list(biases[:-1]), weights[-1][..., 0])


def _all_layers(form: LayerByLayer, given: _Prepared, keep: bool) -> tuple[Array, list[Below]]:
    """q without its bias; what the layers begin with, and every layer above it if they are to be kept."""
    below: list[Below] = [given.below]
    for weight, bias in zip(given.weights[:-1], given.biases[:-1], strict=True):
        below += _forward(form, below[-1], weight, bias, None, True)
    q, *kept = _forward(form, below[-1], given.weights[-1], given.biases[-1], given.w, keep)
    return q, [*below, *kept]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _outputs(
    form: LayerByLayer, weights: Any, biases: Any, x: Float[Array, "rows inputs"]
) -> Float[Array, "members rows"]:
    return _all_layers(form, _prepare(form, weights, biases, x), False)[0][:, : x.shape[0]] + biases[-1]


def _outputs_forward(form: LayerByLayer, weights: Any, biases: Any, x: Array) -> tuple[Array, Any]:
    given = _prepare(form, weights, biases, x)
    q, hidden = _all_layers(form, given, True)
    return q[:, : x.shape[0]] + biases[-1], (given, hidden, x.shape)


def _outputs_backward(form: LayerByLayer, saved: Any, dq: Float[Array, "members rows"]) -> tuple[Any, Any, Array]:
    given, (*below, top), (number, inputs) = saved
    dq_rows = jnp.pad(dq, ((0, 0), (0, top.shape[1] - number)))
    # Both sums are one pass over the last hidden layer.
    d_w = (top.astype(jnp.float32) * dq_rows[..., None]).sum(axis=1)
    d_biases = [given.w * jnp.where(top > 0, dq_rows[..., None], 0).sum(axis=1), dq.sum(axis=1, keepdims=True)]
    d_weights = [d_w[..., None]]
    slope: Slope = _Last(top, dq_rows, given.w)
    for weight, hidden in zip(given.weights[:0:-1], below[:0:-1], strict=True):
        d_weights.insert(0, _weight_gradient(form, hidden, slope))
        slope, d_bias = _pull(form, slope, weight, hidden)
        d_biases.insert(0, d_bias)
    d_lowest = _weight_gradient(form, below[0], slope)
    if isinstance(below[0], _First):
        d_first, dx = _first_layer(form, slope, given.weights[0], below[0])
        d_weights, d_biases = [d_first[:, :inputs], d_lowest, *d_weights], [d_first[:, inputs], *d_biases]
    else:
        # Whichever of these gradients nobody asked for, the compiler leaves out.
        d_weights, dx = [d_lowest[:, :inputs], *d_weights], _by_input(form, slope, given.weights[0])
    return tuple(d_weights), tuple(d_biases), dx[:number, :inputs]


_outputs.defvjp(_outputs_forward, _outputs_backward)
