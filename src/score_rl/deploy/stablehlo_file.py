"""A policy as StableHLO, for whoever compiles it: with JAX, IREE or another compiler of OpenXLA.

The file is a zip archive without compression:

    policy.mlirbc    the portable artifact of StableHLO; `main` takes float32 observations of (rows, width)
    policy.jax       the same as `jax.export` wrote it, for CPU, CUDA and TPU
    about.json       names, units, bounds and where the policy comes from
    sha256           of the three, in this order
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from score_rl.errors import InputError

PLATFORMS = ("cpu", "cuda", "tpu")
PARTS = ("policy.mlirbc", "policy.jax", "about.json")


def write_stablehlo(path: Path, function: Callable[[Any], Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Refuses a policy whose computation depends on the number of rows."""
    rows = jax.ShapeDtypeStruct((*jax.export.symbolic_shape("rows"), len(about["observations"])), np.float32)
    try:
        alone = jax.export.export(jax.jit(function), platforms=["cpu"])(rows)
        anywhere = jax.export.export(jax.jit(function), platforms=PLATFORMS)(rows)
    except jax.errors.InconclusiveDimensionOperation as error:
        raise InputError(
            f"{about['title']} computes in another way for other numbers of rows, so it cannot be one StableHLO "
            "program; give `format=onnx` or `format=numpy`."
        ) from error
    order = {"outputs_in_order": sorted(about["outputs"])}  # as JAX flattens a dictionary
    told = json.dumps({**about, **order}).encode()
    contents = (bytes(alone.mlir_module_serialized), bytes(anywhere.serialize()), told)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in zip(PARTS, contents, strict=True):
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.writestr(zipfile.ZipInfo("sha256"), _digest(contents))


class StablehloPolicy:
    """Acts with the file by JAX."""

    def __init__(self, path: Path | str) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                contents = tuple(archive.read(name) for name in PARTS)
                stored = archive.read("sha256").decode()
        except (zipfile.BadZipFile, KeyError) as error:
            raise InputError(f"{path} was not written by score export --format stablehlo ({error}).") from error
        if _digest(contents) != stored:
            raise InputError(f"{path} is damaged: its content does not match its checksum; export the policy again.")
        self.about = json.loads(contents[2])
        self._call = jax.jit(jax.export.deserialize(bytearray(contents[1])).call)

    def __call__(self, observations: np.ndarray) -> dict[str, np.ndarray]:
        answer = self._call(np.asarray(observations, np.float32))
        return {name: np.asarray(value) for name, value in answer.items()}


def _digest(contents: tuple[bytes, ...]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()
