"""Actors and ensembles of critics as a few GPU kernels instead of dozens.

Their layers are small: 256 rows by 256 units. Left to the compiler, every product, bias, ReLU and reduction
of every layer travels through the GPU's memory, and each is a launch of its own. Here a program of a kernel holds
some of one member's weights in shared memory and takes the rows past them tile by tile:

- forward: both hidden layers and the output, q = W₃·relu(W₂·relu(W₁x + b₁) + b₂) + b₃. A program does some units of
  the second layer and gives its share of q. The hidden layers are written only if the parameters' gradient will need
  them. For a critic's gradient by the input the same pass gives ∂q/∂x = W₁·(W₂·(w₃ ∘ [h₂ > 0]) ∘ [h₁ > 0]), while the
  weights are at hand: q is one number, so all that the loss can add is a factor, ∂L/∂q;
- backward by the parameters: ∂L/∂(pre-activations) of both layers and the first layer's gradient. Its bias comes
  with it: x has a column of ones. Another kernel sums over rows for the second layer's bias and the last weight;
  the second layer's own gradient is a plain product, left to the compiler.

Products take bfloat16 and sum in float32; parameters and gradients are float32. For two hidden layers of one width
of 64, 128 or 256 and at most 16 outputs (`fits`). A critic's one output is done without a product: it would fill a
sixteenth of one. The kernels are Pallas in its Triton dialect; `interpret` runs them anywhere, slowly, for tests.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, BFloat16, Float

from score_rl.nets.kernels.interface import Biases, Weights

DTYPE = jnp.bfloat16
Mode = Literal["value", "slope", "keep"]  # q alone; also ∂q/∂x; also the hidden layers
WIDTHS = (64, 128, 256)
PART = 64  # hidden units per product: a weight is converted and kept in parts of so many
MANY = 16  # what several outputs are filled up to: the least that a product takes


# KiB of shared memory that a program takes on GPUs older or smaller than Hopper, by the columns of the input: with 128
# units, with 64, and with 64 and a single tile of rows. What XLA 0.10 asks for, critics by the input, 256 units.
NEEDS = {32: (168, 104, 36), 64: (208, 144, 72), 128: (272, 208, 144)}
AMPLE = 227  # a Hopper's: there all shapes need less than that


class Tiling(NamedTuple):
    """How the work is cut into programs."""

    rows: int = 64  # in a tile
    groups: int = 1  # programs that share a member's rows: more of them for a small fleet
    units: int = 128  # hidden units for a program
    warps: int = 4
    rounded: bool = True  # the second weight is rounded before the kernels, once for all of them: worth a launch?
    interpret: bool = False


class Fused(NamedTuple):
    """The form for critics and actors of two hidden layers, in a fleet of so many runs on each device."""

    runs: int
    memory: int = AMPLE  # KiB of shared memory that a program may take
    tiling: Tiling | None = None  # this one always; None: the one for the number of networks

    def fits(self, weights: Weights, rows: int) -> bool:
        """Two hidden layers of one width, few outputs, and a tiling that the device has room for."""
        if len(weights) != 3 or any(weight.ndim != 3 or weight.dtype != jnp.float32 for weight in weights):
            return False
        members, inputs, width = weights[0].shape
        hidden = width in WIDTHS and weights[1].shape[1:] == (width, width)
        return hidden and weights[2].shape[-1] <= MANY and self.tiling_for(members, rows, inputs) is not None

    def scalars(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
        return outputs(weights, biases, x, self._tiling_of(weights, x))

    def vectors(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        return outputs(weights, biases, x, self._tiling_of(weights, x)).reshape(x.shape[0], -1)

    def _tiling_of(self, weights: Weights, x: Float[Array, "rows inputs"]) -> Tiling:
        tiling = self.tiling_for(weights[0].shape[0], *x.shape)
        assert tiling is not None, "only what fits is computed"
        return tiling

    def tiling_for(self, members: int, rows: int, inputs: int) -> Tiling | None:
        """The fastest for so many networks of a run that the device has room for, if any."""
        if self.tiling is not None:
            return self.tiling
        wanted, columns = fastest_tiling(self.runs * members), _widened(inputs)
        if columns > max(NEEDS):
            return None
        if self.memory >= AMPLE:
            return wanted
        tile = wanted._replace(units=64, rounded=False, groups=-(-rows // wanted.rows))
        smaller = zip(
            (wanted._replace(units=128), wanted._replace(units=64), tile), NEEDS[max(32, columns)], strict=True
        )
        return next((one for one, needed in smaller if one.units <= wanted.units and needed <= self.memory), None)


def fastest_tiling(networks: int) -> Tiling:
    """For so many networks on a device: enough programs to keep it busy, and no more."""
    if networks >= 60:
        return Tiling()
    return Tiling(groups=2) if networks >= 20 else Tiling(groups=4, units=64, rounded=False)


# -- inside the kernels ----------------------------------------------------------------------------------------------


def _parts(width: int) -> list[Any]:
    return [pl.ds(start, PART) for start in range(0, width, PART)]


def _widened(columns: int) -> int:
    """Of the input with a column of ones: a power of two, and no less than a product takes."""
    return max(16, 1 << columns.bit_length())


def _inputs(ref: Any, tile: Any) -> Array:
    """Rows of the input with a column of ones, then zeros."""
    start, number = jnp.int32(0), ref.shape[1]
    column = jax.lax.broadcasted_iota(jnp.int32, (tile.size, _widened(number)), 1)
    x = plt.load(ref.at[tile, pl.ds(start, _widened(number))], mask=column < number, other=0.0)
    return jnp.where(column == number, 1.0, x).astype(DTYPE)


def _first_weight(ref: Any, bias: Any, units: Any, padded: int) -> Array:
    """Columns of the first layer's weight, the bias for the input's column of ones, zeros up to a power of two."""
    start = jnp.int32(0)  # traced: a slice that reaches over the end is meant, and masked
    row = jax.lax.broadcasted_iota(jnp.int32, (padded, units.size), 0)
    weight = plt.load(ref.at[pl.ds(start, padded), units], mask=row < ref.shape[0], other=0.0)
    return jnp.where(row == ref.shape[0], bias[units][None, :], weight).astype(DTYPE)


def _last_weight(ref: Any, units: Any) -> Array:
    """Rows of the last layer's weight: one number each, or with columns of zeros."""
    if len(ref.shape) == 1:
        return ref[units]
    start = jnp.int32(0)
    mask = jax.lax.broadcasted_iota(jnp.int32, (units.size, MANY), 1) < ref.shape[1]
    return plt.load(ref.at[units, pl.ds(start, MANY)], mask=mask, other=0.0).astype(DTYPE)


