"""A policy as a list of NumPy instructions: for a process that has physics to do and no use for a compiler.

An action of ten episodes is some ten small operations. Between two steps of physics, starting JAX's compiled program
takes longer than NumPy takes for all of them. A process without JAX also starts sooner and is smaller. It was measured:
"Processes with and without JAX" in docs/performance.md. So acting is traced once, in JAX, and written down: operations,
where their inputs come from, and constants. Whatever depends on the policy alone is done once for a policy, and not for
every step.

Policies that do something which is not in `OPERATIONS` cannot be written down (`NotPortable`): those that draw
candidates and pick one, so far.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np


class NotPortable(Exception):  # noqa: N818
    """There is no instruction for what this policy does."""


class Instruction(NamedTuple):
    operation: str
    inputs: list[int]
    outputs: list[int]
    about: dict[str, Any]


class Instructions(NamedTuple):
    """Values are numbered: the policy's numbers, the observations, the constants, then results in order."""

    numbers: int
    constants: list[np.ndarray]
    steps: list[Instruction]
    output: int

    def to_json(self) -> dict[str, Any]:
        """All but the constants."""
        return {"numbers": self.numbers, "steps": [list(step) for step in self.steps], "output": self.output}

    @classmethod
    def from_json(cls, told: dict[str, Any], constants: Sequence[np.ndarray]) -> "Instructions":
        return cls(told["numbers"], list(constants), [Instruction(*step) for step in told["steps"]], told["output"])

    def policy(self, numbers: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """What acts with these numbers; always on as many observations as were traced."""
        known: dict[int, np.ndarray] = dict(enumerate(numbers))
        known |= {self.numbers + 1 + place: constant for place, constant in enumerate(self.constants)}
        later: list[tuple[Callable[..., Any], list[int], list[int]]] = []
        for operation, inputs, outputs, about in self.steps:
            function = partial(OPERATIONS[operation], **about) if about else OPERATIONS[operation]
            if all(place in known for place in inputs):
                known |= zip(outputs, _several(function(*(known[place] for place in inputs))), strict=True)
            else:
                later.append((function, inputs, outputs))
        places = self.output + 1 if not later else 1 + max(place for _, _, outputs in later for place in outputs)
        start = [known.get(place) for place in range(places)]

        def act(observations: np.ndarray) -> np.ndarray:
            values: list[Any] = start.copy()
            values[self.numbers] = observations
            for function, inputs, outputs in later:
                found = function(*[values[place] for place in inputs])
                if type(found) is list:
                    for place, value in zip(outputs, found, strict=True):
                        values[place] = value
                else:
                    values[outputs[0]] = found
            return values[self.output]

        return act


def _several(found: Any) -> list[np.ndarray]:
    return found if type(found) is list else [found]


# -- the instructions ------------------------------------------------------------------------------------------------


def _broadcast(x: np.ndarray, *, shape: list[int], axes: list[int]) -> np.ndarray:
    sizes = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def _product(x: np.ndarray, y: np.ndarray, *, summed: list[list[int]], kept: list[list[int]]) -> np.ndarray:
    if not kept[0] and summed == [[x.ndim - 1], [0]]:
        return x @ y
    names = iter("abcdefghijklmnopqrstuvwxyz")
    shared = [next(names) for _ in kept[0]]
    both = [next(names) for _ in summed[0]]
    sides = []
    for side, array in enumerate((x, y)):
        letters = dict(zip(kept[side], shared, strict=True)) | dict(zip(summed[side], both, strict=True))
        sides.append([letters.get(axis) or next(names) for axis in range(array.ndim)])
    rest = [letter for side in sides for letter in side if letter not in (*shared, *both)]
    return np.einsum(f"{''.join(sides[0])},{''.join(sides[1])}->{''.join(shared + rest)}", x, y)


def _part(x: np.ndarray, *, starts: list[int], ends: list[int], strides: list[int]) -> np.ndarray:
    return x[tuple(map(slice, starts, ends, strides))]


def _split(x: np.ndarray, *, sizes: list[int], axis: int) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "square": np.square,
    "integer_pow": lambda x, *, power: x**power,
    "convert_element_type": lambda x, *, dtype: x.astype(dtype),
    "reshape": lambda x, *, shape: x.reshape(shape),
    "squeeze": lambda x, *, shape: x.reshape(shape),
    "transpose": lambda x, *, axes: x.transpose(axes),
    "broadcast_in_dim": _broadcast,
    "slice": _part,
    "split": _split,
    "concatenate": lambda *parts, axis: np.concatenate(parts, axis),
    "reduce_sum": lambda x, *, axes: x.sum(tuple(axes), dtype=x.dtype),
    "reduce_max": lambda x, *, axes: x.max(tuple(axes)),
    "dot_general": _product,
}

