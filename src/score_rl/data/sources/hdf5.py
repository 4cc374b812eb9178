"""Files in D4RL's format, with or without the optional columns."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.sources.reader import Reader, Recording, Request, file_facts
from score_rl.errors import InputError

REQUIRED = ("observations", "actions", "rewards", "terminals", "timeouts")
OPTIONAL = ("next_observations", "trajectory_ends", "times")


@dataclass(frozen=True)
class Metadata:
    """What a file says of itself."""

    environment: str | None = None
    action_bounds: tuple[np.ndarray, np.ndarray] | None = None
    recipe: Mapping[str, Any] | None = None  # only in files that this library wrote
    labels: Labels = NO_LABELS


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
        f"{path} is not an HDF5 file ({found}), and training reads no other format: score data import makes one of a "
        "table (CSV, Parquet or npz)."
    )


def read_hdf5(path: Path, kind: str) -> Recording:
    """The columns and metadata of a D4RL-format file; `kind` says in stored results what sort of source it is."""
    with open_hdf5(path) as file:
        missing = [key for key in required_keys(file) if key not in file]
        if missing:
            raise InputError(
                f"{path} lacks {', '.join(missing)} (it has {', '.join(sorted(file)) or 'nothing'}): "
                f"a D4RL-format file needs {', '.join(REQUIRED)}."
            )
        columns = {key: read_array(file, key, path) for key in (*REQUIRED, *OPTIONAL) if key in file}
        metadata = read_metadata(file)
    recipe = {"recipe": dict(metadata.recipe)} if metadata.recipe else {}
    return Recording(
        columns,
        origin={"kind": kind, **file_facts(path), **recipe},
        label=path.stem,
        environment=metadata.environment,
        action_bounds=metadata.action_bounds,
        labels=metadata.labels,
    )


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
    return Metadata(_text(file, "environment"), _bounds(file), read_recipe(file), _labels(file))


def write_labels(metadata: Any, labels: Labels) -> None:
    """Store names and units in the open group `metadata`."""
    import h5py

    for key, names in (("observation_names", labels.observations), ("action_names", labels.actions)):
        if names is not None:
            metadata.create_dataset(key, data=list(names), dtype=h5py.string_dtype())
    if labels.units:
        metadata["units"] = json.dumps(dict(labels.units))


def read_recipe(file: Any) -> Mapping[str, Any] | None:
    """How this library made the file; None for any other file."""
    text = _text(file, "recipe")
    try:
        recipe = json.loads(text) if text else None
    except ValueError:
        return None
    return recipe if isinstance(recipe, dict) else None


def _text(file: Any, key: str) -> str | None:
    item = file.get(f"metadata/{key}")
    value = item[()] if hasattr(item, "shape") else None
    return value.decode() if isinstance(value, bytes) else None


def _labels(file: Any) -> Labels:
    units = _text(file, "units")
    return Labels(_names(file, "observation_names"), _names(file, "action_names"), json.loads(units) if units else {})


def _names(file: Any, key: str) -> tuple[str, ...] | None:
    item = file.get(f"metadata/{key}")
    if getattr(item, "ndim", None) != 1:
        return None
    return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in item[()])


def _bounds(file: Any) -> tuple[np.ndarray, np.ndarray] | None:
    keys = ("metadata/action_low", "metadata/action_high")
    if not all(key in file for key in keys):
        return None
    low, high = (np.asarray(file[key][()], dtype=np.float32) for key in keys)
    return low, high


def _read(path: str, request: Request) -> Recording:
    return read_hdf5(Path(path), "file")


READER = Reader(_read)
