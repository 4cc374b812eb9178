"""Hostile exported policies: sound files, changed in their bytes, or in what they say with a checksum that is right.

Whoever writes such a file can compute the checksum too. Every file follows from its seed.
"""

import hashlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from score_rl.deploy.onnx_file import DIGITS, DIRECT, KEY, TAIL
from score_rl.deploy.reader import OPERATIONS
from tests.drills.records import ODD, hostile_bytes, hostile_json

Change = Callable[[bytes, random.Random], bytes]
OTHER_NODES = ("Loop", "If", "Scan", "RandomNormal", "Constant", "Nothing", *DIRECT.values())


def odd_array(values: np.ndarray, rng: random.Random) -> np.ndarray:
    """Another shape, another type, or other numbers."""
    odd: list[Any] = [
        values.astype("f8"), values.astype("i4"), values.reshape(-1), values[..., None], np.full_like(values, np.nan),
        np.full_like(values, 2**30), values[:0] if values.ndim else values, np.zeros((1000, 1000), values.dtype),
        values.T, -values if values.dtype.kind != "b" else ~values, np.array("text"), np.zeros(3, "c8"),
    ]  # fmt: skip
    return np.asarray(rng.choice(odd))


# -- NumPy -------------------------------------------------------------------------------------------------------------


def change_numpy(content: bytes, rng: random.Random) -> bytes:
    """The program, what the policy says of itself, or its numbers; with the checksum of all that."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    kind = rng.choice(["about", "about", "program", "steps", "steps", "constant", "constant", "missing"])
    if kind in ("about", "program"):
        arrays[kind] = np.frombuffer(hostile_json(arrays[kind].tobytes(), rng), np.uint8)
    elif kind == "steps":
        arrays["program"] = np.frombuffer(_other_steps(arrays["program"].tobytes(), rng), np.uint8)
    elif kind == "constant":
        name = rng.choice([name for name in arrays if name.startswith("constant_")])
        arrays[name] = odd_array(arrays[name], rng)
    else:
        arrays.pop(rng.choice(list(arrays)))
    digest = hashlib.sha256()
    constants = [name for name in arrays if name.startswith("constant_")]
    for name in ("about", "program", *sorted(constants, key=lambda name: int(name.partition("_")[2]))):
        if name in arrays:
            digest.update(f"{arrays[name].dtype.str}{arrays[name].shape}".encode() + arrays[name].tobytes())
    if "sha256" in arrays:
        arrays["sha256"] = np.array(digest.hexdigest())
    target = io.BytesIO()
    np.savez(target, allow_pickle=False, **arrays)
    return target.getvalue()


def _other_steps(program: bytes, rng: random.Random) -> bytes:
    """Other operations, inputs and options: those of a program that nobody exported."""
    told = json.loads(program)
    for _ in range(rng.choice([1, 1, 3])):
        step = rng.choice(told["steps"])
        match rng.choice(["operation", "inputs", "options", "size", "outputs"]):
            case "operation":
                step[0] = rng.choice([*OPERATIONS, "__import__", "eval", "fromfile", "save"])
            case "inputs":
                step[1] = [rng.choice([-1, 0, 3, 10**6, "0", None]) for _ in range(rng.choice([0, 1, 2, 3]))]
            case "options":
                step[3] = {rng.choice(["shape", "axis", "dtype", "equation", "out"]): rng.choice(ODD)}
            case "size":
                step[0], step[3] = "broadcast_to", {"shape": [rng.choice([10**7, 10**5, [10**9, 1]]), 10**7]}
            case "outputs":
                told["outputs"] = {rng.choice(["actions", "far", "more"]): rng.choice([0, 1, -1, 10**6, "0", None])}
    return json.dumps(told).encode()


# -- ONNX --------------------------------------------------------------------------------------------------------------


def change_onnx(content: bytes, rng: random.Random) -> bytes:
    model = onnx.load_model_from_string(content[: -len(TAIL) - DIGITS])
    graph = model.graph
    match rng.choice(["node", "node", "drop", "constant", "constant", "elsewhere", "about", "inputs", "size", "names"]):
        case "node":
            rng.choice(graph.node).op_type = rng.choice(OTHER_NODES)
        case "drop":
            del graph.node[rng.randrange(len(graph.node))]
        case "constant":
            kept = rng.choice(graph.initializer)
            values = odd_array(numpy_helper.to_array(kept), rng)
            if values.dtype.kind != "U":
                kept.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), kept.name))
        case "elsewhere":
            kept = rng.choice(graph.initializer)
            kept.ClearField("raw_data")
            kept.data_location = onnx.TensorProto.EXTERNAL
            kept.external_data.add(key="location", value=rng.choice(["/etc/passwd", "../other", "policy.onnx"]))
        case "about":
            for pair in model.metadata_props:
                if pair.key == KEY:
                    pair.value = hostile_json(pair.value.encode(), rng).decode(errors="replace")
        case "inputs":
            node = rng.choice(graph.node)
            node.input[:] = [rng.choice(["observations", "nothing", *node.output, ""]) for _ in node.input]
        case "size":
            sizes = [kept for kept in graph.initializer if kept.data_type == onnx.TensorProto.INT64]
            if sizes:
                kept = rng.choice(sizes)
                large = np.full(tuple(kept.dims), rng.choice([10**5, 10**9, 2**62, -1]), np.int64)
                kept.CopyFrom(numpy_helper.from_array(large, kept.name))
        case "names":
            graph.output[rng.randrange(len(graph.output))].name = rng.choice(["actions", "more", ""])
    body = model.SerializeToString()
    return body + TAIL + hashlib.sha256(body).hexdigest().encode()


def hostile_policy(sound: Path, path: Path, seed: int) -> tuple[str, bool]:
    """Write the file of this seed; what was done, and whether it has a checksum that is right all the same."""
    rng, content = random.Random(seed), sound.read_bytes()
    signed = {".npz": change_numpy, ".onnx": change_onnx}.get(sound.suffix)
    if signed is not None and rng.random() < 0.6:
        path.write_bytes(signed(content, rng))
        return signed.__name__, True
    path.write_bytes(hostile_bytes(content, rng))
    return "bytes", False
