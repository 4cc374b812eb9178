"""From what a reader found to a data set: its environment, the bounds of its actions, and fewer rows if asked for."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.data.columns import BOUND_TOLERANCE, LEAST_USABLE, ONE_NUMBER, Bounds, bounds_of_list, flat_columns
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.sources.reader import Recording
from score_rl.data.trajectories import end_rows, split_trajectories, spread_rows
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError


def make_from_recording(
    name: str,
    recording: Recording,
    *,
    transitions: int | None = None,
    environment: str | None = None,
    action_bounds: Sequence[float] | None = None,
    least_usable: float = LEAST_USABLE,
) -> Dataset:
    """Complete a recording and check it; `environment` and `action_bounds` override what its source says."""
    columns, notes = flat_columns(recording.columns)
    if environment is None and not recording.names_module:
        _refuse_module(name, recording.environment)
    judged_in = environment or recording.environment or infer_environment(recording.label, columns)
    judged_in = None if judged_in == "none" else judged_in
    stated = recording.action_bounds if environment is None else None
    asked = bounds_of_list(action_bounds, _action_dim(columns)) if action_bounds else None
    bounds = asked or stated or _known_bounds(name, judged_in, columns)
    if transitions is not None:
        columns = _shortened(name, columns, transitions)
    source = {
        **recording.origin,
        "rows": len(columns["rewards"]) if columns["rewards"].ndim else 0,
        **({"notes": notes} if notes else {}),
        **({"transitions": transitions} if transitions is not None else {}),
        **({"stated_action_bounds": [np.atleast_1d(bound).tolist() for bound in stated]} if asked and stated else {}),
    }
    json.dumps(source)  # a source is stored beside every result, so it has to be JSON
    dataset = make_dataset(
        name,
        **columns,
        action_bounds=bounds,
        environment=judged_in,
        source=source,
        labels=recording.labels,
        least_usable=least_usable,
    )
    if recording.recorded is None or transitions is not None:
        return dataset
    if len(recording.recorded.lengths) != len(dataset.trajectories):
        raise InputError(
            f"{name}: metadata/recorded is about {len(recording.recorded.lengths)} trajectories, but there are "
            f"{len(dataset.trajectories)}: remove it."
        )
    return dataclasses.replace(dataset, recorded=recording.recorded)


def infer_environment(label: str, columns: Mapping[str, np.ndarray]) -> str | None:
    """The task whose name is in the label and whose dimensions the columns have; None if there is none."""
    plain = label.lower().replace("_", "").replace("-", "")
    for task in TASKS.values():
        if task.name in plain and _widths(columns) == (task.observation_dim, task.action_dim):
            return task.name
    return None


def _refuse_module(name: str, environment: str | None) -> None:
    """A Gymnasium id such as "module:Name-v0" runs a module. A file may not ask for that; its user may."""
    if environment is not None and ":" in environment and task_of(environment) is None:
        raise InputError(
            f"{name} names the environment {environment!r}, which would run the module {environment.split(':')[0]!r}: "
            "pass `environment` yourself if that is meant, or none."
        )


def _action_dim(columns: Mapping[str, np.ndarray]) -> int:
    actions = columns["actions"]
    return int(actions.shape[1]) if actions.ndim == 2 else 1


def _widths(columns: Mapping[str, np.ndarray]) -> tuple[int, int] | None:
    observations, actions = columns["observations"], columns["actions"]
    if observations.ndim != 2 or actions.ndim != 2:
        return None
    return observations.shape[1], actions.shape[1]


def _known_bounds(name: str, environment: str | None, columns: Mapping[str, np.ndarray]) -> Bounds:
    if environment is not None:
        return _environment_bounds(name, environment, columns)
    actions = columns["actions"]
    if actions.dtype.kind == "f" and actions.size and np.abs(actions).max() > 1.0 + BOUND_TOLERANCE:
        raise InputError(
            f"{name}: actions reach from {actions.min():g} to {actions.max():g} and the file does not say "
            "between which bounds: store them in metadata/action_low and metadata/action_high, one number for each "
            "action, or pass `action_bounds`, LOW HIGH (for all actions, or for each one after the other)."
        )
    return -1.0, 1.0


def _environment_bounds(name: str, environment: str, columns: Mapping[str, np.ndarray]) -> Bounds:
    """The bounds of the environment, which must have the dimensions of the columns."""
    task = TASKS.get(task_of(environment) or "")
    bounds: Bounds
    if task is not None:
        expected, bounds = (task.observation_dim, task.action_dim), (-1.0, 1.0)
    else:
        from score_rl.envs.making import make_environment

        sample = make_environment(environment, 1)
        expected, bounds = (sample.observation_dim, sample.action_dim), (sample.action_low, sample.action_high)
        sample.close()
    found = _widths(columns)
    if found is not None and found != expected:
        raise InputError(
            f"{name} has {found[0]} observations and {found[1]} actions, but {environment} has {expected[0]} and "
            f"{expected[1]}: name the environment that the data are from."
        )
    return bounds


def _shortened(name: str, columns: Mapping[str, np.ndarray], count: int) -> dict[str, Any]:
    """Evenly spread trajectories, `count` rows in all. One that is cut short ends in a timeout."""
    total = min((len(values) for values in columns.values() if values.ndim), default=0)
    if count > total:
        raise InputError(f"{name} has {total} transitions, but {count} were asked for: ask for at most {total}.")
    misshapen = any(
        values.shape[:1] != (total,) or (key in ONE_NUMBER and values.ndim > 1) for key, values in columns.items()
    )
    if count == total or misshapen:
        return dict(columns)  # all of it, or columns that `make_dataset` refuses
    terminals = columns["terminals"].astype(bool)
    timeouts = columns.get("timeouts", np.zeros(total)).astype(bool)
    marked = columns["trajectory_ends"].astype(bool) if "trajectory_ends" in columns else None
    rows, stopped = spread_rows(split_trajectories(end_rows(terminals, timeouts, marked)), count)
    return {**{key: values[rows] for key, values in columns.items()}, "timeouts": timeouts[rows] | stopped}
