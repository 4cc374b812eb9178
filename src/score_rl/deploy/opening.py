"""An exported policy, opened again: the same for all formats."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from score_rl.data.sources.file_trial import refuse_fatal
from score_rl.data.sources.npz_file import read_npz
from score_rl.deploy.onnx_file import INPUT, KEY, check_onnx, refuse_foreign_nodes
from score_rl.deploy.reader import Policy
from score_rl.errors import InputError, not_installed, printable

AGAIN = "export the policy again"
LONGEST_NAME = 1_000  # of a column
KINDS = {"far": "b", "unknown": "b"}  # of NumPy's types; all other outputs are numbers


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
        refuse_foreign_nodes(content, path)
        try:
            import onnxruntime
        except ImportError as error:
            raise not_installed("acting with an ONNX file needs onnxruntime", "export") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # networks of this size are slower with more
        options.log_severity_level = 4  # what goes wrong is raised too
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._names = [output.name for output in self._session.get_outputs()]
        self.about = json.loads(self._session.get_modelmeta().custom_metadata_map[KEY])

    def __call__(self, observations: np.ndarray) -> dict[str, np.ndarray]:
        answer = self._session.run(None, {INPUT: np.asarray(observations, np.float32)})
        return dict(zip(self._names, answer, strict=True))


class CheckedPolicy:
    """A policy whose file somebody else may have written: what it says and answers has the form that it must have."""

    def __init__(self, path: Path, policy: DeployedPolicy) -> None:
        self._path, self._policy = path, policy
        self.about = policy.about
        _refuse_malformed(self.about, path)

    def __call__(self, observations: np.ndarray) -> dict[str, np.ndarray]:
        try:
            answer = self._policy(observations)
        except Exception as error:  # whatever NumPy, onnxruntime or JAX raise on a program that makes no sense
            raise _damaged(
                self._path, f"it cannot compute with {np.shape(observations)} observations", error
            ) from error
        for name, values in answer.items():
            shape = (len(observations), len(self.about["actions"])) if name == "actions" else (len(observations),)
            if np.shape(values) != shape or np.asarray(values).dtype.kind != KINDS.get(name, "f"):
                raise _damaged(self._path, f"its {name} are no array of shape {shape}")
        if "actions" not in answer:
            raise _damaged(self._path, "it gives no actions")
        if not np.isfinite(answer["actions"]).all():
            raise _damaged(self._path, "its actions are not finite")
        return answer


def open_policy(path: Path | str, kind: str | None = None, *, trusted: bool = False) -> DeployedPolicy:
    """The policy in a file that score export wrote; refused if a single bit has changed.

    A `trusted` file was written by whoever opens it. Others act in another process first, which may fail.
    """
    path = Path(path)
    kind = kind or {".onnx": "onnx", ".npz": "numpy", ".stablehlo": "stablehlo"}.get(path.suffix)
    if kind is None:
        raise InputError(f"{path} is not an exported policy: its name ends in none of .onnx, .npz and .stablehlo.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; write one with score export.")
    if not trusted and kind != "stablehlo":
        refuse_fatal(path, "NumPy" if kind == "numpy" else "ONNX", f"score_rl.deploy.policy_trial:act_with_{kind}")
    return open_unguarded(path, kind)


def open_unguarded(path: Path, kind: str) -> DeployedPolicy:
    """In this process, come what may."""
    try:
        return CheckedPolicy(path, _read(path, kind))
    except InputError:
        raise
    except Exception as error:  # whatever onnxruntime, JAX, NumPy and JSON raise
        raise _damaged(path, "it cannot be read", error) from error


def _read(path: Path, kind: str) -> DeployedPolicy:
    if kind == "onnx":
        return OnnxPolicy(path)
    if kind == "stablehlo":
        from score_rl.deploy.stablehlo_file import StablehloPolicy

        return StablehloPolicy(path)
    try:
        read_npz(path)  # refuses what is larger than it can be
    except InputError as error:
        raise _damaged(path, str(error)) from error
    with path.open("rb") as file:  # NumPy leaves a file open that it cannot read
        return Policy(file)


def _refuse_malformed(about: Any, path: Path) -> None:
    """What a policy says of itself is printed, and columns are found and written by it."""
    if not isinstance(about, dict):
        raise _damaged(path, "it does not say what it is")
    for role in ("observations", "actions"):
        columns = about.get(role)
        names = [each.get("name") if isinstance(each, Mapping) else None for each in columns or ()] or [None]
        if not isinstance(columns, list) or not all(_is_name(name) for name in names) or len({*names}) < len(names):
            raise _damaged(path, f"it does not name its {role}")
    if not isinstance(about.get("outputs"), dict | list):
        raise _damaged(path, "it does not say what it gives")


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME


def _damaged(path: Path, problem: str, error: Exception | None = None) -> InputError:
    said = "" if error is None else str(error).partition("\n")[0][:200] or type(error).__name__
    reason = f" ({printable(said)})" if said else ""
    return InputError(f"{path} is damaged, or was not written by score export: {problem}{reason}; {AGAIN}.")
