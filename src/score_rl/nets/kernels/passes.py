"""Many passes with dropout through critics of two hidden layers, all of them on the chip.

A pass takes a row's first hidden layer h, masks m₁ and m₂ of its own for each row, and p, the share of units dropped:

    z = (m₁·h/(1-p))·W₂ + b₂,    q = (m₂·relu(z)/(1-p))·w₃ + b₃

A program holds one member's whole W₂ in shared memory and a tile of rows in registers, and does a share of the passes
with them. Neither masks nor passes ever see memory: what leaves a program is the mean of its q's and the sum of their
squared deviations from it, kept up to date pass by pass (Welford) and put together afterwards (Chan et al.). Under
differentiation the same program also sums up ∂q/∂h = m₁·((m₂·w₃·(z > 0))·W₂ᵀ)/(1-p)²: a row's mean depends on that
row alone, so its gradient is this times the slope of the mean.

Masks come from Philox-2x32 with ten rounds (Salmon et al., 2011; as in Random123), a function of a key and a counter:
the counter says which row and units, pass, layer and member it is for, so neither tiles nor the share of passes change
what is drawn. Its 64 bits decide on the units u, u + W/4, u + W/2 and u + 3W/4 of a row, sixteen bits each as in
`dropout`. These are other random numbers than `jax.random` gives, of the same distribution. Half of all instructions
are the generator's, and one of additions and rotations (Threefry) needs more than twice as many for the same bits.

Products take bfloat16 and sum in float32. The kernel is Pallas in its Triton dialect; `interpret` runs it anywhere,
slowly, for tests.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from score_rl.nets.kernels.interface import Biases, Statistics, Weights
from score_rl.nets.kernels.launching import In, Out, ProgramShape, launch, summed

DTYPE = jnp.bfloat16
WIDTHS = (64, 128, 256)
PARTS = 4  # of a row's units: as many as one call of the generator decides on
COLUMNS = 16  # of w₃ with zeros beside it: the narrowest factor that a product takes
ROUNDS = 10
MULTIPLIER, WEYL = 0xD256D193, 0x9E3779B9


USUAL = ProgramShape(128, 8, 1, 132)  # 64 rows for every four warps keep a product's factors in registers


class DropoutPasses(NamedTuple):
    """The form for critics of two hidden layers with dropout, and the shape of both kernels' programs."""

    runs: int = 1  # on the device, among which its multiprocessors are shared
    values: ProgramShape = USUAL
    slopes: ProgramShape = USUAL  # with ∂q/∂h
    interpret: bool = False

    def fits(self, weights: Weights) -> bool:
        """Two hidden layers of one width that a program can hold, and one output."""
        if len(weights) != 3 or any(weight.ndim != 3 or weight.dtype != jnp.float32 for weight in weights):
            return False
        width = weights[0].shape[-1]
        return width in WIDTHS and weights[1].shape[-1] == width and weights[2].shape[-1] == 1

    def statistics(
        self,
        weights: Weights,
        biases: Biases,
        hidden: Float[Array, "members rows width"],
        key: PRNGKeyArray,
        rate: Float[Array, ""] | float,
        passes: int,
    ) -> Statistics:
        """Mean and variance (divided by passes - 1) of every member's output over passes.

        The mean can be differentiated once, by `hidden`; any other gradient is refused.
        """
        given = _Given(weights[1], biases[1], weights[2][..., 0], jnp.asarray(rate, jnp.float32))
        mean, variance = _statistics(self, passes, given, jax.random.key_data(key), hidden)
        return mean + biases[2], variance


# -- inside the kernels ----------------------------------------------------------------------------------------------


def _instruction(text: str, kinds: str, dtype: Any, *operands: Array, pack: int = 1) -> Array:
    """PTX for each `pack` neighbours in a row."""
    shapes = [jax.ShapeDtypeStruct(operands[0].shape, dtype)]
    (result,) = plt.elementwise_inline_asm(
        text, args=operands, constraints=kinds, pack=pack, result_shape_dtypes=shapes
    )
    return result


