"""An ensemble of critics, one GPU kernel for a layer: for many rows, and for any number of hidden layers.

`fused` keeps a member's weights on the chip and takes few rows past them. With thousands of rows for each member
(sampled actions beside every state) a layer is a matrix product like any other, cut into tiles of rows and units. What
costs is everything around it, if it is left to the compiler: float32 sums, biases, ReLUs, their masks on the way back
and roundings all travel through memory, some of them transposed. Here each stays in the kernel of its product:

- forward: h = relu(x·W + b), summed in float32 and stored in bfloat16. The last one also gives its share of
  q = h·w + b for each tile of units, and is stored only if a gradient will need it;
- backward: δ_below = (δ·Wᵀ)·(h_below > 0) in bfloat16, with its sum over a tile's rows, the share of a bias's gradient;
- ∂L/∂W = h_belowᵀ·δ, the rows cut into parts if there are few tiles.

The last layer's δ is dq·w·(h > 0): made from h where it is needed, never stored.

For hidden widths in multiples of 64 (`fits`). The kernels are Pallas in its Triton dialect; `interpret` runs them
anywhere, slowly, for tests.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, BFloat16, Float

from score_rl.nets.launching import In, Out, launch, summed

DTYPE = jnp.bfloat16
WIDTH = 64  # what a width is a multiple of, and the most of a sum that is loaded at once
MOST_INPUTS = 128  # of a tile of a weight's gradient: 256 by 256 sums are more than the registers hold
FEWEST_STEPS = 4  # of a sum over rows in one program: what it reads should outweigh the share it writes
RESIDENT = 264  # programs that an H200 works on at once: two for each multiprocessor


class Tiles(NamedTuple):
    """The shape of the kernels' work."""

    rows: int = 128  # of a tile
    units: int = 128  # of a tile, at most
    warps: int = 8
    stages: int = 3  # of the pipeline: how many steps' loads are under way at once
    programs: int = 1  # wanted for a run's sum over rows
    interpret: bool = False


