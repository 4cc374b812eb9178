"""A policy as one .npz file. `reader.py` acts with it and needs nothing but NumPy."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.deploy import reader
from score_rl.deploy.program import Program


def write_npz(path: Path, program: Program, about: Mapping[str, Any]) -> None:
    """Facts and steps as JSON in bytes, and the constants."""
    told, steps = (_as_bytes(part) for part in (about, program.to_json()))
    digest = hashlib.sha256()
    for part in (told, steps, *program.constants):
        digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
    constants = {f"constant_{number}": value for number, value in enumerate(program.constants)}
    with path.open("wb") as file:
        np.savez(file, about=told, program=steps, sha256=np.array(digest.hexdigest()), **constants)  # type: ignore[arg-type]


def reader_text() -> str:
    """The module that reads the file, to be copied."""
    return Path(reader.__file__).read_text()


def _as_bytes(content: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(content).encode(), np.uint8)
