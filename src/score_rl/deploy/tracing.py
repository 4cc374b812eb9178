"""A function of JAX written down as a `Program`, for any number of rows.

Whatever does not depend on the input is computed now: networks of a policy that are divided by their norm, the noise
of candidates, masks of dropout. The function is traced twice, with two and with three rows. Sizes that differ grow
with the rows. A function whose steps differ between the two is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from score_rl.deploy.lowering import Untranslatable, write
from score_rl.deploy.program import Program, Size, Step

ROWS = (2, 3)
INLINED = ("pjit", "jit", "custom_jvp_call", "custom_vjp_call", "closed_call", "remat", "checkpoint")
MOST_TURNS = 1000  # of a loop, which is written turn after turn

Function = Callable[[Any], Mapping[str, Any]]  # (rows, width) -> outputs by name, each with a row for every row


class Known(NamedTuple):
    """A value that does not depend on the input."""

    value: Any


def trace(function: Function, width: int) -> Program:
    """The program of a function of (rows, width) numbers."""
    with jax.ensure_compile_time_eval():
        first, second = (_trace(function, rows, width) for rows in ROWS)
    return _merged(first, second).tidied()


def _trace(function: Function, rows: int, width: int) -> Program:
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(jax.ShapeDtypeStruct((rows, width), np.float32))
    names = list(jax.tree.leaves({name: name for name in shapes}))  # in the order in which JAX flattens them
    writer = _Writer()
    found = writer.inline(traced.jaxpr, [Known(value) for value in traced.consts], [0])
    numbers = [writer.numbered(value) for value in found]
    return writer.program(dict(zip(names, numbers, strict=True)))


class _Writer:
    """Writes steps; constants are numbered from -1 downwards until it is known how many there are."""

    def __init__(self) -> None:
        self.constants: list[np.ndarray] = []
        self.steps: list[Step] = []
        self._numbers: dict[int, tuple[Any, int]] = {}  # by identity: a value has one number

    def step(self, operation: str, *inputs: int, **options: Any) -> int:
        self.steps.append(Step(operation, list(inputs), len(self.steps) + 1, options))
        return len(self.steps)

    def constant(self, value: Any) -> int:
        if id(value) not in self._numbers:
            try:
                self.constants.append(np.asarray(value))
            except TypeError as error:
                raise Untranslatable("random numbers") from error
            self._numbers[id(value)] = value, -len(self.constants)
        return self._numbers[id(value)][1]

    def known(self, number: int) -> np.ndarray | None:
        return self.constants[-number - 1] if number < 0 else None

    def numbered(self, value: Any) -> int:
        return self.constant(value.value) if isinstance(value, Known) else int(value)

    def inline(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """What comes out for what goes in: numbers of values, or values that are known."""
        from jax.extend.core import Literal

        values = dict(zip(jaxpr.invars, arguments, strict=True)) | dict(zip(jaxpr.constvars, constants, strict=True))

        def of(variable: Any) -> Any:
            return Known(variable.val) if isinstance(variable, Literal) else values[variable]

        for equation in jaxpr.eqns:
            inputs = [of(variable) for variable in equation.invars]
            values |= zip(equation.outvars, self._equation(equation, inputs), strict=True)
        return [of(variable) for variable in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Any]) -> list[Any]:
        name = equation.primitive.name
        if name in INLINED:
            inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
            return self.inline(getattr(inner, "jaxpr", inner), [Known(c) for c in getattr(inner, "consts", ())], inputs)
        if all(isinstance(value, Known) for value in inputs):
            found = equation.primitive.bind(*(value.value for value in inputs), **equation.params)
            return [Known(value) for value in (found if equation.primitive.multiple_results else [found])]
        if name == "scan":
            return self._unrolled(equation, inputs)
        return list(write(self, [self.numbered(value) for value in inputs], equation))

    def _unrolled(self, equation: Any, inputs: list[Any]) -> list[Any]:
        about = equation.params
        fixed, carried, turns = about["num_consts"], about["num_carry"], about["length"]
        if turns > MOST_TURNS:
            raise Untranslatable(f"a loop of {turns:,} turns")
        constants, carry, lists = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
        shapes = [variable.aval.shape for variable in equation.invars[fixed + carried :]]
        order = range(turns - 1, -1, -1) if about["reverse"] else range(turns)
        inner, rows = about["jaxpr"], []
        for turn in order:
            here = [self._at(value, turn, shape) for value, shape in zip(lists, shapes, strict=True)]
            found = self.inline(inner.jaxpr, [Known(c) for c in inner.consts], [*constants, *carry, *here])
            carry, row = found[:carried], found[carried:]
            rows.append(row)
        if about["reverse"]:
            rows.reverse()
        results = [variable.aval.shape[1:] for variable in equation.outvars[carried:]]
        return [
            *carry,
            *(self._stacked(column, shape) for column, shape in zip(zip(*rows, strict=True), results, strict=True)),
        ]

    def _at(self, value: Any, turn: int, shape: tuple[int, ...]) -> Any:
        if isinstance(value, Known):
            return Known(value.value[turn])
        rest = list(shape[1:])
        part = self.step(
            "slice", value, starts=[turn] + [0] * len(rest), stops=[turn + 1, *rest], steps=[1] * len(shape)
        )
        return self.step("reshape", part, shape=rest)

    def _stacked(self, column: Sequence[Any], shape: tuple[int, ...]) -> Any:
        if all(isinstance(value, Known) for value in column):
            return Known(jax.numpy.stack([value.value for value in column]))
        parts = [self.step("reshape", self.numbered(value), shape=[1, *shape]) for value in column]
        return self.step("concatenate", *parts, axis=0)

    def program(self, outputs: Mapping[str, int]) -> Program:
        shift = len(self.constants)

        def renumbered(number: int) -> int:
            return -number if number < 0 else number + shift if number else 0

        steps = [
            step._replace(inputs=list(map(renumbered, step.inputs)), output=renumbered(step.output))
            for step in self.steps
        ]
        return Program(self.constants, steps, {name: renumbered(number) for name, number in outputs.items()})


# -- two traces make one program ---------------------------------------------------------------------------------------


def _merged(first: Program, second: Program) -> Program:
    """The program of which both are cases."""
    names = [
        [(step.operation, step.inputs, sorted(step.options)) for step in program.steps] for program in (first, second)
    ]
    if names[0] != names[1] or first.outputs != second.outputs:
        raise Untranslatable("other steps for other numbers of rows")
    constants: list[np.ndarray] = []
    grown: dict[int, list[Size]] = {}  # constants that are spread out over the rows, and to which shape
    for number, (a, b) in enumerate(zip(first.constants, second.constants, strict=True)):
        if a.shape == b.shape:
            if not _equal(a, b):
                raise Untranslatable("numbers that depend on how many rows there are")
            constants.append(a)
            continue
        constants.append(_narrowed(a, b))
        grown[number + 1] = [_size(*sizes) for sizes in zip(a.shape, b.shape, strict=True)]
    steps = [
        a._replace(options={name: _option(value, b.options[name]) for name, value in a.options.items()})
        for a, b in zip(first.steps, second.steps, strict=True)
    ]
    return _with_spread_constants(Program(constants, steps, first.outputs), grown)


def _size(a: int, b: int) -> Size:
    """A size with two rows and with three."""
    slope = (b - a) // (ROWS[1] - ROWS[0])
    return a if a == b else [slope, a - slope * ROWS[0]]


def _option(a: Any, b: Any) -> Any:
    if isinstance(a, list):
        return [_option(x, y) for x, y in zip(a, b, strict=True)]
    if isinstance(a, int) and not isinstance(a, bool):
        return _size(a, b)
    if a != b:
        raise Untranslatable("other steps for other numbers of rows")
    return a


def _narrowed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A constant that is the same for every row, once."""
    if a.ndim == b.ndim:
        first = tuple(slice(0, 1) if x != y else slice(None) for x, y in zip(a.shape, b.shape, strict=True))
        narrow = a[first]
        if all(_equal(np.broadcast_to(narrow, whole.shape), whole) for whole in (a, b)):
            return narrow
    raise Untranslatable("numbers that depend on how many rows there are")


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _with_spread_constants(program: Program, grown: Mapping[int, list[Size]]) -> Program:
    """Steps before all others that spread constants over the rows."""
    if not grown:
        return program
    before, more = len(program.constants) + 1, len(grown)
    spread = {number: before + place for place, number in enumerate(grown)}

    def renumbered(number: int) -> int:
        return spread[number] if number in spread else number + more if number >= before else number

    steps = [Step("broadcast_to", [number], spread[number], {"shape": shape}) for number, shape in grown.items()]
    steps += [
        step._replace(inputs=list(map(renumbered, step.inputs)), output=renumbered(step.output))
        for step in program.steps
    ]
    return Program(program.constants, steps, {name: renumbered(number) for name, number in program.outputs.items()})
