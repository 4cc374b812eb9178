"""D4RL's file format: reading any such file, and writing our own recordings in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.policies import SquashedGaussian, write_policy
from score_rl.data.recording import Rows
from score_rl.disk import whole_file
from score_rl.errors import InputError

REQUIRED = ("observations", "actions", "rewards", "terminals", "timeouts")
OPTIONAL = ("next_observations", "trajectory_ends")


@dataclass(frozen=True)
class Metadata:
    """What a file says of itself."""

    environment: str | None = None
    action_bounds: tuple[np.ndarray, np.ndarray] | None = None
    recipe: Mapping[str, Any] | None = None  # only in files that this library wrote


@dataclass(frozen=True)
class RecordedFile:
    """The arrays of a file as they are stored, REQUIRED and, where there, OPTIONAL, and its metadata."""

    arrays: Mapping[str, np.ndarray]
    metadata: Metadata


def open_hdf5(path: Path) -> Any:
    """The file opened for reading, or one sentence on why that cannot be."""
    import h5py

    if not path.exists():
        raise InputError(f"{path} does not exist: give the path of a D4RL-format HDF5 file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the path of a D4RL-format HDF5 file.")
    try:
        readable = h5py.is_hdf5(path)
        if readable:
            return h5py.File(path, "r")
    except OSError as error:
        if "truncated" in str(error):
            raise InputError(
                f"{path} is truncated: it ends before its contents do; fetch or build it again."
            ) from error
        raise InputError(f"{path} cannot be opened as HDF5 ({error}): fetch or build it again.") from error
    size = path.stat().st_size
    found = "empty" if size == 0 else f"{size} bytes of something else"
    raise InputError(
        f"{path} is not an HDF5 file ({found}): no other format is read; docs/data.md shows how to "
        "write any table of logs to one."
    )


def read_hdf5(path: Path) -> RecordedFile:
    """The arrays and metadata of a D4RL-format file."""
    with open_hdf5(path) as file:
        missing = [key for key in required_keys(file) if key not in file]
        if missing:
            raise InputError(
                f"{path} lacks {', '.join(missing)} (it has {', '.join(sorted(file)) or 'nothing'}): "
                f"a D4RL-format file needs {', '.join(REQUIRED)}."
            )
        keys = [key for key in (*REQUIRED, *OPTIONAL) if key in file]
        arrays = {key: read_array(file, key, path) for key in keys}
        return RecordedFile(arrays, read_metadata(file))


def required_keys(file: Any) -> tuple[str, ...]:
    """The keys that an open file needs: a file that marks the ends of its trajectories needs no timeouts."""
    return tuple(key for key in REQUIRED if key != "timeouts" or "trajectory_ends" not in file)


def read_array(file: Any, key: str, path: Path) -> np.ndarray:
    """One array of an open file."""
    import h5py

    if not isinstance(file[key], h5py.Dataset):
        raise InputError(f"{path}: {key} is a group, but an array is expected: store it so.")
    try:
        return np.asarray(file[key][()])
    except OSError as error:
        raise InputError(f"{path}: {key} is damaged ({error}): fetch or build the file again.") from error


def read_metadata(file: Any) -> Metadata:
    """What an open file says of itself."""
    return Metadata(_text(file, "environment"), _bounds(file), read_recipe(file))


def read_recipe(file: Any) -> Mapping[str, Any] | None:
    """How this library made the file; None for any other file."""
    text = _text(file, "recipe")
    try:
        recipe = json.loads(text) if text else None
    except ValueError:
        return None
    return recipe if isinstance(recipe, dict) else None


def write_hdf5(
    path: Path,
    rows: Rows,
    *,
    environment: str,
    action_bounds: tuple[np.ndarray, np.ndarray],
    recipe: Mapping[str, Any],
    policy: SquashedGaussian | None,
) -> None:
    """Write a recording in D4RL's format, whole or not at all."""
    import h5py

    with whole_file(path, rows.nbytes) as temporary, h5py.File(temporary, "w") as file:
        for key, values in rows.stored().items():
            file[key] = values
        metadata = file.create_group("metadata")
        metadata["environment"] = environment
        metadata["action_low"], metadata["action_high"] = action_bounds
        metadata["recipe"] = json.dumps(recipe, indent=1)
        if policy is not None:
            write_policy(metadata.create_group("policy"), policy)


def _text(file: Any, key: str) -> str | None:
    item = file.get(f"metadata/{key}")
    value = item[()] if hasattr(item, "shape") else None
    return value.decode() if isinstance(value, bytes) else None


def _bounds(file: Any) -> tuple[np.ndarray, np.ndarray] | None:
    keys = ("metadata/action_low", "metadata/action_high")
    if not all(key in file for key in keys):
        return None
    low, high = (np.asarray(file[key][()], dtype=np.float32) for key in keys)
    return low, high