FLOATS_ONLY = ("div", "exp", "log", "sqrt", "tanh", "logistic")
INLINED = ("pjit", "jit", "custom_jvp_call", "custom_vjp_call", "closed_call")


def _about(name: str, equation: Any) -> dict[str, Any]:
    """An equation's parameters as the instruction takes them."""
    given = equation.params
    match name:
        case "integer_pow":
            return {"power": int(given["y"])}
        case "convert_element_type":
            return {"dtype": np.dtype(given["new_dtype"]).str}
        case "reshape" | "squeeze":
            return {"shape": list(equation.outvars[0].aval.shape)}
        case "transpose":
            return {"axes": list(given["permutation"])}
        case "broadcast_in_dim":
            return {"shape": list(given["shape"]), "axes": list(given["broadcast_dimensions"])}
        case "slice":
            starts, ends = list(given["start_indices"]), list(given["limit_indices"])
            return {"starts": starts, "ends": ends, "strides": list(given["strides"] or [1] * len(starts))}
        case "split":
            return {"sizes": [int(size) for size in given["sizes"]], "axis": int(given["axis"])}
        case "concatenate":
            return {"axis": int(given["dimension"])}
        case "reduce_sum" | "reduce_max":
            return {"axes": list(given["axes"])}
        case "dot_general":
            summed, kept = given["dimension_numbers"]
            return {"summed": [list(axes) for axes in summed], "kept": [list(axes) for axes in kept]}
    return {}


# -- writing them ----------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, inputs: int) -> None:
        self.count = inputs
        self.found: list[np.ndarray] = []  # constants
        self.steps: list[Instruction] = []

    def number(self) -> int:
        self.count += 1
        return self.count - 1

    def constant(self, value: Any) -> int:
        """Numbered from -1 downwards until it is known how many there are."""
        try:
            self.found.append(np.asarray(value))
        except TypeError as error:  # a key for random numbers, of which NumPy knows nothing
            raise NotPortable("random numbers") from error
        return -len(self.found)

    def write(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """What comes out, for what goes in: a number that stands for a value, or the value itself."""
        from jax.extend.core import Literal

        values = dict(zip(jaxpr.invars, arguments, strict=True)) | dict(zip(jaxpr.constvars, constants, strict=True))

        def of(variable: Any) -> Any:
            return _Known(variable.val) if isinstance(variable, Literal) else values[variable]

        for equation in jaxpr.eqns:
            inputs = [of(variable) for variable in equation.invars]
            values |= zip(equation.outvars, self._equation(equation, inputs), strict=True)
        return [of(variable) for variable in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Any]) -> list[Any]:
        name = equation.primitive.name
        if all(isinstance(value, _Known) for value in inputs):
            found = equation.primitive.bind(*(value.value for value in inputs), **equation.params)
            return [_Known(value) for value in (found if equation.primitive.multiple_results else [found])]
        if name in INLINED:
            inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
            return self.write(inner.jaxpr, [_Known(value) for value in inner.consts], inputs)
        kinds = [_kind(variable) for variable in (*equation.invars, *equation.outvars)]
        if name not in OPERATIONS or (name in FLOATS_ONLY and kinds[0] != "f"):
            raise NotPortable(name)
        places = [self.constant(value.value) if isinstance(value, _Known) else value for value in inputs]
        outputs = [self.number() for _ in equation.outvars]
        self.steps.append(Instruction(name, places, outputs, _about(name, equation)))
        return outputs


def _kind(variable: Any) -> str:
    """Of a variable's numbers, as NumPy names kinds; refused where it has none, as for bfloat16 and keys."""
    kind = getattr(variable.aval.dtype, "kind", "V")
    if kind not in "fiub":
        raise NotPortable(f"numbers of type {variable.aval.dtype}")
    return str(kind)


class _Known(NamedTuple):
    """A value that depends on nothing that comes in."""

    value: Any


def write_down(act: Callable[..., Any], numbers: Sequence[Any], observations: Any) -> Instructions:
    """`act(numbers, observations)` for arrays of these shapes."""
    import jax

    traced = jax.make_jaxpr(act)(list(numbers), observations)
    inputs = len(numbers) + 1
    writer = _Writer(inputs)
    with jax.ensure_compile_time_eval():
        (output,) = writer.write(traced.jaxpr, [_Known(value) for value in traced.consts], range(inputs))
    if isinstance(output, _Known):
        raise NotPortable("actions that depend on nothing")
    shift = len(writer.found)

    def renumbered(number: int) -> int:
        if number < 0:
            return inputs - 1 - number
        return number + shift if number >= inputs else number

    steps = [
        step._replace(inputs=list(map(renumbered, step.inputs)), outputs=list(map(renumbered, step.outputs)))
        for step in writer.steps
    ]
    return Instructions(len(numbers), writer.found, steps, renumbered(output))