def _product(x: UInt32[Array, "..."], interpret: bool) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """The high and the low half of x·MULTIPLIER; on a GPU one instruction."""
    if not interpret:
        wide = _instruction(f"mul.wide.u32 $0, $1, {MULTIPLIER};", "=l,r", np.int64, x.astype(jnp.int32))
        high = _instruction("{ .reg .b32 low; mov.b64 {low, $0}, $1; }", "=r,l", np.int32, wide)
        low = _instruction("{ .reg .b32 high; mov.b64 {$0, high}, $1; }", "=r,l", np.int32, wide)
        return high.astype(jnp.uint32), low.astype(jnp.uint32)
    top, bottom, half = jnp.uint32(MULTIPLIER >> 16), jnp.uint32(MULTIPLIER & 0xFFFF), jnp.uint32(0xFFFF)
    left, right = x >> 16, x & half
    inner = left * bottom + (right * bottom >> 16)
    outer = right * top + (inner & half)
    return left * top + (inner >> 16) + (outer >> 16), x * jnp.uint32(MULTIPLIER)


def random_words(
    key: UInt32[Array, ""], counter: tuple[UInt32[Array, "..."], UInt32[Array, "..."]], interpret: bool
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Philox-2x32."""
    first, second = counter
    for _ in range(ROUNDS):
        high, low = _product(first, interpret)
        first, second = high ^ key ^ second, low
        key = key + jnp.uint32(WEYL)
    return first, second


def _masked(word: Array, limit: Array, h: Array, interpret: bool) -> Array:
    """h where a word is not above the limit."""
    if interpret:
        return jnp.where(word <= limit, h, jnp.zeros((), h.dtype))
    text = """{
        .reg .pred p, q;  .reg .b32 a, b;
        setp.le.u32 p, $1, $3;  setp.le.u32 q, $2, $4;
        selp.b32 a, $5, 0, p;  selp.b32 b, $5, 0, q;
        prmt.b32 $0, a, b, 0x7610;
    }"""
    return _instruction(text, "=r,r,r,r,r,r", DTYPE, word.astype(jnp.int32), limit.astype(jnp.int32), h, pack=2)


def _activated(word: Array, limit: Array, z: Array, interpret: bool) -> Array:
    """relu(z) where a word is not above the limit."""
    if interpret:
        return jnp.where(word <= limit, jnp.maximum(z, 0), 0).astype(DTYPE)
    text = """{
        .reg .pred p, q;  .reg .b32 a, b;
        setp.le.u32 p, $1, $3;  setp.le.u32 q, $2, $4;
        selp.b32 a, $5, 0, p;  selp.b32 b, $6, 0, q;
        cvt.rn.relu.bf16x2.f32 $0, b, a;
    }"""
    return _instruction(text, "=r,r,r,r,r,r,r", DTYPE, word.astype(jnp.int32), limit.astype(jnp.int32), z, pack=2)


class _Shape(NamedTuple):
    """What a kernel is compiled for."""

    rows: int  # of a tile
    width: int
    passes: int
    programs: int  # that share the passes of a tile
    interpret: bool

    @property
    def part(self) -> int:
        return self.width // PARTS

    @property
    def parts(self) -> list[Any]:
        return [pl.ds(number * self.part, self.part) for number in range(PARTS)]

    def share(self, program: Any) -> tuple[Any, Any]:
        """The first pass of a program and the first that is no longer its own."""
        return program * self.passes // self.programs, (program + 1) * self.passes // self.programs


def _kernel(shape: _Shape, sloped: bool, *refs: Any) -> None:
    key_ref, limit_ref, h_ref, w2_ref, b2_ref, w3_ref, same_ref, *rest = refs
    w_ref, mean_ref, squares_ref, slope_ref = rest if sloped else (None, *rest, None)
    tile, program, member = (pl.program_id(axis) for axis in range(3))
    parts, whole = shape.parts, (shape.rows, shape.part)
    limit, low_key, high_key = jnp.broadcast_to(limit_ref[0], whole), key_ref[0], key_ref[1]
    # A product's result lies in registers as the next one's left factor must, and so does whatever is made of it.
    hidden = [plt.dot(h_ref[:, part], same_ref[...]).astype(DTYPE) for part in parts]
    w2 = [[w2_ref[below, above] for above in parts] for below in parts]
    w3 = [w3_ref[part, :] for part in parts]
    row, unit = (jax.lax.broadcasted_iota(jnp.uint32, whole, axis) for axis in range(2))
    place = (tile.astype(jnp.uint32) * shape.rows + row) * shape.part + unit
    zero = jnp.zeros((), DTYPE)

    def bits(number: Any) -> list[Array]:
        counter = place, jnp.broadcast_to(high_key + number, whole)
        words = random_words(low_key, counter, shape.interpret)
        return [aligned for word in words for aligned in (word << 16, word)]

    first, end = shape.share(program)
    if not shape.interpret:
        plt.debug_barrier()  # all weights are there: else every pass waits for them anew, all warps together

    def step(number: Any, carry: Any) -> Any:
        mean, squares, *slopes = carry
        layer = ((member * shape.passes + number) * 2).astype(jnp.uint32)
        below, above = bits(layer), bits(layer + 1)
        masked = [_masked(word, limit, h, shape.interpret) for word, h in zip(below, hidden, strict=True)]
        q, deltas = jnp.zeros((shape.rows, COLUMNS), jnp.float32), []
        for n, (part, word) in enumerate(zip(parts, above, strict=True)):
            z = sum(plt.dot(masked[k], w2[k][n]) for k in range(PARTS)) + b2_ref[part][None, :]
            q = q + plt.dot(_activated(word, limit, z, shape.interpret), w3[n])
            if sloped:
                w = w_ref[part].astype(DTYPE)
                deltas.append(jnp.where((word <= limit) & (z > 0), jnp.broadcast_to(w[None, :], whole), zero))
        for k, word in enumerate(below if sloped else []):
            slopes[k] += jnp.where(
                word <= limit, sum(plt.dot(deltas[n], w2[k][n], trans_b=True) for n in range(PARTS)), 0
            )
        value = jnp.sum(q, axis=1)
        away = value - mean
        mean = mean + away / (number - first + 1).astype(jnp.float32)
        return mean, squares + away * (value - mean), *slopes

    nothing = jnp.zeros(shape.rows, jnp.float32)
    start = nothing, nothing, *(jnp.zeros(whole, jnp.float32) for _ in parts if sloped)
    mean, squares, *slopes = jax.lax.fori_loop(first, end, step, start)
    mean_ref[...], squares_ref[...] = mean, squares
    for part, slope in zip(parts, slopes, strict=False):
        slope_ref[:, part] = slope


# -- calling them ----------------------------------------------------------------------------------------------------


def _programs(tiles: int, passes: int, together: int) -> int:
    """Into how many shares the passes are cut: few rounds of programs, each with the cost of about a pass to begin."""

    def time(programs: int) -> int:
        return -(-tiles * programs // together) * (-(-passes // programs) + 1)

    return min(range(1, passes + 1), key=time)


class _Given(NamedTuple):
    w2: Float[Array, "members width width"]
    b2: Float[Array, "members width"]
    w3: Float[Array, "members width"]
    rate: Float[Array, ""]


def _launched(
    form: DropoutPasses, passes: int, given: _Given, hidden: Array, words: UInt32[Array, "2"], slopes: bool
) -> tuple[Array, Array, Array | None]:
    """Mean and variance over passes without b₃, and the mean's slope by the hidden layer if it is asked for."""
    (members, number, width), launched = hidden.shape, form.slopes if slopes else form.values
    rows, kept = number + -number % launched.rows, 1 - given.rate
    tiles = rows // launched.rows
    programs = _programs(form.runs * members * tiles, passes, launched.programs)
    shape = _Shape(launched.rows, width, passes, programs, form.interpret)
    # kept · 2¹⁶ rounded up, in the upper half of a word, less 1: at 2¹⁶ it wraps to the largest word.
    limit = (jnp.ceil(kept * 2**16).astype(jnp.uint32) << 16) - 1
    scaled = jnp.pad((hidden / kept).astype(DTYPE), ((0, 0), (0, rows - number), (0, 0)))
    vector = pl.BlockSpec((None, width), lambda t, p, m: (m, 0))
    ins: list[In] = [
        (words, pl.BlockSpec((2,), lambda t, p, m: (0,))),
        (limit[None], pl.BlockSpec((1,), lambda t, p, m: (0,))),
        (scaled, pl.BlockSpec((None, launched.rows, width), lambda t, p, m: (m, t, 0))),
        (given.w2.astype(DTYPE), pl.BlockSpec((None, width, width), lambda t, p, m: (m, 0, 0))),
        (given.b2, vector),
        (
            jnp.pad(given.w3.astype(DTYPE)[..., None], ((0, 0), (0, 0), (0, COLUMNS - 1))),
            pl.BlockSpec((None, width, COLUMNS), lambda t, p, m: (m, 0, 0)),
        ),
        (jnp.eye(shape.part, dtype=DTYPE), pl.BlockSpec((shape.part, shape.part), lambda t, p, m: (0, 0))),
    ]
    of_rows: Out = (
        (programs, members, rows),
        jnp.float32,
        pl.BlockSpec((None, None, launched.rows), lambda t, p, m: (p, m, t)),
    )
    outs: list[Out] = [of_rows, of_rows]
    if slopes:
        ins.append((given.w3, vector))
        block = pl.BlockSpec((None, None, launched.rows, width), lambda t, p, m: (p, m, t, 0))
        outs.append(((programs, members, rows, width), jnp.float32, block))
    kernel, grid = partial(_kernel, shape, slopes), (tiles, programs, members)
    results = launch(kernel, grid, ins, outs, warps=launched.warps, stages=1, interpret=form.interpret)
    means, squares, *sums = (result[:, :, :number] for result in results)
    sizes = np.diff([shape.share(program)[0] for program in range(programs + 1)])
    count = jnp.asarray(sizes, jnp.float32)[:, None, None]
    mean = (count * means).sum(axis=0) / passes
    variance = (squares + count * (means - mean[None]) ** 2).sum(axis=0) / (passes - 1)
    slope = summed(sums[0]) / (passes * kept**2) if slopes else None
    return mean / kept, variance / kept**2, slope


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _statistics(form: DropoutPasses, passes: int, given: _Given, words: Array, hidden: Array) -> Statistics:
    mean, variance, _ = _launched(form, passes, given, hidden, words, False)
    return mean, variance


def _statistics_forward(
    form: DropoutPasses, passes: int, given: Any, words: Any, hidden: Any
) -> tuple[Statistics, Array]:
    if any(argument.perturbed for argument in given):
        raise NotImplementedError("many passes on the chip have no gradient by the critics' parameters or the rate")
    plain = _Given(*(argument.value for argument in given))
    mean, variance, slope = _launched(form, passes, plain, hidden.value, words.value, True)
    assert slope is not None
    return (mean, variance), slope


def _statistics_backward(
    form: DropoutPasses, passes: int, slope: Array, slopes: tuple[Any, Any]
) -> tuple[None, None, Array]:
    of_mean, of_variance = slopes
    if not isinstance(of_variance, SymbolicZero):
        raise NotImplementedError("many passes on the chip have no gradient of the variance")
    return None, None, jnp.zeros_like(slope) if isinstance(of_mean, SymbolicZero) else of_mean[..., None] * slope


_statistics.defvjp(_statistics_forward, _statistics_backward, symbolic_zeros=True)
