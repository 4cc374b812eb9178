"""The one type that everything learns from: a recorded data set, checked once when it is made."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from score_rl.data.episodes import complete_episodes, split_episodes, training_view
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError

BOUND_TOLERANCE = 1e-5  # how far rounding may carry an action over its bound


class EpisodeReturns(NamedTuple):
    """Undiscounted returns of a data set's episodes."""

    values: np.ndarray  # [E] float64, over the whole recorded episode
    complete: np.ndarray  # [E] bool: ran to a terminal or to the environment's step limit


@dataclass(frozen=True)
class Dataset:
    """Transitions in recording order. Made by `make_dataset`, which checks them; the arrays are read-only."""

    name: str
    observations: np.ndarray  # [N, S] float32
    actions: np.ndarray  # [N, A] float32, in the environment's own units
    rewards: np.ndarray  # [N] float32
    next_observations: np.ndarray  # [N, S] float32
    terminals: np.ndarray  # [N] bool: the task ended; the only thing that stops bootstrapping
    timeouts: np.ndarray  # [N] bool: the recording was cut
    episodes: np.ndarray  # [E, 2] int64: start and stop of every episode, the last one possibly partial
    action_low: np.ndarray  # [A] float32
    action_high: np.ndarray  # [A] float32
    environment: str | None  # what to judge a policy in: a locomotion task, a Gymnasium id, or None
    source: Mapping[str, Any]  # JSON-able: where the rows came from
    checksum: str  # SHA-256 over the arrays above, their order, types and shapes
    recorded_returns: EpisodeReturns  # of whole episodes, rows without a next observation included

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def observation_dim(self) -> int:
        return int(self.observations.shape[1])

    @property
    def action_dim(self) -> int:
        return int(self.actions.shape[1])

    def returns(self) -> EpisodeReturns:
        """The undiscounted return of every episode, and which episodes are complete."""
        return self.recorded_returns


def make_dataset(
    name: str,
    *,
    observations: np.ndarray,
    actions: np.ndarray,
    rewards: np.ndarray,
    terminals: np.ndarray,
    timeouts: np.ndarray,
    next_observations: np.ndarray | None = None,
    action_bounds: tuple[np.ndarray | float, np.ndarray | float] = (-1.0, 1.0),
    environment: str | None = None,
    source: Mapping[str, Any] | None = None,
) -> Dataset:
    """Check a recording and turn it into the rows that can be trained on.

    With stored next observations every row stays. Without, they are taken from the following row, and the
    last row of every episode is dropped unless it is terminal (see `episodes.training_view`).
    """
    observations = _matrix(name, "observations", observations)
    actions = _matrix(name, "actions", actions)
    rewards = _vector(name, "rewards", rewards)
    ends, cuts = _flags(name, "terminals", terminals), _flags(name, "timeouts", timeouts)
    columns = {"observations": observations, "actions": actions, "rewards": rewards}
    if next_observations is not None:
        columns["next_observations"] = _matrix(name, "next_observations", next_observations)
    _check_rows(name, {**columns, "terminals": ends, "timeouts": cuts})
    for key, values in columns.items():
        _check_finite(name, key, values)
    low, high = _bounds(name, action_bounds, actions.shape[1])
    _check_actions(name, actions, low, high)
    _check_ends(name, ends, cuts)

    bounds = split_episodes(ends, cuts)
    returns = _episode_returns(bounds, rewards, ends, cuts, environment)
    if next_observations is None:
        view = training_view(ends, cuts)
        if len(view.rows) == 0:
            raise InputError(
                f"{name} has no row with a next observation: every episode is one step cut by a timeout; "
                "store next_observations in the file."
            )
        columns["next_observations"] = observations[view.next_rows]
        columns.update({key: columns[key][view.rows] for key in ("observations", "actions", "rewards")})
        ends, cuts, bounds = ends[view.rows], view.timeouts, view.episodes
        returns = EpisodeReturns(returns.values[view.kept], returns.complete[view.kept])
    arrays = {
        **{key: columns[key] for key in ("observations", "actions", "rewards", "next_observations")},
        "terminals": ends,
        "timeouts": cuts,
        "episodes": bounds,
        "action_low": low,
        "action_high": high,
    }
    return Dataset(
        name=name,
        **{key: _read_only(values) for key, values in arrays.items()},
        environment=environment,
        source=dict(source or {"kind": "arrays"}),
        checksum=content_checksum(arrays),
        recorded_returns=EpisodeReturns(_read_only(returns.values), _read_only(returns.complete)),
    )


