"""A policy as an ONNX file, which onnxruntime and many controllers run.

Every operation of a `Program` is one of ONNX or a few of them. The file ends with the SHA-256 of all bytes before.
Protobuf lets a message be continued like that, and whoever checks the file needs no library for ONNX.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.deploy.program import Program, Size, Step
from score_rl.errors import InputError, not_installed, printable

OPSET = 18
IR_VERSION = 10
INPUT = "observations"
KEY = "score_rl"  # of the metadata that say what the policy is
# Field 14 of a model, a pair of texts: "sha256" and 64 hexadecimal digits.
TAIL = b"\x72\x4a\x0a\x06sha256\x12\x40"
DIGITS = 64

DIRECT = {
    "absolute": "Abs", "add": "Add", "cos": "Cos", "divide": "Div", "equal": "Equal", "exp": "Exp", "floor": "Floor",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less", "less_equal": "LessOrEqual", "log": "Log",
    "logical_and": "And", "logical_not": "Not", "logical_or": "Or", "matmul": "MatMul", "maximum": "Max",
    "minimum": "Min", "multiply": "Mul", "negative": "Neg", "power": "Pow", "sign": "Sign", "sin": "Sin",
    "sqrt": "Sqrt", "subtract": "Sub", "tanh": "Tanh", "where": "Where",
}  # fmt: skip
REDUCTIONS = {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin"}


def write_onnx(path: Path, program: Program, about: Mapping[str, Any]) -> None:
    """The model and its checksum."""
    body = onnx_bytes(program, about)
    path.write_bytes(body + TAIL + hashlib.sha256(body).hexdigest().encode())


def check_onnx(content: bytes, path: Path | str) -> None:
    """Refuse a file that differs from what was written."""
    body, tail = content[: -len(TAIL) - DIGITS], content[-len(TAIL) - DIGITS :]
    if not tail.startswith(TAIL):
        raise InputError(f"{path} was not written by score export, or is cut off: export the policy again.")
    if hashlib.sha256(body).hexdigest().encode() != tail[len(TAIL) :]:
        raise InputError(f"{path} is damaged: its content does not match its checksum; export the policy again.")


def refuse_foreign_nodes(content: bytes, path: Path | str) -> None:
    """Refuse a model that has more in it than `onnx_bytes` writes.

    Others could keep their numbers in files elsewhere, run code of extensions, or hide programs in programs.
    """
    try:
        import onnx
    except ImportError as error:
        raise not_installed("checking an ONNX file needs onnx", "export") from error
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # protobuf's DecodeError, and what it raises on texts
        raise InputError(f"{path} is damaged: it is no ONNX model; export the policy again.") from error
    graph, inner = model.graph, (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS, onnx.AttributeProto.TENSOR)
    foreign = [node.op_type for node in graph.node if node.domain or node.op_type not in WRITTEN]
    foreign += [node.op_type for node in graph.node for option in node.attribute if option.type in inner]
    foreign += [kept.name for kept in graph.initializer if kept.data_location != onnx.TensorProto.DEFAULT]
    foreign += [kept.name for kept in graph.initializer if kept.external_data]
    foreign += [function.name for function in model.functions] + [each.domain for each in model.opset_import]
    foreign = [printable(name)[:40] for name in foreign if name]
    if foreign or graph.sparse_initializer or [each.name for each in graph.input] != [INPUT]:
        raise InputError(
            f"{path} was not written by score export: it has {', '.join(foreign[:3]) or 'other inputs'} in it, which "
            "no exported policy has; export the policy again."
        )


def onnx_bytes(program: Program, about: Mapping[str, Any]) -> bytes:
    """The model without its checksum."""
    try:
        import onnx
        from onnx import helper
    except ImportError as error:
        raise not_installed("an ONNX file needs onnx", "export") from error
    graph = _Graph(program)
    for step in program.steps:
        graph.add(step)
    widths = {"actions": len(about["actions"])}
    kinds = {"far": onnx.TensorProto.BOOL, "unknown": onnx.TensorProto.BOOL}
    results = []
    for name, number in program.outputs.items():
        graph.node("Identity", [graph.name_of(number)], name)
        shape: list[str | int | None] = ["rows", widths[name]] if name in widths else ["rows"]
        results.append(helper.make_tensor_value_info(name, kinds.get(name, onnx.TensorProto.FLOAT), shape))
    given = helper.make_tensor_value_info(INPUT, onnx.TensorProto.FLOAT, ["rows", len(about["observations"])])
    made = helper.make_graph(graph.nodes, "policy", [given], results, graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="score-rl")
    model.ir_version = IR_VERSION
    helper.set_model_props(model, {KEY: json.dumps(about)})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """Nodes and constants of ONNX, made step by step."""

    def __init__(self, program: Program) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = {0: INPUT}
        self._lists: dict[Any, str] = {}
        for number, value in enumerate(program.constants, start=1):
            self._names[number] = self.constant(value)

    def name_of(self, number: int) -> str:
        return self._names[number]

    def add(self, step: Step) -> None:
        """The nodes of one step."""
        inputs, output = [self._names[number] for number in step.inputs], f"value_{step.output}"
        if step.operation in DIRECT:
            self.node(DIRECT[step.operation], inputs, output)
        elif step.operation in REDUCTIONS:
            axes = self.list_of(step.options["axis"])
            self.node(REDUCTIONS[step.operation], [inputs[0], axes], output, keepdims=0)
        else:
            RULES[step.operation](self, inputs, output, step.options)
        self._names[step.output] = output

    def node(self, kind: str, inputs: Sequence[str], output: str | None = None, **options: Any) -> str:
        from onnx import helper

        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **options))
        return output

    def constant(self, value: np.ndarray) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
        return name

    def list_of(self, numbers: Sequence[int]) -> str:
        """Whole numbers as a constant, each list once."""
        key = tuple(numbers)
        if key not in self._lists:
            self._lists[key] = self.constant(np.asarray(key, np.int64))
        return self._lists[key]

    def sizes(self, shape: Sequence[Size]) -> str:
        """A shape, of which some sizes may grow with the rows."""
        if all(isinstance(size, int) for size in shape):
            return self.list_of([size for size in shape if isinstance(size, int)])
        key = json.dumps(shape)
        if key not in self._lists:
            parts = [self.list_of([size]) if isinstance(size, int) else self._grown(*size) for size in shape]
            self._lists[key] = parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)
        return self._lists[key]

    def _grown(self, slope: int, start: int) -> str:
        key = ("rows", slope, start)
        if "rows" not in self._lists:
            self._lists["rows"] = self.node("Shape", [INPUT], start=0, end=1)
        if key not in self._lists:
            name = self._lists["rows"]
            name = name if slope == 1 else self.node("Mul", [name, self.list_of([slope])])
            self._lists[key] = name if start == 0 else self.node("Add", [name, self.list_of([start])])
        return self._lists[key]


# -- operations that are several of ONNX, or have options --------------------------------------------------------------

Rule = Callable[[_Graph, list[str], str, Mapping[str, Any]], Any]


def _reshape(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
    shape = options["shape"]
    if sum(isinstance(size, list) for size in shape) == 1:  # ONNX finds one size itself
        shape = [-1 if isinstance(size, list) else size for size in shape]
    graph.node("Reshape", [inputs[0], graph.sizes(shape)], output)


def _slice(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
    bounds = [graph.sizes(options[name]) for name in ("starts", "stops")]
    axes = graph.list_of(range(len(options["starts"])))
    graph.node("Slice", [inputs[0], *bounds, axes, graph.list_of(options["steps"])], output)


def _cast(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
    from onnx import helper

    graph.node("Cast", inputs, output, to=helper.np_dtype_to_tensor_dtype(np.dtype(options["dtype"])))


def _take_along(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
    """`GatherElements` wants an index for every element: those of one row serve all its columns."""
    values, places = inputs
    axis, shape = options["axis"], graph.node("Shape", [values])
    rank = graph.list_of([axis])
    one = graph.node("ScatterElements", [shape, rank, graph.list_of([1])])
    spread = graph.node("Expand", [places, one])
    graph.node("GatherElements", [values, spread], output, axis=axis)


def _of_parts(*names: str) -> Rule:
    """One operation after the other, each on what came before."""

    def rule(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
        for name in names[:-1]:
            inputs = [graph.node(name, inputs)]
        graph.node(names[-1], inputs, output)

    return rule


def _with_one(first: str, second: str) -> Rule:
    """Such as log(x + 1)."""

    def rule(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
        one = graph.constant(np.ones((), np.float32))
        if first == "Add":
            graph.node(second, [graph.node("Add", [inputs[0], one])], output)
        else:
            graph.node(second, [graph.node(first, inputs), one], output)

    return rule


def _all_of(kind: str) -> Rule:
    """Whether all are true, or any."""

    def rule(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
        from onnx import TensorProto

        numbers = graph.node("Cast", inputs, to=TensorProto.INT32)
        found = graph.node(kind, [numbers, graph.list_of(options["axis"])], keepdims=0)
        graph.node("Cast", [found], output, to=TensorProto.BOOL)

    return rule


def _extreme(kind: str) -> Rule:
    return lambda graph, inputs, output, options: graph.node(kind, inputs, output, axis=options["axis"], keepdims=0)


def _is_finite(graph: _Graph, inputs: list[str], output: str, options: Mapping[str, Any]) -> None:
    broken = [graph.node(kind, inputs) for kind in ("IsInf", "IsNaN")]
    graph.node("Not", [graph.node("Or", broken)], output)


RULES: dict[str, Rule] = {
    "reshape": _reshape,
    "broadcast_to": lambda graph, inputs, output, options: graph.node(
        "Expand", [inputs[0], graph.sizes(options["shape"])], output
    ),
    "slice": _slice,
    "astype": _cast,
    "concatenate": lambda graph, inputs, output, options: graph.node("Concat", inputs, output, axis=options["axis"]),
    "transpose": lambda graph, inputs, output, options: graph.node("Transpose", inputs, output, perm=options["axes"]),
    "einsum": lambda graph, inputs, output, options: graph.node("Einsum", inputs, output, equation=options["equation"]),
    "take": lambda graph, inputs, output, options: graph.node("Gather", inputs, output, axis=options["axis"]),
    "take_along_axis": _take_along,
    "square": lambda graph, inputs, output, options: graph.node("Mul", [inputs[0], inputs[0]], output),
    "not_equal": _of_parts("Equal", "Not"),
    "log1p": _with_one("Add", "Log"),
    "expm1": _with_one("Exp", "Sub"),
    "isfinite": _is_finite,
    "all": _all_of("ReduceMin"),
    "any": _all_of("ReduceMax"),
    "argmax": _extreme("ArgMax"),
    "argmin": _extreme("ArgMin"),
}
WRITTEN = {  # operations of ONNX that a file of ours has
    *DIRECT.values(), *REDUCTIONS.values(), "Identity", "Shape", "Mul", "Add", "Concat", "Reshape", "Expand", "Slice",
    "Cast", "Transpose", "Einsum", "Gather", "ScatterElements", "GatherElements", "Equal", "Not", "Log", "Exp", "Sub",
    "IsInf", "IsNaN", "Or", "ReduceMin", "ReduceMax", "ArgMax", "ArgMin",
}  # fmt: skip
