"""What the columns of a recording must be: types, shapes, finite numbers, bounds.

`make_dataset` refuses the first column that breaks a rule; `score data check` reports all of them. Both use the tests
of rows in the first half of this file.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float32

from score_rl.errors import InputError

BOUND_TOLERANCE = 1e-5  # how far rounding may carry an action over its bound
GAP_REMEDY = "fill the gaps (say, with the value before), or leave out the trajectories that have them"
MOST = 0.5  # of the recorded rows must be left when those without a next observation are gone
SORT_REMEDY = (
    "Are the rows sorted? They must stand trajectory after trajectory and, within each, in the order of time. If they "
    "do, mark the ends in trajectory_ends if the recording goes on after terminals, or store next_observations"
)

Bounds = tuple[np.ndarray | float, np.ndarray | float]


def broken_rows(values: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """The rows that hold NaN or infinity."""
    return np.asarray(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))


def wrong_flags(values: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """The rows that hold neither 0 nor 1."""
    return ~np.isin(values, (0, 1))


def outside_bounds(actions: np.ndarray, low: np.ndarray, high: np.ndarray) -> Bool[np.ndarray, "rows action"]:
    """Which action values lie outside their bounds."""
    return np.asarray((actions < low - BOUND_TOLERANCE) | (actions > high + BOUND_TOLERANCE))


def number_matrix(name: str, key: str, values: np.ndarray) -> Float32[np.ndarray, "rows columns"]:
    """A column with several numbers to a row, in float32."""
    values = np.asarray(values)
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but a matrix of numbers with one row per step is expected: store it so."
        )
    return np.ascontiguousarray(values, dtype=np.float32)


def number_vector(name: str, key: str, values: np.ndarray) -> Float32[np.ndarray, " rows"]:
    """A column with one number to a row, in float32."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but one number per step is expected: store it so."
        )
    return np.ascontiguousarray(values, dtype=np.float32)


def flag_vector(name: str, key: str, values: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """A column of marks: booleans, or the numbers 0 and 1."""
    numbers = number_vector(name, key, values)
    wrong = wrong_flags(numbers)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{name}: {key} holds {numbers[row]:g} in row {row}, but only true and false (1 and 0) are expected: "
            "store it as booleans."
        )
    return numbers.astype(bool)


def require_equal_rows(name: str, columns: Mapping[str, np.ndarray]) -> None:
    """Every column has the same rows, and there are some."""
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


def require_finite(name: str, key: str, values: np.ndarray) -> None:
    """No value is NaN or infinite."""
    # The sum is finite only if every value is. It may also overflow, which the second look settles.
    if np.isfinite(values.sum(dtype=np.float64)):
        return
    rows = np.flatnonzero(broken_rows(values))
    if len(rows):
        raise InputError(
            f"{name}: {key} has NaN or infinite values in {len(rows)} of {len(values)} rows, the first in row "
            f"{rows[0]}: {GAP_REMEDY}."
        )


def require_ends(name: str, ends: np.ndarray, marked: bool) -> None:
    """Some row ends a trajectory. `marked` says whether the recording marks the ends itself."""
    if ends.any():
        return
    if marked:
        raise InputError(
            f"{name} marks no end of a trajectory in {len(ends)} rows, so its trajectories cannot be told apart: "
            "mark the last row of each in trajectory_ends."
        )
    raise InputError(
        f"{name} has no terminal and no timeout in {len(ends)} rows, so its trajectories cannot be told apart: mark "
        "the last row of each in terminals (nothing follows), in timeouts (the recording stopped) or in "
        "trajectory_ends."
    )


def require_ascending_times(name: str, times: np.ndarray, ends: np.ndarray) -> None:
    """Within each trajectory every row is later than the one before."""
    times = np.asarray(times)
    if times.shape != ends.shape or times.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: times is an array of {times.dtype} with shape {times.shape}, but one number per step is "
            "expected: store it so."
        )
    late = disordered_rows(times, ends)
    if late.any():
        row = int(np.flatnonzero(late)[0])
        raise InputError(
            f"{name}: {int(late.sum())} of {len(times)} rows are not later than the row before in the same trajectory, "
            f"the first in row {row} (time {times[row]:g} after {times[row - 1]:g}): sort the rows by trajectory and, "
            "within it, by time."
        )


def disordered_rows(times: np.ndarray, ends: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """The rows that do not come after the row before, which belongs to the same trajectory. NaN comes after nothing."""
    late = np.zeros(len(times), dtype=bool)
    late[1:] = ~(times[1:] > times[:-1]) & ~ends[:-1]
    return late


def too_few_left(left: int, recorded: int) -> str | None:
    """Why rows cannot be learned from, if most of them have no next observation; None if most have one."""
    if left >= MOST * recorded:
        return None
    return (
        f"only {left:,} of {recorded:,} rows can be learned from: the others are the last of a trajectory and have no "
        f"next observation. {SORT_REMEDY}"
    )


def bound_vectors(
    name: str, bounds: Bounds, width: int
) -> tuple[Float32[np.ndarray, " action"], Float32[np.ndarray, " action"]]:
    """The lower and upper bound of every action."""
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


def bounds_of_list(numbers: Sequence[float], width: int) -> Bounds:
    """Bounds from a flat list: LOW HIGH for every action, or LOW HIGH of the first, of the second and so on."""
    if len(numbers) == 2:
        return float(numbers[0]), float(numbers[1])
    if len(numbers) != 2 * width:
        raise InputError(
            f"`action_bounds` has {len(numbers)} numbers for {width} actions: give LOW HIGH for all of them, or LOW "
            "HIGH of each, one after the other."
        )
    return np.asarray(numbers[::2], np.float32), np.asarray(numbers[1::2], np.float32)


def require_inside(name: str, actions: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Every action lies within its bounds."""
    outside = outside_bounds(actions, low, high)
    if outside.any():
        column = int(np.flatnonzero(outside.any(axis=0))[0])
        rows, values = np.flatnonzero(outside[:, column]), actions[:, column]
        raise InputError(
            f"{name}: action {column} reaches from {values.min():g} to {values.max():g} and leaves its bounds "
            f"{low[column]:g} to {high[column]:g} in {len(rows)} rows, the first in row {rows[0]}: correct those "
            "rows, or the bounds (metadata/action_low and action_high in the file, or `action_bounds`)."
        )
