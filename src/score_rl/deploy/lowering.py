"""JAX's operations as NumPy's: one entry for each primitive that policies are made of.

A rule gets a `Writer`, the numbers of the inputs and the equation. It writes steps and returns the number of its
output. `tracing.py` calls the rules.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Untranslatable(Exception):  # noqa: N818
    """There is no rule for what a function does, and what that is."""


class Writer(Protocol):
    """What rules write with."""

    def step(self, operation: str, *inputs: int, **options: Any) -> int:
        """Write one step; the number of its output."""

    def constant(self, value: Any) -> int:
        """The number of a constant."""

    def known(self, number: int) -> np.ndarray | None:
        """The value of a constant; None of what depends on the input."""


Rule = Callable[[Writer, list[int], Any], int]

SAME = {  # primitive: the function of NumPy that does it
    "add": "add",
    "add_any": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "neg": "negative",
    "abs": "absolute",
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
    "expm1": "expm1",
    "sqrt": "sqrt",
    "square": "square",
    "tanh": "tanh",
    "sin": "sin",
    "cos": "cos",
    "pow": "power",
    "sign": "sign",
    "floor": "floor",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
    "is_finite": "isfinite",
}
FLOATS_ONLY = ("div", "log", "log1p", "expm1", "exp", "sqrt", "tanh", "sin", "cos", "pow", "floor")
OF_BOOLEANS = {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_and": "all", "reduce_or": "any"}
IDENTITIES = ("stop_gradient", "copy", "copy_p")


def write(writer: Writer, inputs: list[int], equation: Any) -> list[int]:
    """The steps of one equation; the numbers of its outputs."""
    name = equation.primitive.name
    kinds = [_kind(variable) for variable in (*equation.invars, *equation.outvars)]
    if name in IDENTITIES:
        return inputs[:1]
    if name == "optimization_barrier":
        return inputs
    if name == "split":
        return _split(writer, inputs[0], equation)
    if name in FLOATS_ONLY and kinds[0] != "f":
        raise Untranslatable(f"{name} of whole numbers")
    if name in SAME:
        return [writer.step(SAME[name], *inputs)]
    if name in OF_BOOLEANS and kinds[0] == "b":
        return [writer.step(OF_BOOLEANS[name], *inputs)]
    if name in REDUCTIONS:
        return [writer.step(REDUCTIONS[name], *inputs, axis=list(equation.params["axes"]))]
    if name in RULES:
        return [RULES[name](writer, inputs, equation)]
    raise Untranslatable(name)


def _kind(variable: Any) -> str:
    kind = getattr(variable.aval.dtype, "kind", "V")
    if kind not in "fiub":
        raise Untranslatable(f"numbers of type {variable.aval.dtype}")
    return str(kind)


# -- shapes ------------------------------------------------------------------------------------------------------------


def _reshape(writer: Writer, inputs: list[int], equation: Any) -> int:
    return writer.step("reshape", inputs[0], shape=list(equation.outvars[0].aval.shape))


def _broadcast(writer: Writer, inputs: list[int], equation: Any) -> int:
    shape = list(equation.params["shape"])
    sizes = [1] * len(shape)
    before = equation.invars[0].aval.shape
    for axis, size in zip(equation.params["broadcast_dimensions"], before, strict=True):
        sizes[axis] = size
    number = inputs[0] if sizes == list(before) else writer.step("reshape", inputs[0], shape=sizes)
    return number if sizes == shape else writer.step("broadcast_to", number, shape=shape)


def _slice(writer: Writer, inputs: list[int], equation: Any) -> int:
    starts, stops = list(equation.params["start_indices"]), list(equation.params["limit_indices"])
    steps = list(equation.params["strides"] or [1] * len(starts))
    return writer.step("slice", inputs[0], starts=starts, stops=stops, steps=steps)


def _split(writer: Writer, number: int, equation: Any) -> list[int]:
    axis, sizes = equation.params["axis"], [int(size) for size in equation.params["sizes"]]
    shape = equation.invars[0].aval.shape
    outputs, at = [], 0
    for size in sizes:
        starts, stops = [0] * len(shape), list(shape)
        starts[axis], stops[axis] = at, at + size
        outputs.append(writer.step("slice", number, starts=starts, stops=stops, steps=[1] * len(shape)))
        at += size
    return outputs


def _dynamic_slice(writer: Writer, inputs: list[int], equation: Any) -> int:
    begins = [writer.known(number) for number in inputs[1:]]
    if any(begin is None for begin in begins):
        raise Untranslatable("dynamic_slice at a place that depends on the observation")
    shape, sizes = equation.invars[0].aval.shape, equation.params["slice_sizes"]
    starts = [
        min(max(int(begin), 0), whole - size)  # type: ignore[arg-type]
        for begin, whole, size in zip(begins, shape, sizes, strict=True)
    ]
    stops = [start + size for start, size in zip(starts, sizes, strict=True)]
    return writer.step("slice", inputs[0], starts=starts, stops=stops, steps=[1] * len(starts))


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _one(writer: Writer, equation: Any) -> int:
    return writer.constant(np.ones((), equation.outvars[0].aval.dtype))


def _logistic(writer: Writer, inputs: list[int], equation: Any) -> int:
    one = _one(writer, equation)
    below = writer.step("add", one, writer.step("exp", writer.step("negative", inputs[0])))
    return writer.step("divide", one, below)


def _rsqrt(writer: Writer, inputs: list[int], equation: Any) -> int:
    return writer.step("divide", _one(writer, equation), writer.step("sqrt", inputs[0]))


def _integer_power(writer: Writer, inputs: list[int], equation: Any) -> int:
    exponent = int(equation.params["y"])
    if exponent == 2:
        return writer.step("square", inputs[0])
    return writer.step("power", inputs[0], writer.constant(np.asarray(exponent, equation.invars[0].aval.dtype)))


def _clamp(writer: Writer, inputs: list[int], equation: Any) -> int:
    low, x, high = inputs
    return writer.step("minimum", writer.step("maximum", x, low), high)


def _select(writer: Writer, inputs: list[int], equation: Any) -> int:
    if len(inputs) != 3 or equation.invars[0].aval.dtype != bool:
        raise Untranslatable("a choice among more than two values")
    which, otherwise, chosen = inputs
    return writer.step("where", which, chosen, otherwise)


def _convert(writer: Writer, inputs: list[int], equation: Any) -> int:
    before, after = equation.invars[0].aval.dtype, np.dtype(equation.params["new_dtype"])
    return inputs[0] if before == after else writer.step("astype", inputs[0], dtype=after.name)


def _product(writer: Writer, inputs: list[int], equation: Any) -> int:
    (left_summed, right_summed), (left_kept, right_kept) = equation.params["dimension_numbers"]
    left, right = (variable.aval.ndim for variable in equation.invars)
    lead = len(left_kept)
    ordered = tuple(left_kept) == tuple(right_kept) == tuple(range(lead))
    plain = tuple(left_summed) == (left - 1,) and tuple(right_summed) == (lead,) and right == lead + 2
    if ordered and plain and (lead == 0 or left == lead + 2):
        return writer.step("matmul", *inputs)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    kept, summed = [next(letters) for _ in left_kept], [next(letters) for _ in left_summed]
    sides = []
    for ndim, batch, over in ((left, left_kept, left_summed), (right, right_kept, right_summed)):
        named = dict(zip(batch, kept, strict=True)) | dict(zip(over, summed, strict=True))
        sides.append([named.get(axis) or next(letters) for axis in range(ndim)])
    rest = [letter for side in sides for letter in side if letter not in (*kept, *summed)]
    return writer.step("einsum", *inputs, equation=f"{''.join(sides[0])},{''.join(sides[1])}->{''.join(kept + rest)}")


# -- picking -----------------------------------------------------------------------------------------------------------


def _extreme(function: str) -> Rule:
    def rule(writer: Writer, inputs: list[int], equation: Any) -> int:
        (axis,) = equation.params["axes"]
        found = writer.step(function, inputs[0], axis=int(axis))
        return writer.step("astype", found, dtype=np.dtype(equation.params["index_dtype"]).name)

    return rule


def _gather(writer: Writer, inputs: list[int], equation: Any) -> int:
    """Along one axis, as `x[indices]` and `take_along_axis` do."""
    about, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    values, indices = (variable.aval.shape for variable in equation.invars)
    kept = tuple(about.operand_batching_dims)
    if len(about.start_index_map) != 1 or tuple(about.collapsed_slice_dims) != tuple(about.start_index_map):
        raise Untranslatable("gather of parts")
    (axis,) = about.start_index_map
    whole = [place for place in range(len(values)) if place != axis and place not in kept]
    if indices[-1] != 1 or any(sizes[place] != values[place] for place in whole):
        raise Untranslatable("gather of parts")
    shape = list(equation.outvars[0].aval.shape)
    if not kept:
        places = writer.step("reshape", inputs[1], shape=list(indices[:-1]))
        if list(about.offset_dims) != _offsets(len(values), len(indices) - 1, axis):
            raise Untranslatable("gather into another order")
        return writer.step("take", inputs[0], places, axis=int(axis))
    places_shape = [1] * len(values)
    for place, at in zip(kept, about.start_indices_batching_dims, strict=True):
        places_shape[place] = indices[at]
    free = [size for at, size in enumerate(indices[:-1]) if at not in about.start_indices_batching_dims]
    places_shape[axis] = int(np.prod(free, dtype=int))
    places = writer.step("reshape", inputs[1], shape=places_shape)
    taken = writer.step("take_along_axis", inputs[0], places, axis=int(axis))
    expected = [places_shape[axis] if at == axis else size for at, size in enumerate(values)]
    if [size for size in expected if size != 1] != [size for size in shape if size != 1]:
        raise Untranslatable("gather into another order")
    return taken if expected == shape else writer.step("reshape", taken, shape=shape)


def _offsets(ndim: int, indices: int, axis: int) -> list[int]:
    """Where the other axes stand in the result of `take`."""
    return [place if place < axis else place + indices - 1 for place in range(ndim) if place != axis]


RULES: dict[str, Rule] = {
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "transpose": lambda writer, inputs, equation: writer.step(
        "transpose", inputs[0], axes=list(equation.params["permutation"])
    ),
    "concatenate": lambda writer, inputs, equation: writer.step(
        "concatenate", *inputs, axis=int(equation.params["dimension"])
    ),
    "logistic": _logistic,
    "rsqrt": _rsqrt,
    "integer_pow": _integer_power,
    "clamp": _clamp,
    "select_n": _select,
    "convert_element_type": _convert,
    "dot_general": _product,
    "argmax": _extreme("argmax"),
    "argmin": _extreme("argmin"),
    "gather": _gather,
}
