"""An exported policy, opened again: the same for all formats."""

import json
import zipfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from score_rl.deploy.onnx_file import INPUT, KEY, check_onnx
from score_rl.deploy.reader import Policy
from score_rl.errors import InputError, not_installed


class DeployedPolicy(Protocol):
    """What an exported file does."""

    about: dict[str, Any]

    def __call__(self, observations: np.ndarray) -> dict[str, np.ndarray]:
        """Actions, and what is said of them, for (rows, width) observations."""


class OnnxPolicy:
    """Acts with an ONNX file by onnxruntime."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        check_onnx(content, path)
        try:
            import onnxruntime
        except ImportError as error:
            raise not_installed("acting with an ONNX file needs onnxruntime", "export") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # networks of this size are slower with more
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._names = [output.name for output in self._session.get_outputs()]
        self.about = json.loads(self._session.get_modelmeta().custom_metadata_map[KEY])

    def __call__(self, observations: np.ndarray) -> dict[str, np.ndarray]:
        answer = self._session.run(None, {INPUT: np.asarray(observations, np.float32)})
        return dict(zip(self._names, answer, strict=True))


def open_policy(path: Path | str, kind: str | None = None) -> DeployedPolicy:
    """The policy in a file that score export wrote; refused if a single bit has changed."""
    path = Path(path)
    kind = kind or {".onnx": "onnx", ".npz": "numpy", ".stablehlo": "stablehlo"}.get(path.suffix)
    if kind is None:
        raise InputError(f"{path} is not an exported policy: its name ends in none of .onnx, .npz and .stablehlo.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; write one with score export.")
    if kind == "onnx":
        return OnnxPolicy(path)
    if kind == "stablehlo":
        from score_rl.deploy.stablehlo_file import StablehloPolicy

        return StablehloPolicy(path)
    try:
        with path.open("rb") as file:  # NumPy leaves a file open that it cannot read
            return Policy(file)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise InputError(f"{path} was not written by score export ({error}); export the policy again.") from error
    except ValueError as error:  # the checksum, or an array of objects
        raise InputError(f"{path} is damaged, or was not written by score export; export the policy again.") from error
