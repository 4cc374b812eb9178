"""The one type that everything learns from: a recorded data set, checked once when it is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float32, Int64

from score_rl.data.checksum import content_checksum
from score_rl.data.columns import (
    LEAST_USABLE,
    Bounds,
    bound_vectors,
    check_least_usable,
    drop_remedy,
    mark_columns,
    number_matrix,
    number_vector,
    require_ascending_times,
    require_ends,
    require_equal_rows,
    require_finite,
    require_inside,
    too_few_left,
)
from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.sources.reader import Recording
from score_rl.data.trajectories import (
    Recorded,
    TrajectoryReturns,
    complete_trajectories,
    end_rows,
    split_trajectories,
    training_view,
)
from score_rl.envs.tasks import step_limit
from score_rl.errors import InputError, count
from score_rl.notebook import html_table


@dataclass(frozen=True)
class Dataset:
    """Transitions in recording order. `make_dataset` makes and checks it; the arrays are read-only."""

    name: str
    observations: Float32[np.ndarray, "rows observation"]
    actions: Float32[np.ndarray, "rows action"]  # in the environment's own units
    rewards: Float32[np.ndarray, " rows"]
    next_observations: Float32[np.ndarray, "rows observation"]
    terminals: Bool[np.ndarray, " rows"]  # nothing follows: the only mark that stops bootstrapping
    timeouts: Bool[np.ndarray, " rows"]  # the recording stopped after this row
    trajectories: Int64[np.ndarray, "trajectories 2"]  # start and stop of the rows that belong together
    action_low: Float32[np.ndarray, " action"]
    action_high: Float32[np.ndarray, " action"]
    environment: str | None  # what to judge a policy in: a locomotion task, a Gymnasium id, or None
    source: Mapping[str, Any]  # JSON-able: where the rows came from
    checksum: str  # SHA-256 over the arrays above, their order, types and shapes
    recorded: Recorded
    labels: Labels = NO_LABELS  # names and units of the columns; not part of the checksum

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        observations: Sequence[str],
        actions: Sequence[str],
        reward: str | None = None,
        cost: str | None = None,
        episode: str | None = None,
        time: str | None = None,
        terminal: str | None = None,
        timeout: str | None = None,
        next_observations: Sequence[str] = (),
        units: Mapping[str, str] | None = None,
        action_bounds: Sequence[float] | Literal["data"] | None = None,
        missing: Literal["error", "forward", "drop"] = "error",
        gap: float | None = None,
        environment: str | None = None,
        name: str = "frame",
    ) -> "Dataset":
        """The data set in a frame of pandas or polars, its rows sorted by `episode` and `time`.

        >>> Dataset.from_frame(logs, observations=["temp*", "flow"], actions=["valve"], reward="r", episode="trip",
        ...                    time="t", action_bounds=[0, 250])

        Args:
            frame: One row is one step: what was measured, the action then taken, the reward for what followed.
            observations: Columns that a policy will see, by name or by a pattern such as "temp*".
            actions: Columns that a policy will decide.
            reward: Column of what the step brought.
            cost: Column of a cost, instead of a reward.
            episode: Column that tells which rows belong together.
            time: Column by which the rows of an episode are sorted.
            terminal: Column that says after which rows nothing follows, or "COLUMN=VALUE".
            timeout: Column that says after which rows the recording stopped, or "COLUMN=VALUE".
            next_observations: Columns of the observations after the step; from the next row unless given.
            units: Units of columns, by name or pattern.
            action_bounds: LOW, HIGH of all actions or of each; "data" takes what was recorded, ±1 unless given.
            missing: What becomes of empty cells: refused, the value before, or the row left out.
            gap: A trajectory ends where the next row comes later than this; in seconds if times are dates.
            environment: A Gymnasium id in which to judge policies, if there is one.
            name: What the data set is called.
        """
        from score_rl.data.tables.importing import Options, roles_of
        from score_rl.data.tables.in_memory import frame_recording

        roles = roles_of(
            observations, actions, next_observations, units, reward=reward, cost=cost, episode=episode, time=time,
            terminal=terminal, timeout=timeout,
        )  # fmt: skip
        return _of_recording(
            name, frame_recording(frame, name, roles, Options(missing, gap, action_bounds, environment))
        )

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Any],
        *,
        observation_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        action_bounds: Sequence[float] | Literal["data"] | None = None,
        environment: str | None = None,
        name: str = "arrays",
    ) -> "Dataset":
        """The data set in a dictionary of arrays, named as in the file format: observations, actions, rewards and more.

        The trajectories are told by "episodes" (one number or name a row; rows are then sorted, by "times" if these
        are given), by marks ("timeouts", "trajectory_ends"), or by where "next_observations" leave the rows.

        >>> Dataset.from_arrays({"observations": s, "actions": a, "rewards": r, "episodes": e, "times": t})

        Args:
            arrays: The columns by name, with equally many rows.
            observation_names: What the columns of the observations are called.
            action_names: What those of the actions are called.
            units: Units of columns by name.
            action_bounds: LOW, HIGH of all actions or of each; "data" takes what was recorded, ±1 unless given.
            environment: A Gymnasium id in which to judge policies, if there is one.
            name: What the data set is called.
        """
        from score_rl.data.tables.importing import Options
        from score_rl.data.tables.in_memory import arrays_recording, as_names

        labels = Labels(as_names(observation_names), as_names(action_names), dict(units or {}))
        options = Options(action_bounds=action_bounds, environment=environment)
        return _of_recording(name, arrays_recording(arrays, name, labels, options))

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {count(len(self), 'row')} in "
            f"{count(len(self.trajectories), 'trajectory', 'trajectories')}, "
            f"{count(self.observation_dim, 'observation')}, {count(self.action_dim, 'action')}, "
            f"environment {self.environment or 'not known'}>"
        )

    def _repr_html_(self) -> str:
        names = self.observation_names or tuple(f"observation {i}" for i in range(self.observation_dim))
        acts = self.action_names or tuple(f"action {i}" for i in range(self.action_dim))
        columns = [(name, "observation", self.observations[:, i]) for i, name in enumerate(names)]
        columns += [(name, "action", self.actions[:, i]) for i, name in enumerate(acts)]
        columns.append(("reward", "reward", self.rewards))
        measures = (np.min, np.mean, np.max, np.std)
        rows = [(name, kind, *(f"{of(values) + 0.0:.4g}" for of in measures)) for name, kind, values in columns]
        return html_table(repr(self)[1:-1], ("column", "kind", "least", "mean", "most", "std"), rows)

    @property
    def observation_dim(self) -> int:
        """How many numbers an observation has."""
        return int(self.observations.shape[1])

    @property
    def action_dim(self) -> int:
        """How many numbers an action has."""
        return int(self.actions.shape[1])

    @property
    def observation_names(self) -> tuple[str, ...] | None:
        """What the columns of the observations are called, if that is known."""
        return self.labels.observations

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """What the columns of the actions are called, if that is known."""
        return self.labels.actions

    @property
    def units(self) -> Mapping[str, str]:
        """The units of those columns that have one, by name."""
        return self.labels.units

    @property
    def dropped_rows(self) -> int:
        """How many recorded rows were dropped, because they have no next observation."""
        return self.recorded.dropped_rows

    @property
    def dropped_trajectories(self) -> int:
        """How many recorded trajectories were dropped, because they were one row without a next observation."""
        return self.recorded.dropped_trajectories

    def returns(self) -> TrajectoryReturns:
        """The undiscounted return of every trajectory, and which trajectories are complete.

        A trajectory is complete if its last row is terminal, or if its end is marked at the environment's step limit.
        Every marked end counts where no limit is known.
        """
        return self.recorded.returns

    def followed(self) -> Bool[np.ndarray, " rows"]:
        """Which rows are followed by a row of the same trajectory, whose action is then the next action."""
        followed = np.ones(len(self), dtype=bool)
        followed[self.trajectories[:, 1] - 1] = False
        return followed

    def recorded_rows(self, rows: Int64[np.ndarray, " chosen"]) -> Int64[np.ndarray, " chosen"]:
        """Where `rows`, numbers of rows here, stand in the recording, dropped rows counted."""
        number = np.searchsorted(self.trajectories[:, 1], rows, side="right")
        return np.asarray(rows - self.trajectories[number, 0] + self.recorded.starts[number])


def make_dataset(
    name: str,
    *,
    observations: np.ndarray,
    actions: np.ndarray,
    rewards: np.ndarray,
    terminals: np.ndarray,
    timeouts: np.ndarray | None = None,
    trajectory_ends: np.ndarray | None = None,
    next_observations: np.ndarray | None = None,
    times: np.ndarray | None = None,
    action_bounds: Bounds = (-1.0, 1.0),
    environment: str | None = None,
    source: Mapping[str, Any] | None = None,
    labels: Labels = NO_LABELS,
    least_usable: float = LEAST_USABLE,
) -> Dataset:
    """Check a recording and turn it into the rows that can be trained on.

    `terminals` and `timeouts` end a trajectory each. With `trajectory_ends` only these and timeouts do, and
    `timeouts` may be left out: a terminal may then lie inside a trajectory.

    With stored next observations every row stays. Without them they come from the following row of the trajectory.
    The last row of a trajectory is then dropped unless it is terminal (see `trajectories.training_view`).

    `times` are only checked: they must ascend within each trajectory. Too many rows without a next observation are
    refused: at least the share `least_usable` must be left.
    """
    check_least_usable(least_usable)
    columns = {
        "observations": number_matrix(name, "observations", observations),
        "actions": number_matrix(name, "actions", actions),
        "rewards": number_vector(name, "rewards", rewards),
    }
    if next_observations is not None:
        columns["next_observations"] = number_matrix(name, "next_observations", next_observations)
    marks = mark_columns(name, terminals, timeouts, trajectory_ends)
    require_equal_rows(name, {**columns, **marks})
    for key, values in columns.items():
        require_finite(name, key, values)
    low, high = bound_vectors(name, action_bounds, columns["actions"].shape[1])
    require_inside(name, columns["actions"], low, high)
    ends = end_rows(marks["terminals"], marks["timeouts"], marks.get("trajectory_ends"))
    require_ends(name, ends, marked=trajectory_ends is not None)
    if times is not None:
        require_ascending_times(name, times, ends)
    labels.check(name, columns["observations"].shape[1], columns["actions"].shape[1])

    arrays, recorded = _training_rows(name, columns, marks["terminals"], marks["timeouts"], ends, environment)
    problem = too_few_left(len(arrays["rewards"]), len(ends), least_usable, drop_remedy(source or {}))
    if problem is not None:
        raise InputError(f"{name}: {problem}.")
    arrays |= {"action_low": low, "action_high": high}
    checksum = content_checksum(arrays)
    arrays["trajectories"] = arrays.pop("episodes")
    return Dataset(
        name=name,
        **{key: _read_only(values) for key, values in arrays.items()},
        environment=environment,
        source=dict(source or {"kind": "arrays"}),
        checksum=checksum,
        recorded=recorded,
        labels=labels,
    )


def _of_recording(name: str, recording: Recording) -> Dataset:
    """A recording that says all there is to say of it."""
    environment = None if recording.environment == "none" else recording.environment
    return make_dataset(
        name,
        **dict[str, Any](recording.columns),
        action_bounds=recording.action_bounds or (-1.0, 1.0),
        environment=environment,
        source=recording.origin,
        labels=recording.labels,
    )


def _training_rows(
    name: str,
    columns: Mapping[str, np.ndarray],
    terminals: np.ndarray,
    timeouts: np.ndarray,
    ends: np.ndarray,
    environment: str | None,
) -> tuple[dict[str, np.ndarray], Recorded]:
    """The arrays in the order of the checksum, without the rows that have no next observation."""
    trajectories = split_trajectories(ends)
    values = np.add.reduceat(columns["rewards"].astype(np.float64), trajectories[:, 0])
    complete = complete_trajectories(trajectories, terminals, ends, step_limit(environment))
    kept = np.arange(len(trajectories))
    arrays = {key: columns[key] for key in ("observations", "actions", "rewards")}
    bounds = trajectories
    if "next_observations" in columns:
        arrays["next_observations"] = columns["next_observations"]
    else:
        view = training_view(trajectories, terminals, timeouts)
        if len(view.rows) == 0:
            raise InputError(
                f"{name} has no row with a next observation: every trajectory is one step and none is terminal; "
                "store next_observations in the file."
            )
        arrays = {key: column[view.rows] for key, column in arrays.items()}
        arrays["next_observations"] = columns["observations"][view.next_rows]
        terminals, timeouts, bounds, kept = terminals[view.rows], view.timeouts, view.trajectories, view.kept
    recorded = Recorded(
        returns=TrajectoryReturns(_read_only(values[kept]), _read_only(complete[kept])),
        lengths=_read_only((trajectories[:, 1] - trajectories[:, 0])[kept]),
        starts=_read_only(trajectories[kept, 0]),
        dropped_rows=len(ends) - len(terminals),
        dropped_trajectories=len(trajectories) - len(kept),
    )
    return {**arrays, "terminals": terminals, "timeouts": timeouts, "episodes": bounds}, recorded


def _read_only(values: np.ndarray) -> np.ndarray:
    view = values.view()
    view.flags.writeable = False
    return view
