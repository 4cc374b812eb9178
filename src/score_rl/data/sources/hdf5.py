"""Files in D4RL's format, with or without the optional columns."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.collection.policies import LAYERS
from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.sources.hdf5_file import Hdf5File, open_hdf5
from score_rl.data.sources.reader import Reader, Recording, Request, file_facts
from score_rl.data.trajectories import Recorded, TrajectoryReturns
from score_rl.errors import InputError, printable

REQUIRED = ("observations", "actions", "rewards", "terminals", "timeouts")
METADATA = ("environment", "recipe", "observation_names", "action_names", "units")
OPTIONAL = ("next_observations", "trajectory_ends", "times")


@dataclass(frozen=True)
class Metadata:
    """What a file says of itself."""

    environment: str | None = None
    action_bounds: tuple[np.ndarray, np.ndarray] | None = None
    recipe: Mapping[str, Any] | None = None  # only in files that this library wrote
    labels: Labels = NO_LABELS


def read_hdf5(path: Path, kind: str, *, trusted: bool = False) -> Recording:
    """The columns and metadata of a D4RL-format file; `kind` says in stored results what sort of source it is."""
    with open_hdf5(path, trusted=trusted) as file:
        missing = [key for key in required_keys(file) if key not in file]
        if missing:
            raise InputError(
                f"{path} lacks {', '.join(missing)} (it has {printable(', '.join(file.names())) or 'nothing'}): "
                f"a D4RL-format file needs {', '.join(REQUIRED)}."
            )
        columns = {key: file.array(key) for key in (*REQUIRED, *OPTIONAL) if key in file}
        metadata, recorded = read_metadata(file), _recorded(file)
    recipe = {"recipe": dict(metadata.recipe)} if metadata.recipe else {}
    return Recording(
        columns,
        origin={"kind": kind, **file_facts(path), **recipe},
        label=path.stem,
        environment=metadata.environment,
        action_bounds=metadata.action_bounds,
        labels=metadata.labels,
        recorded=recorded,
    )


def read_everything(path: Path) -> None:
    """Read all that anything here reads of a file, whatever is refused of it: to see whether that ends."""
    with suppress(InputError), open_hdf5(path, trusted=True) as file:
        policy = [f"metadata/policy/{layer}/{part}" for layer in LAYERS for part in ("weight", "bias")]
        for key in (*REQUIRED, *OPTIONAL, *policy, "metadata/policy/log_std_clip"):
            with suppress(InputError):
                file.array(key)
        for key in (*METADATA, "action_low", "action_high"):
            with suppress(InputError):
                file.texts(f"metadata/{key}")
            with suppress(InputError):
                file.array(f"metadata/{key}")
        for key in file.names("infos"):
            with suppress(InputError):
                file.shape(f"infos/{key}")


def required_keys(file: Hdf5File) -> tuple[str, ...]:
    """The keys that an open file needs: a file that marks the ends of its trajectories needs no timeouts."""
    return tuple(key for key in REQUIRED if key != "timeouts" or "trajectory_ends" not in file)


def read_metadata(file: Hdf5File) -> Metadata:
    """What an open file says of itself."""
    environment = _text(file, "environment")
    if environment is not None and not environment.isprintable():
        raise InputError(f"{file.path}: metadata/environment is {environment!r}, which cannot be printed: correct it.")
    return Metadata(environment, _bounds(file), read_recipe(file), _labels(file))


def write_labels(metadata: Any, labels: Labels) -> None:
    """Store names and units in the open group `metadata`."""
    import h5py

    for key, names in (("observation_names", labels.observations), ("action_names", labels.actions)):
        if names is not None:
            metadata.create_dataset(key, data=list(names), dtype=h5py.string_dtype())
    if labels.units:
        metadata["units"] = json.dumps(dict(labels.units))


def write_recorded(metadata: Any, recorded: Recorded) -> None:
    """Store what a recording held before rows were dropped in the open group `metadata`."""
    values, complete = recorded.returns
    group = metadata.create_group("recorded")
    group["returns"], group["complete"] = values, complete
    group["lengths"], group["starts"] = recorded.lengths, recorded.starts
    group["dropped"] = [recorded.dropped_rows, recorded.dropped_trajectories]


def _recorded(file: Hdf5File) -> Recorded | None:
    if "metadata/recorded" not in file:
        return None
    names = ("returns", "complete", "lengths", "starts", "dropped")
    returns, complete, lengths, starts, dropped = (file.array(f"metadata/recorded/{name}") for name in names)
    counts = {values.shape for values in (returns, complete, lengths, starts)}
    if len(counts) > 1 or returns.ndim != 1 or dropped.shape != (2,) or not np.isfinite(returns).all():
        raise InputError(f"{file.path}: metadata/recorded does not say the same of each trajectory: remove it.")
    return Recorded(
        returns=TrajectoryReturns(returns.astype(np.float64), complete.astype(bool)),
        lengths=lengths.astype(np.int64),
        starts=starts.astype(np.int64),
        dropped_rows=int(dropped[0]),
        dropped_trajectories=int(dropped[1]),
    )


def read_recipe(file: Hdf5File) -> Mapping[str, Any] | None:
    """How this library made the file; None for any other file, whatever it calls a recipe."""
    try:
        recipe = json.loads(_text(file, "recipe") or "null")
    except (InputError, ValueError, RecursionError):
        return None
    return recipe if isinstance(recipe, dict) else None


def _text(file: Hdf5File, key: str) -> str | None:
    found = file.texts(f"metadata/{key}")
    if isinstance(found, tuple):
        raise InputError(f"{file.path}: metadata/{key} is a list, but one text is expected: correct or remove it.")
    return found


def _labels(file: Hdf5File) -> Labels:
    return Labels(_names(file, "observation_names"), _names(file, "action_names"), _units(file))


def _units(file: Hdf5File) -> dict[str, str]:
    try:
        units = json.loads(_text(file, "units") or "{}")
    except (ValueError, RecursionError) as error:
        raise _not_names_and_units(file) from error
    if not isinstance(units, dict) or not all(isinstance(unit, str) for unit in units.values()):
        raise _not_names_and_units(file)
    return units


def _not_names_and_units(file: Hdf5File) -> InputError:
    return InputError(f"{file.path}: metadata/units is no JSON object of names and units: correct or remove it.")


def _names(file: Hdf5File, key: str) -> tuple[str, ...] | None:
    found = file.texts(f"metadata/{key}")
    if isinstance(found, str):
        raise InputError(f"{file.path}: metadata/{key} is one text, but a list of names is expected: store it so.")
    return found


def _bounds(file: Hdf5File) -> tuple[np.ndarray, np.ndarray] | None:
    low, high = (f"metadata/action_{end}" for end in ("low", "high"))
    if low not in file and high not in file:
        return None
    if not (low in file and high in file):
        has, lacks = (low, high) if low in file else (high, low)
        raise InputError(f"{file.path} has {has} and lacks {lacks}: store both, or neither.")
    with np.errstate(over="ignore"):  # an infinite bound is refused by name
        return file.array(low).astype(np.float32), file.array(high).astype(np.float32)


def _read(path: str, request: Request) -> Recording:
    return read_hdf5(Path(path), "file")


READER = Reader(_read)
