"""Launching a kernel on the arrays of a network's layers: what `layers` and `streamed` share."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from jaxtyping import Array, Float

In = tuple[Array, pl.BlockSpec]
Out = tuple[tuple[int, ...], Any, pl.BlockSpec]


class ProgramShape(NamedTuple):
    """The shape of a kernel's programs."""

    rows: int  # of a tile
    warps: int
    stages: int  # of the pipeline: how many tiles' loads are under way at once
    programs: int  # that an H200 is to work on at once


def launch(
    kernel: Callable[..., None],
    grid: tuple[int, ...],
    ins: Sequence[In],
    outs: Sequence[Out],
    *,
    warps: int,
    stages: int,
    interpret: bool,
) -> list[Array]:
    """Arrays and results, each with its blocks. The first index of a grid is the one that changes fastest."""
    options: dict[str, Any] = {"interpret": True} if interpret else {}
    if not interpret:
        options["compiler_params"] = plt.CompilerParams(num_warps=warps, num_stages=stages)
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[spec for _, spec in ins],
        out_specs=[spec for _, _, spec in outs],
        out_shape=[jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _ in outs],
        **options,
    )(*(operand for operand, _ in ins))


def summed(shares: Float[Array, "number *rest"]) -> Float[Array, "*rest"]:  # noqa: F821
    return shares[0] if shares.shape[0] == 1 else shares.sum(axis=0)