def tiles_for(runs: int) -> Tiles:
    """For so many runs on a device."""
    return Tiles(programs=max(1, RESIDENT // runs))


def fits(weights: tuple[Array, ...]) -> bool:
    """Whether these kernels can do it."""
    if len(weights) < 2 or any(weight.ndim != 3 or weight.dtype != jnp.float32 for weight in weights):
        return False
    return weights[-1].shape[-1] == 1 and all(weight.shape[-1] % WIDTH == 0 for weight in weights[:-1])


# -- inside the kernels ----------------------------------------------------------------------------------------------


def _sum_of_steps(length: int, product: Callable[[Any], Array]) -> Array:
    """Σ of products over parts of a dimension; a loop, so that loads are under way while products are done."""
    step = min(WIDTH, length)
    if length == step:
        return product(pl.ds(0, step))
    total = jnp.zeros(jax.eval_shape(product, pl.ds(0, step)).shape, jnp.float32)
    return jax.lax.fori_loop(0, length // step, lambda i, total: total + product(pl.ds(i * step, step)), total)


def _where_active(hidden: Array, value: Array) -> Array:
    return jnp.where(hidden > 0, value.astype(DTYPE), jnp.zeros((), DTYPE))


def _layer_kernel(last: bool, *refs: Any) -> None:
    x_ref, w_ref, b_ref, *rest = refs
    total = _sum_of_steps(w_ref.shape[0], lambda part: plt.dot(x_ref[:, part], w_ref[part, :]))
    hidden = jnp.maximum(total + b_ref[...][None, :], 0)
    out_ref, q_ref, *kept = rest if last else (None, None, *rest)
    if kept:
        kept[0][...] = hidden.astype(DTYPE)
    if last:
        q_ref[...] = jnp.sum(hidden * out_ref[...][None, :], axis=1)


def _pull_kernel(last: bool, masked: bool, *refs: Any) -> None:
    """δ·Wᵀ, and what the ReLU below makes of it. For the last layer dq·(h > 0)·(w·W)ᵀ."""
    above_ref, w_ref, *rest = refs
    if last:
        dq_ref, *rest = rest

    def product(part: Any) -> Array:
        above = above_ref[:, part]
        slope = _where_active(above, jnp.ones(())) if last else above
        return plt.dot(slope, w_ref[:, part], trans_b=True)

    total = _sum_of_steps(w_ref.shape[1], product)
    if not masked:
        rest[0][...] = total * dq_ref[...][:, None] if last else total
        return
    below_ref, delta_ref, bias_ref = rest
    delta = jnp.where(below_ref[...] > 0, total, 0)
    if last:
        delta = delta * dq_ref[...][:, None]
    delta_ref[...] = delta.astype(DTYPE)
    bias_ref[...] = jnp.sum(delta, axis=0)


def _weight_kernel(last: bool, *refs: Any) -> None:
    """h_belowᵀ·δ over some rows. For the last layer (h_belowᵀ·(dq·(h > 0)))·w."""
    below_ref, above_ref, *rest, share_ref = refs

    def product(part: Any) -> Array:
        above = above_ref[part, :]
        slope = _where_active(above, rest[0][part][:, None]) if last else above
        return plt.dot(below_ref[part, :], slope, trans_a=True)

    total = _sum_of_steps(below_ref.shape[0], product)
    share_ref[...] = total * rest[1][...][None, :] if last else total


# -- calling them ----------------------------------------------------------------------------------------------------


class _Last(NamedTuple):
    """What the last hidden layer's δ is made of; below it, δ is an array."""

    hidden: BFloat16[Array, "members rows width"]
    dq: Float[Array, "members rows"]
    w: Float[Array, "members width"]


Slope = _Last | Array


def _tile(width: int, most: int) -> int:
    """The largest power of two that divides a width and is not above `most`."""
    return min(width & -width, most)


def _parts(steps: int, wanted: int) -> int:
    """Into how many equal parts so many steps are cut: the number nearest to what is wanted of those that divide."""
    possible = [n for n in range(1, max(1, steps // FEWEST_STEPS) + 1) if steps % n == 0]
    return min(possible, key=lambda n: max(n / wanted, wanted / n))


def _call(
    tiles: Tiles, kernel: Callable[..., None], grid: tuple[int, ...], ins: Sequence[In], outs: Sequence[Out]
) -> list[Array]:
    return launch(kernel, grid, ins, outs, warps=tiles.warps, stages=tiles.stages, interpret=tiles.interpret)


def _forward(tiles: Tiles, x: Array, weight: Array, bias: Array, last: Array | None, keep: bool) -> list[Array]:
    """The next hidden layer if it is to be kept; before it q without its bias, if this is the last one."""
    (members, fan_in, width), rows = weight.shape, x.shape[-2]
    units = _tile(width, tiles.units)
    shares = width // units
    vector = pl.BlockSpec((None, units), lambda u, r, m: (m, u))
    everyones = pl.BlockSpec((tiles.rows, fan_in), lambda u, r, m: (r, 0))
    own = pl.BlockSpec((None, tiles.rows, fan_in), lambda u, r, m: (m, r, 0))
    ins = [(x, everyones if x.ndim == 2 else own)]
    ins += [(weight, pl.BlockSpec((None, fan_in, units), lambda u, r, m: (m, 0, u))), (bias, vector)]
    outs: list[Out] = []
    if last is not None:
        ins.append((last, vector))
        share = pl.BlockSpec((None, None, tiles.rows), lambda u, r, m: (u, m, r))
        outs.append(((shares, members, rows), jnp.float32, share))
    if keep:
        spec = pl.BlockSpec((None, tiles.rows, units), lambda u, r, m: (m, r, u))
        outs.append(((members, rows, width), DTYPE, spec))
    grid = (shares, rows // tiles.rows, members)
    results = _call(tiles, partial(_layer_kernel, last is not None), grid, ins, outs)
    return results if last is None else [summed(results[0]), *results[1:]]


def _pull(tiles: Tiles, slope: Slope, weight: Array, below: Array | None) -> list[Array]:
    """δ of the layer below and its sum over rows; or, below the first layer, the slope by every member's input."""
    (members, width, fan_out), units = weight.shape, _tile(weight.shape[1], tiles.units)
    if isinstance(slope, _Last):
        weight = (weight * slope.w[:, None, :]).astype(DTYPE)
    above = slope.hidden if isinstance(slope, _Last) else slope
    rows = above.shape[1]
    some = pl.BlockSpec((None, tiles.rows, units), lambda u, r, m: (m, r, u))
    ins = [(above, pl.BlockSpec((None, tiles.rows, fan_out), lambda u, r, m: (m, r, 0)))]
    ins.append((weight, pl.BlockSpec((None, units, fan_out), lambda u, r, m: (m, u, 0))))
    if isinstance(slope, _Last):
        ins.append((slope.dq, pl.BlockSpec((None, tiles.rows), lambda u, r, m: (m, r))))
    grid = (width // units, rows // tiles.rows, members)
    kernel = partial(_pull_kernel, isinstance(slope, _Last), below is not None)
    if below is None:
        return _call(tiles, kernel, grid, ins, [((members, rows, width), jnp.float32, some)])
    ins.append((below, some))
    share = pl.BlockSpec((None, None, units), lambda u, r, m: (r, m, u))
    outs: list[Out] = [((members, rows, width), DTYPE, some), ((grid[1], members, width), jnp.float32, share)]
    delta, biases = _call(tiles, kernel, grid, ins, outs)
    return [delta, summed(biases)]


def _weight_gradient(tiles: Tiles, below: Array, slope: Slope) -> Float[Array, "members fan_in fan_out"]:
    above = slope.hidden if isinstance(slope, _Last) else slope
    (members, rows, fan_out), fan_in = above.shape, below.shape[-1]
    tile_in, tile_out = _tile(fan_in, min(tiles.units, MOST_INPUTS)), _tile(fan_out, tiles.units)
    programs = members * (fan_in // tile_in) * (fan_out // tile_out)
    parts = _parts(rows // WIDTH, -(-tiles.programs // programs))
    group = rows // parts
    everyones = pl.BlockSpec((group, tile_in), lambda o, i, g, m: (g, i))
    own = pl.BlockSpec((None, group, tile_in), lambda o, i, g, m: (m, g, i))
    ins = [(below, everyones if below.ndim == 2 else own)]
    ins.append((above, pl.BlockSpec((None, group, tile_out), lambda o, i, g, m: (m, g, o))))
    if isinstance(slope, _Last):
        ins.append((slope.dq, pl.BlockSpec((None, group), lambda o, i, g, m: (m, g))))
        ins.append((slope.w, pl.BlockSpec((None, tile_out), lambda o, i, g, m: (m, o))))
    share = pl.BlockSpec((None, None, tile_in, tile_out), lambda o, i, g, m: (g, m, i, o))
    grid = (fan_out // tile_out, fan_in // tile_in, parts, members)
    kernel = partial(_weight_kernel, isinstance(slope, _Last))
    return summed(*_call(tiles, kernel, grid, ins, [((parts, members, fan_in, fan_out), jnp.float32, share)]))


def _padding(inputs: int) -> int:
    """Columns of zeros beside the input: up to a power of two, or a multiple of `WIDTH`."""
    return -inputs % WIDTH if inputs > WIDTH else max(16, 1 << (inputs - 1).bit_length()) - inputs


def _prepared(
    tiles: Tiles, weights: Any, x: Float[Array, "rows inputs"]
) -> tuple[list[BFloat16[Array, "members fan_in fan_out"]], BFloat16[Array, "padded_rows padded_inputs"]]:
    """The hidden layers' weights and the input in bfloat16, and as wide and as many as whole tiles ask for."""
    (rows, inputs), hidden = x.shape, [weight.astype(DTYPE) for weight in weights[:-1]]
    padding = _padding(inputs)
    hidden[0] = jnp.pad(hidden[0], ((0, 0), (0, padding), (0, 0)))
    return hidden, jnp.pad(x.astype(DTYPE), ((0, -rows % tiles.rows), (0, padding)))


def _all_layers(
    tiles: Tiles, weights: list[Array], biases: Any, w: Array, x: Array, keep: bool
) -> tuple[Array, list[Array]]:
    """q, and every hidden layer if they are to be kept."""
    hidden, number = [x], len(weights)
    for weight, bias in zip(weights[:-1], biases[: number - 1], strict=True):
        hidden += _forward(tiles, hidden[-1], weight, bias, None, True)
    q, *kept = _forward(tiles, hidden[-1], weights[-1], biases[number - 1], w, keep)
    return q + biases[number], [*hidden[1:], *kept]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _outputs(tiles: Tiles, weights: Any, biases: Any, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
    hidden, prepared = _prepared(tiles, weights, x)
    return _all_layers(tiles, hidden, biases, weights[-1][..., 0], prepared, False)[0][:, : x.shape[0]]


def _outputs_forward(tiles: Tiles, weights: Any, biases: Any, x: Array) -> tuple[Array, Any]:
    hidden, prepared = _prepared(tiles, weights, x)
    w = weights[-1][..., 0]
    q, kept = _all_layers(tiles, hidden, biases, w, prepared, True)
    return q[:, : x.shape[0]], (hidden, w, x.shape, prepared, kept)


def _outputs_backward(tiles: Tiles, saved: Any, dq: Float[Array, "members rows"]) -> tuple[Any, Any, Array]:
    weights, w, (number, inputs), x, hidden = saved
    dq_rows = jnp.pad(dq, ((0, 0), (0, x.shape[0] - number)))
    top = hidden[-1]
    # Both sums are one pass over the last hidden layer.
    d_w = (top.astype(jnp.float32) * dq_rows[..., None]).sum(axis=1)
    d_biases = [w * jnp.where(top > 0, dq_rows[..., None], 0).sum(axis=1), dq.sum(axis=1, keepdims=True)]
    d_weights = [d_w[..., None]]
    slope: Slope = _Last(top, dq_rows, w)
    for weight, below in zip(weights[:0:-1], hidden[-2::-1], strict=True):
        d_weights.insert(0, _weight_gradient(tiles, below, slope))
        slope, d_bias = _pull(tiles, slope, weight, below)
        d_biases.insert(0, d_bias)
    d_weights.insert(0, _weight_gradient(tiles, x, slope)[:, :inputs])
    # Whichever of these gradients nobody asked for, the compiler leaves out.
    (dx,) = _pull(tiles, slope, weights[0], None)
    return tuple(d_weights), tuple(d_biases), dx.sum(axis=0)[:number, :inputs]


_outputs.defvjp(_outputs_forward, _outputs_backward)


def outputs(
    weights: tuple[Array, ...], biases: tuple[Array, ...], x: Float[Array, "rows inputs"], tiles: Tiles
) -> Float[Array, "members rows"]:
    """Every member's only output on every row; differentiable once, by parameters and input."""
    return _outputs(tiles, weights, biases, x)
