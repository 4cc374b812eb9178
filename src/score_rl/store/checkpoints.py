"""Checkpoints: safetensors files with a checksum, there whole or not at all, whenever a process is killed.

best/N.safetensors    in the same way, the policy of one run with the best evaluation, where that was asked for
step-*.safetensors    named arrays; in its header the step, what they are of, and a SHA-256 over all of it
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from score_rl.disk import TOO_MANY_OPEN, too_many_open, write_file
from score_rl.errors import InputError, printable

KEEP = 2  # the newest, and the one before in case the newest is damaged
FREE_AND_RESUME = "what was written before is whole; free some space, then go on with `resume`"
WITH_ABOUT = "step, about, arrays"  # what the checksum is of
CUT = "cut."  # begins the names of what is stored of a window, or an epoch of a stage, that is not done


class DamagedError(Exception):
    """A checkpoint that cannot be trusted, and why."""


class Checkpoint(NamedTuple):
    """What a file holds."""

    step: int
    arrays: dict[str, np.ndarray]
    about: dict[str, Any]  # which runs the arrays are of, and of which algorithm or stage


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree on the host, each named by its path. A random key becomes its raw words."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    raw = {
        jax.tree_util.keystr(path, simple=True, separator="."): jax.random.key_data(leaf) if _is_key(leaf) else leaf
        for path, leaf in leaves
    }
    return {name: np.ascontiguousarray(array) for name, array in jax.device_get(raw).items()}


def from_arrays(arrays: Mapping[str, np.ndarray], shapes: Any) -> Any:
    """The tree that `to_arrays` took apart. `shapes` is its structure, with the shape and type of each leaf."""

    def restore(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if name not in arrays:
            raise DamagedError(f"{name} is missing")
        array = arrays[name]
        if leaf.shape == () and array.shape == (1,):  # as `to_arrays` stores a single number
            array = array.reshape(())
        if _is_key(leaf):
            words = jax.eval_shape(jax.random.key_data, leaf)
            if array.shape != words.shape or array.dtype != words.dtype:
                raise DamagedError(f"{name} is {array.dtype}{array.shape}, expected a random key")
            return jax.random.wrap_key_data(jnp.asarray(array))
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise DamagedError(f"{name} is {array.dtype}{array.shape}, expected {leaf.dtype}{leaf.shape}")
        return array

    return jax.tree_util.tree_map_with_path(restore, shapes)


def row_of(arrays: Mapping[str, np.ndarray], row: int) -> dict[str, np.ndarray]:
    """One run's part of stacked arrays."""
    short = next((name for name, array in arrays.items() if not array.ndim or len(array) <= row), None)
    if short is not None:
        raise DamagedError(f"{short} has shape {arrays[short].shape}, expected a row for each run")
    return {name: array[row] for name, array in arrays.items()}


def prefixed(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with the prefix, under their names without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _digest(arrays: Mapping[str, np.ndarray], step: int, about: str) -> str:
    """Of all that a checkpoint holds. Those of 0.1.0 leave out what they are of; they pass it as ""."""
    digest = hashlib.sha256(f"{step}{about}".encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype}{arrays[name].shape}".encode())
        digest.update(arrays[name].data if arrays[name].size else b"")
    return digest.hexdigest()


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:010d}.safetensors"


def step_of(path: Path) -> int:
    """The update in the name of a checkpoint."""
    return int(path.stem.removeprefix("step-"))


def best_path(folder: Path, position: int) -> Path:
    """Where the best policy of a run is kept: apart from checkpoints, which remove parts of files beside them."""
    return folder / "best" / f"{position}.safetensors"


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def write_arrays(
    path: Path,
    step: int,
    arrays: Mapping[str, np.ndarray],
    about: Mapping[str, Any],
    *,
    if_full: str = FREE_AND_RESUME,
) -> None:
    """Write a file that `load_checkpoint` reads."""
    said = json.dumps(about)
    metadata = {"step": str(step), "sha256": _digest(arrays, step, said), "about": said, "sum": WITH_ABOUT}
    write_file(path, save(dict(arrays), metadata=metadata), if_full=if_full)


def save_checkpoint(folder: Path, step: int, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Path:
    """Write a checkpoint, then remove all but the newest `KEEP`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = checkpoint_path(folder, step)
    write_arrays(path, step, arrays, about)
    for old in checkpoints(folder)[KEEP:]:
        remove_checkpoint(old)
    for part in folder.glob(".*.part"):  # left by a kill during an earlier write
        part.unlink()
    return path


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint. A folder of that name is not ours: it stays."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; `DamagedError` if a single bit differs from what was written."""
    if path.exists() and not path.is_file():
        raise DamagedError("it is a folder" if path.is_dir() else "it is no ordinary file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        if error.errno in TOO_MANY_OPEN:
            raise InputError(too_many_open(path)) from error
        raise DamagedError(printable(str(error))) from error
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError) as error:
        raise DamagedError(printable(str(error))) from error
    try:
        step, stored, about = int(metadata["step"]), metadata["sha256"], json.loads(metadata["about"])
    except (KeyError, ValueError, RecursionError) as error:
        raise DamagedError(f"its header is not a checkpoint's ({printable(str(error))})") from error
    if _digest(arrays, step, metadata["about"] if metadata.get("sum") == WITH_ABOUT else "") != stored:
        raise DamagedError("its content does not match its checksum")
    if not isinstance(about, dict) or step < 0:
        raise DamagedError("its header is not a checkpoint's")
    return Checkpoint(step, arrays, about)