def _over_tiles(tiling: Tiling, rows: int, step: Callable[[Any, Any], Any], start: Any) -> Any:
    size = tiling.rows
    return jax.lax.fori_loop(0, rows // size, lambda i, carry: step(pl.ds(i * size, size), carry), start)


def _forward_kernel(tiling: Tiling, mode: Mode, *refs: Any) -> None:
    """Some units of the second layer, all of the first; of what every program computes, each writes some.

    What is small is loaded again for every tile: held throughout, it would take registers that there are not.
    """
    x_ref, w1_ref, b1_ref, w2_ref, b2_ref, w3_ref, q_ref, *more = refs
    (rows, inputs), (width, number) = x_ref.shape, w2_ref.shape
    padded, parts = _widened(inputs), _parts(width)
    first = [_first_weight(w1_ref, b1_ref, units, padded) for units in parts]
    second = [w2_ref[units, :].astype(DTYPE) for units in parts]
    writes = _writers(parts, width // number)

    def step(tile: Any, carry: None) -> None:
        b2, w3 = b2_ref[...], _last_weight(w3_ref, pl.ds(0, number))
        x, layer = _inputs(x_ref, tile), []
        total = jnp.zeros((tiling.rows, number), jnp.float32)
        for units, mine, w1, w2 in zip(parts, writes, first, second, strict=True):
            hidden = jnp.maximum(plt.dot(x, w1), 0).astype(DTYPE)
            if mode == "keep":
                _store_if(mine, more[0], tile, units, hidden)
            layer.append(hidden)
            total += plt.dot(hidden, w2)
        hidden = jnp.maximum(total + b2[None, :], 0)
        if mode == "keep":
            more[1][tile, :] = hidden.astype(DTYPE)
        if w3.ndim == 1:
            q_ref[tile] = jnp.sum(hidden * w3[None, :], axis=1)
        else:
            q_ref[tile, :] = plt.dot(hidden.astype(DTYPE), w3)
        if mode == "slope":
            above = jnp.where(hidden > 0, w3[None, :], 0).astype(DTYPE)
            slope = jnp.zeros((tiling.rows, padded), jnp.float32)
            for hidden, w1, w2 in zip(layer, first, second, strict=True):
                below = jnp.where(hidden > 0, plt.dot(above, w2, trans_b=True), 0).astype(DTYPE)
                slope += plt.dot(below, w1, trans_b=True)
            more[0][tile, :] = slope

    _over_tiles(tiling, rows, step, None)


def _writers(parts: list[Any], shares: int) -> list[Array]:
    """For each part of what all programs of some rows compute, whether this one writes it: each writes as many."""
    return [pl.program_id(2) == number * shares // len(parts) for number in range(len(parts))]


def _store_if(condition: Array, ref: Any, tile: Any, units: Any, value: Array) -> None:
    plt.store(ref.at[tile, units], value, mask=jnp.broadcast_to(condition, value.shape))


def _parameter_kernel(tiling: Tiling, *refs: Any) -> None:
    """Each part of the second layer is loaded just before its product: all at once would take more registers than
    there are. For the same reason the sums over rows are not formed here."""
    x_ref, w2_ref, w3_ref, h1_ref, h2_ref, dq_ref, delta_ref, dw1_ref = refs
    (units, width), single = w2_ref.shape, len(w3_ref.shape) == 1
    parts = _parts(width)
    second, writes = [w2_ref[:, part].astype(DTYPE) for part in parts], _writers(parts, width // units)

    def step(tile: Any, total: Array) -> Array:
        dq = dq_ref[tile] if single else dq_ref[tile, :]
        pulled = jnp.zeros((tiling.rows, units), jnp.float32)
        for part, mine, weight in zip(parts, writes, second, strict=True):
            last = _last_weight(w3_ref, part)
            above = dq[:, None] * last[None, :] if single else plt.dot(dq, last, trans_b=True)
            delta = jnp.where(h2_ref[tile, part] > 0, above, 0).astype(DTYPE)
            _store_if(mine, delta_ref, tile, part, delta)
            pulled += plt.dot(delta, weight, trans_b=True)
        below = jnp.where(h1_ref[tile, :] > 0, pulled, 0).astype(DTYPE)
        return total + plt.dot(_inputs(x_ref, tile), below, trans_a=True)

    dw1_ref[...] = _over_tiles(tiling, x_ref.shape[0], step, jnp.zeros(dw1_ref.shape, jnp.float32))


def _sums_kernel(tiling: Tiling, *refs: Any) -> None:
    """Gradients of some of the second layer's biases and of the last weights behind them."""
    w3_ref, h2_ref, dq_ref, db2_ref, dw3_ref = refs
    (rows, units), single = h2_ref.shape, len(w3_ref.shape) == 1
    w3 = _last_weight(w3_ref, pl.ds(0, units))

    def step(tile: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        biases, last = carry
        h2, dq = h2_ref[tile, :], dq_ref[tile] if single else dq_ref[tile, :]
        above = dq[:, None] * w3[None, :] if single else plt.dot(dq, w3, trans_b=True)
        more = h2.astype(jnp.float32) * dq[:, None] if single else plt.dot(h2, dq, trans_a=True)
        return biases + jnp.where(h2 > 0, above, 0), last + more

    flat = jnp.zeros((tiling.rows, units), jnp.float32)
    biases, last = _over_tiles(tiling, rows, step, (flat, flat if single else jnp.zeros(dw3_ref.shape, jnp.float32)))
    db2_ref[...], dw3_ref[...] = biases.sum(axis=0), last.sum(axis=0) if single else last


# -- calling them ----------------------------------------------------------------------------------------------------


class _Plan:
    """The blocks of each array that a program sees. A program is (member, group of rows, some units)."""

    def __init__(self, tiling: Tiling, members: int, rows: int, width: int) -> None:
        units = min(tiling.units, width)
        self.tiling, self.group, self.units, self.shares = tiling, rows // tiling.groups, units, width // units
        self.grid = (members, tiling.groups, self.shares)

    def rows(self, columns: int) -> pl.BlockSpec:
        """Rows that all members share."""
        return pl.BlockSpec((self.group, columns), lambda member, group, units: (group, 0))

    def member_rows(self, *shape: int) -> pl.BlockSpec:
        zeros = tuple(0 for _ in shape)
        return pl.BlockSpec((None, self.group, *shape), lambda member, group, units: (member, group, *zeros))

    def some_units_of_rows(self) -> pl.BlockSpec:
        return pl.BlockSpec((None, self.group, self.units), lambda member, group, units: (member, group, units))

    def member(self, *shape: int) -> pl.BlockSpec:
        zeros = tuple(0 for _ in shape)
        return pl.BlockSpec((None, *shape), lambda member, group, units: (member, *zeros))

    def some_columns(self, *rows: int) -> pl.BlockSpec:
        zeros = tuple(0 for _ in rows)
        return pl.BlockSpec((None, *rows, self.units), lambda member, group, units: (member, *zeros, units))

    def some_rows(self, *columns: int) -> pl.BlockSpec:
        zeros = tuple(0 for _ in columns)
        return pl.BlockSpec((None, self.units, *columns), lambda member, group, units: (member, units, *zeros))

    def share_of_rows(self, *shape: int) -> pl.BlockSpec:
        """What a program adds to a sum over units."""
        zeros = tuple(0 for _ in shape)
        block = (None, None, self.group, *shape)
        return pl.BlockSpec(block, lambda member, group, units: (units, member, group, *zeros))

    def share_of_columns(self, rows: int) -> pl.BlockSpec:
        """What a program adds to a sum over groups of rows."""
        return pl.BlockSpec((None, None, rows, self.units), lambda member, group, units: (group, member, 0, units))

    def call(self, kernel: Callable[..., None], ins: list[Any], outs: list[Any], *operands: Array) -> list[Array]:
        options: dict[str, Any] = {"interpret": True} if self.tiling.interpret else {}
        if not self.tiling.interpret:
            options["compiler_params"] = plt.CompilerParams(num_warps=self.tiling.warps, num_stages=1)
        return pl.pallas_call(
            kernel,
            grid=self.grid,
            in_specs=ins,
            out_specs=[spec for _, _, spec in outs],
            out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _ in outs],
            **options,
        )(*operands)


def _whole(tiling: Tiling, x: Float[Array, "rows inputs"]) -> Float[Array, "padded_rows inputs"]:
    """With rows up to whole tiles."""
    return jnp.pad(x, ((0, -x.shape[0] % (tiling.rows * tiling.groups)), (0, 0)))


def _summed(shares: Float[Array, "number *rest"]) -> Float[Array, "*rest"]:  # noqa: F821
    return shares[0] if shares.shape[0] == 1 else shares.sum(axis=0)


def _last(weight: Float[Array, "members width outputs"]) -> tuple[Array, tuple[int, ...]]:
    """The last layer's weight as the kernels take it, and the axes that outputs have there: none if there is one."""
    return (weight[..., 0], ()) if weight.shape[-1] == 1 else (weight, (MANY,))


def _second(tiling: Tiling, weight: Float[Array, "members width width"]) -> Array:
    """The second layer's weight as the kernels take it."""
    return weight.astype(DTYPE) if tiling.rounded else weight


def _forward(tiling: Tiling, weights: Any, biases: Any, x: Array, mode: Mode) -> list[Array]:
    w1, w2, w3 = weights
    (members, inputs, width), rows = w1.shape, x.shape[0]
    plan, padded = _Plan(tiling, members, rows, width), _widened(inputs)
    ins = [plan.rows(inputs), plan.member(inputs, width), plan.member(width), plan.some_columns(width)]
    last, filled = _last(w3)
    ins += [plan.some_columns(), plan.some_rows(*last.shape[2:])]
    outs: list[Any] = [((plan.shares, members, rows, *filled), jnp.float32, plan.share_of_rows(*filled))]
    if mode == "slope":
        outs += [((plan.shares, members, rows, padded), jnp.float32, plan.share_of_rows(padded))]
    if mode == "keep":
        hidden = (members, rows, width)
        outs += [(hidden, DTYPE, plan.member_rows(width)), (hidden, DTYPE, plan.some_units_of_rows())]
    operands = (x, w1, biases[0], _second(tiling, w2), biases[1], last)
    shares, *more = plan.call(partial(_forward_kernel, tiling, mode), ins, outs, *operands)
    q = _summed(shares)
    return [q[..., : w3.shape[-1]] + biases[2][:, None] if filled else q + biases[2], *more]


def _sums(tiling: Tiling, last: Array, h2: Array, dq: Array) -> list[Array]:
    (members, rows, width), filled = h2.shape, dq.shape[2:]
    plan = _Plan(tiling._replace(groups=1, units=PART), members, rows, width)
    ins = [plan.some_rows(*last.shape[2:]), plan.some_units_of_rows(), plan.member_rows(*filled)]
    outs = [
        ((members, width), jnp.float32, plan.some_columns()),
        ((members, width, *filled), jnp.float32, plan.some_rows(*filled)),
    ]
    return plan.call(partial(_sums_kernel, tiling), ins, outs, last, h2, dq)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _outputs(
    tiling: Tiling, weights: Any, biases: Any, x: Float[Array, "rows inputs"]
) -> Float[Array, "members rows *outputs"]:
    return _forward(tiling, weights, biases, _whole(tiling, x), "value")[0][:, : x.shape[0]]


class _Kept(NamedTuple):
    """What the gradient by the parameters needs."""

    x: Float[Array, "rows inputs"]
    h1: BFloat16[Array, "members rows width"]
    h2: BFloat16[Array, "members rows width"]


def _is_argument(leaf: Any) -> bool:
    return isinstance(leaf, CustomVJPPrimal)


def _outputs_forward(tiling: Tiling, *arguments: Any) -> tuple[Array, Any]:
    weights, biases, x = jax.tree.map(lambda leaf: leaf.value, arguments, is_leaf=_is_argument)
    by_parameters = any(leaf.perturbed for leaf in jax.tree.leaves(arguments[:2], is_leaf=_is_argument))
    keeps = by_parameters or weights[2].shape[-1] > 1
    whole = _whole(tiling, x)
    q, *more = _forward(tiling, weights, biases, whole, "keep" if keeps else "slope")
    return q[:, : x.shape[0]], (weights, x.shape, _Kept(whole, *more) if keeps else more[0])


def _outputs_backward(tiling: Tiling, saved: Any, dq: Any) -> tuple[Any, Any, Any]:
    (w1, w2, w3), (number, inputs), more = saved
    members, _, width = w1.shape
    last, filled = _last(w3)
    if isinstance(dq, SymbolicZero):
        dq = jnp.zeros(dq.shape, dq.dtype)
    if not isinstance(more, _Kept):
        # Behind a barrier: fused with what follows, the compiler makes a slow reduction of this sum of ten terms.
        slopes = jnp.einsum("mb,smbi->bi", dq, more[:, :, :number, :inputs])
        return None, None, jax.lax.optimization_barrier(slopes)
    x, h1, h2 = more
    rows, padded = x.shape[0], _widened(inputs)
    plan = _Plan(tiling, members, rows, width)
    dq_rows = jnp.pad(dq, ((0, 0), (0, rows - number), *((0, MANY - w3.shape[-1]) for _ in filled)))
    if filled:
        dq_rows = dq_rows.astype(DTYPE)
    hidden = plan.member_rows(width)
    ins = [plan.rows(inputs), plan.some_rows(width), plan.member(*last.shape[1:]), plan.some_units_of_rows(), hidden]
    outs = [
        ((members, rows, width), DTYPE, hidden),
        ((tiling.groups, members, padded, width), jnp.float32, plan.share_of_columns(padded)),
    ]
    operands = (x, _second(tiling, w2), last, h1, h2, dq_rows)
    delta, shares = plan.call(partial(_parameter_kernel, tiling), [*ins, plan.member_rows(*filled)], outs, *operands)
    first = _summed(shares)
    # Summed in float32, stored in bfloat16: the largest array of an update, which Adam only reads.
    dw2 = jnp.einsum("mbi,mbo->mio", h1, delta, preferred_element_type=DTYPE).astype(jnp.float32)
    db2, dw3 = _sums(tiling, last, h2, dq_rows)
    # By the input as well: no method asks for both, and then the compiler leaves this out.
    below = jnp.where(h1 > 0, jnp.einsum("mbo,mio->mbi", delta, w2.astype(DTYPE)), 0)
    dx = jnp.einsum("mbo,mio->bi", below.astype(jnp.float32), w1)[:number]
    d_weights = (first[:, :inputs], dw2, dw3.reshape(members, width, -1)[..., : w3.shape[-1]])
    d_biases = (first[:, inputs], db2, dq.sum(axis=1) if filled else dq.sum(axis=1, keepdims=True))
    return d_weights, d_biases, dx


_outputs.defvjp(_outputs_forward, _outputs_backward, symbolic_zeros=True)


def outputs(
    weights: tuple[Array, ...], biases: tuple[Array, ...], x: Float[Array, "rows inputs"], tiling: Tiling
) -> Float[Array, "members rows *outputs"]:
    """Every member's output on every row, without an axis if it is one; differentiable once, by parameters and
    input."""
    return _outputs(tiling, weights, biases, x)