def content_checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order given."""
    digest = hashlib.sha256()
    for key, values in arrays.items():
        digest.update(f"{key} {values.dtype.newbyteorder('<').str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def episode_limit(environment: str | None) -> int | None:
    """After how many steps the environment cuts an episode; None where that is not known."""
    task = TASKS.get(task_of(environment or "") or "")
    return None if task is None else task.max_steps


def _episode_returns(
    episodes: np.ndarray, rewards: np.ndarray, ends: np.ndarray, cuts: np.ndarray, environment: str | None
) -> EpisodeReturns:
    values = np.add.reduceat(rewards.astype(np.float64), episodes[:, 0])
    return EpisodeReturns(values, complete_episodes(episodes, ends, cuts, episode_limit(environment)))


def _matrix(name: str, key: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but a matrix of numbers with one row per step is expected: store it so."
        )
    return np.ascontiguousarray(values, dtype=np.float32)


def _vector(name: str, key: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but one number per step is expected: store it so."
        )
    return np.ascontiguousarray(values, dtype=np.float32)


def _flags(name: str, key: str, values: np.ndarray) -> np.ndarray:
    numbers = _vector(name, key, values)
    if not np.isin(numbers, (0.0, 1.0)).all():
        row = int(np.flatnonzero(~np.isin(numbers, (0.0, 1.0)))[0])
        raise InputError(
            f"{name}: {key} holds {numbers[row]:g} in row {row}, but only true and false (1 and 0) are expected: "
            "store it as booleans."
        )
    return numbers.astype(bool)


def _check_rows(name: str, columns: Mapping[str, np.ndarray]) -> None:
    counts = {key: len(values) for key, values in columns.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{key} {count}" for key, count in counts.items())
        raise InputError(f"{name}: the arrays differ in rows ({found}), but every step needs one row in each.")
    if counts["observations"] == 0:
        raise InputError(f"{name} is empty: it has no rows, and at least one transition is needed.")
    stored = columns.get("next_observations")
    if stored is not None and stored.shape != columns["observations"].shape:
        raise InputError(
            f"{name}: next_observations has shape {stored.shape} and observations {columns['observations'].shape}, "
            "but they must be the same."
        )


def _check_finite(name: str, key: str, values: np.ndarray) -> None:
    # The sum is finite only if every value is (or the sum overflows, which the second look settles).
    if np.isfinite(values.sum(dtype=np.float64)):
        return
    bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InputError(
            f"{name}: {key} has NaN or infinite values in {len(rows)} of {len(values)} rows, the first in row "
            f"{rows[0]}: fill the gaps (say, with the value before), or leave out the episodes that have them."
        )


def _bounds(
    name: str, bounds: tuple[np.ndarray | float, np.ndarray | float], width: int
) -> tuple[np.ndarray, np.ndarray]:
    try:
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float32), (width,)).copy() for b in bounds)
    except ValueError:
        shapes = [np.shape(bound) for bound in bounds]
        raise InputError(
            f"{name}: action bounds of shapes {shapes} were given, but the actions have {width} dimensions."
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError(
            f"{name}: the action bounds {low.tolist()} to {high.tolist()} are not finite and ascending: "
            "give a low and a higher number."
        )
    return low, high


def _check_actions(name: str, actions: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    outside = (actions < low - BOUND_TOLERANCE) | (actions > high + BOUND_TOLERANCE)
    if outside.any():
        place = int(np.flatnonzero(outside.any(axis=0))[0])
        rows, column = np.flatnonzero(outside[:, place]), actions[:, place]
        raise InputError(
            f"{name}: action {place} reaches from {column.min():g} to {column.max():g} and leaves its bounds "
            f"{low[place]:g} to {high[place]:g} in {len(rows)} rows, the first in row {rows[0]}: correct those rows, "
            "or the bounds (metadata/action_low and action_high in the file, or --action-bounds)."
        )


def _check_ends(name: str, terminals: np.ndarray, timeouts: np.ndarray) -> None:
    if not (terminals.any() or timeouts.any()):
        raise InputError(
            f"{name} has no terminal and no timeout in {len(terminals)} rows, so its episodes cannot be told apart: "
            "mark the last step of each episode in terminals (the task ended) or timeouts (the recording was cut)."
        )


def _read_only(values: np.ndarray) -> np.ndarray:
    view = values.view()
    view.flags.writeable = False
    return view
