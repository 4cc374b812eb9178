"""Arrays and frames as recordings: what `Dataset.from_arrays` and `Dataset.from_frame` are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.data.columns import bound_vectors, bounds_of_list
from score_rl.data.labels import Labels
from score_rl.data.sources.reader import Recording
from score_rl.data.tables.frames import table_of_arrays, table_of_frame
from score_rl.data.tables.importing import FROM_DATA, Options, recording_of_table
from score_rl.data.tables.roles import Roles
from score_rl.errors import InputError, unknown_name

NEEDED = ("observations", "actions", "rewards")
MARKS = ("terminals", "timeouts", "trajectory_ends")
KEYS = (*NEEDED, "next_observations", *MARKS, "episodes", "times")


def frame_recording(frame: Any, name: str, roles: Roles, options: Options) -> Recording:
    """A frame of pandas or polars."""
    return recording_of_table(table_of_frame(frame, name), roles, options)


def arrays_recording(arrays: Mapping[str, Any], name: str, labels: Labels, options: Options) -> Recording:
    """Arrays named as in the file format, with `episodes` and `times` where rows are to be sorted."""
    for key in arrays:
        if key not in KEYS:
            raise unknown_name(f"array in {name}:", key, KEYS)
    given = {key: np.asarray(values) for key, values in arrays.items() if values is not None}
    lacking = [key for key in NEEDED if key not in given]
    if lacking:
        raise InputError(f"{name} lacks {' and '.join(lacking)}; give one row for each step.")
    given = {key: _as_column(values) if key == "rewards" else values for key, values in given.items()}
    for key in ("observations", "actions", "next_observations"):
        if key in given and given[key].ndim == 1:
            given[key] = given[key][:, None]
    if "episodes" in given:
        return _of_episodes(given, name, labels, options)
    return Recording(
        columns=_with_ends(given, name),
        origin={"kind": "arrays"},
        label="",
        environment=options.environment or "none",
        action_bounds=_bounds(given["actions"], name, options),
        labels=labels,
    )


def as_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of columns, where there are any."""
    return None if names is None else tuple(map(str, names))


def _of_episodes(given: Mapping[str, np.ndarray], name: str, labels: Labels, options: Options) -> Recording:
    if "trajectory_ends" in given:
        raise InputError(f"{name} has episodes and trajectory_ends; give one of them.")
    width, actions = given["observations"].shape[1], given["actions"].shape[1]
    roles = Roles(
        observations=tuple(f"observations_{number}" for number in range(width)),
        actions=tuple(f"actions_{number}" for number in range(actions)),
        reward="rewards",
        episode="episodes",
        time="times" if "times" in given else None,
        terminal="terminals" if "terminals" in given else None,
        timeout="timeouts" if "timeouts" in given else None,
        next_observations=tuple(
            f"next_observations_{number}" for number in range(width) if "next_observations" in given
        ),
    )
    recording = recording_of_table(table_of_arrays(given, name, {}), roles, options, kind="arrays")
    return Recording(**{**vars(recording), "labels": labels})


def _with_ends(given: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays, with the ends of trajectories marked in one way or the other."""
    if "timeouts" in given or "trajectory_ends" in given:
        nothing = np.zeros(len(given["rewards"]), dtype=bool)
        return {"terminals": nothing, **given}
    if "next_observations" not in given:
        raise InputError(
            f"{name} does not tell its trajectories apart; give episodes (which row is of which), or mark the last row "
            "of each in timeouts or trajectory_ends."
        )
    observations, following = given["observations"], given["next_observations"]
    terminals = given.get("terminals", np.zeros(len(observations), dtype=bool))
    goes_on = observations.shape == following.shape and (following[:-1] == observations[1:]).all(axis=1)
    ends = np.append(~np.asarray(goes_on, dtype=bool) | (terminals[:-1] == 1), True)
    return {**given, "terminals": terminals, "trajectory_ends": ends}


def _bounds(actions: np.ndarray, name: str, options: Options) -> tuple[np.ndarray, np.ndarray]:
    options.check()
    asked = options.action_bounds
    if asked == FROM_DATA:
        return actions.min(axis=0).astype(np.float32), actions.max(axis=0).astype(np.float32)
    bounds = (-1.0, 1.0) if asked is None or isinstance(asked, str) else bounds_of_list(asked, actions.shape[1])
    return bound_vectors(name, bounds, actions.shape[1])


def _as_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
