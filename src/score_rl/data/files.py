"""From a D4RL-format file to a data set: which environment it is from, and which bounds its actions have."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.columns import BOUND_TOLERANCE, Bounds, bounds_of_list
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.sources.hdf5 import read_hdf5
from score_rl.data.trajectories import end_rows, split_trajectories, spread_rows
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError


def load_file(
    path: Path,
    *,
    name: str,
    transitions: int | None = None,
    environment: str | None = None,
    action_bounds: Sequence[float] | None = None,
) -> Dataset:
    """Read a file and check it; `environment` and `action_bounds` override what it says of itself."""
    recorded = read_hdf5(path)
    metadata = recorded.metadata
    judged_in = environment or metadata.environment or infer_environment(path.stem, recorded.arrays)
    stated = metadata.action_bounds if environment is None else None
    asked = _asked_bounds(action_bounds, recorded.arrays["actions"]) if action_bounds else None
    bounds = asked or stated or _known_bounds(name, judged_in, recorded.arrays)
    arrays = dict(recorded.arrays)
    if transitions is not None:
        arrays = _shortened(name, arrays, transitions)
    source = {
        "kind": name.partition(":")[0] if ":" in name else "file",
        "path": str(path),
        "bytes": path.stat().st_size,
        "file_sha256": file_checksum(path),
        "rows": len(arrays["rewards"]) if arrays["rewards"].ndim else 0,
        **({"recipe": dict(metadata.recipe)} if metadata.recipe else {}),
        **({"transitions": transitions} if transitions is not None else {}),
        **({"stated_action_bounds": [np.atleast_1d(bound).tolist() for bound in stated]} if asked and stated else {}),
    }
    json.dumps(source)  # a source is stored beside every result, so it has to be JSON
    return make_dataset(name, **arrays, action_bounds=bounds, environment=judged_in, source=source)


def infer_environment(stem: str, arrays: Mapping[str, np.ndarray]) -> str | None:
    """The task whose name is in the file's name and whose dimensions the arrays have; None if there is none."""
    plain = stem.lower().replace("_", "").replace("-", "")
    for task in TASKS.values():
        if task.name in plain and _widths(arrays) == (task.observation_dim, task.action_dim):
            return task.name
    return None


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, computed once for as long as the file stays as it is."""
    status = path.stat()
    return _checksum(path, status.st_size, status.st_mtime_ns)


@lru_cache
def _checksum(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _widths(arrays: Mapping[str, np.ndarray]) -> tuple[int, int] | None:
    observations, actions = arrays["observations"], arrays["actions"]
    if observations.ndim != 2 or actions.ndim != 2:
        return None
    return observations.shape[1], actions.shape[1]


def _asked_bounds(numbers: Sequence[float], actions: np.ndarray) -> Bounds:
    return bounds_of_list(numbers, actions.shape[1] if actions.ndim == 2 else 1)


def _known_bounds(name: str, environment: str | None, arrays: Mapping[str, np.ndarray]) -> Bounds:
    if environment is not None:
        return _environment_bounds(name, environment, arrays)
    actions = arrays["actions"]
    if actions.dtype.kind == "f" and actions.size and np.abs(actions).max() > 1.0 + BOUND_TOLERANCE:
        raise InputError(
            f"{name}: actions reach from {actions.min():g} to {actions.max():g} and the file does not say "
            "between which bounds: store them in metadata/action_low and metadata/action_high, one number for each "
            "action, or pass `action_bounds`, LOW HIGH (for all actions, or for each one after the other)."
        )
    return -1.0, 1.0


def _environment_bounds(name: str, environment: str, arrays: Mapping[str, np.ndarray]) -> Bounds:
    """The bounds of the environment, which must have the file's dimensions."""
    task = TASKS.get(task_of(environment) or "")
    bounds: Bounds
    if task is not None:
        expected, bounds = (task.observation_dim, task.action_dim), (-1.0, 1.0)
    else:
        from score_rl.envs.interface import make_environment

        sample = make_environment(environment, 1)
        expected, bounds = (
            (sample.observation_dim, sample.action_dim),
            (sample.action_low, sample.action_high),
        )
        sample.close()
    found = _widths(arrays)
    if found is not None and found != expected:
        raise InputError(
            f"{name} has {found[0]} observations and {found[1]} actions, but {environment} has {expected[0]} and "
            f"{expected[1]}: name the environment that the data are from."
        )
    return bounds


def _shortened(name: str, arrays: Mapping[str, np.ndarray], count: int) -> dict[str, Any]:
    """Evenly spread trajectories, `count` rows in all. One that is cut short ends in a timeout."""
    total = min((len(values) for values in arrays.values() if values.ndim), default=0)
    if count > total:
        raise InputError(f"{name} has {total} transitions, but {count} were asked for: ask for at most {total}.")
    if count == total or any(values.shape[:1] != (total,) for values in arrays.values()):
        return dict(arrays)  # all of it, or arrays that disagree, which the checks after this will say
    terminals = arrays["terminals"].astype(bool)
    timeouts = arrays.get("timeouts", np.zeros(total)).astype(bool)
    marked = arrays["trajectory_ends"].astype(bool) if "trajectory_ends" in arrays else None
    rows, stopped = spread_rows(split_trajectories(end_rows(terminals, timeouts, marked)), count)
    return {**{key: values[rows] for key, values in arrays.items()}, "timeouts": timeouts[rows] | stopped}
