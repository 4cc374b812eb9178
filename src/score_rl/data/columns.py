"""What the columns of a recording must be: types, shapes, finite numbers, bounds.

`make_dataset` refuses the first column that breaks a rule; `score data check` reports all of them. Both use the tests
of rows in the first half of this file.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from score_rl.errors import InputError

BOUND_TOLERANCE = 1e-5  # how far rounding may carry an action over its bound
GAP_REMEDY = "fill the gaps (say, with the value before), or leave out the trajectories that have them"
LEAST_USABLE = 0.5  # of the recorded rows must be left when those without a next observation are gone
LARGEST = 1e15  # programs compute in float32, where squares and sums of larger numbers overflow
SMALLEST = float(np.finfo(np.float32).tiny)  # a difference below it counts as 0 in compiled programs
ONE_NUMBER = ("rewards", "terminals", "timeouts", "trajectory_ends", "times")  # columns with one number to a row
SORT_REMEDY = (
    "Are the rows sorted? They must stand trajectory after trajectory and, within each, in the order of time. If they "
    "do, mark the ends in trajectory_ends if the recording goes on after terminals, or store next_observations"
)
IMPORTED = "import"  # the kind of a recipe that says how a table was read
IMPORT_REMEDY = (
    "Does the column of episodes tell the right rows apart? If it does, import the table again with its columns of "
    "next observations, or with marks of the rows after which nothing follows"
)

Bounds = tuple[np.ndarray | float, np.ndarray | float]


def drop_remedy(source: Mapping[str, Any]) -> str:
    """What to do where many rows have no next observation. Importing has sorted the rows already."""
    recipe = source.get("recipe")
    imported = isinstance(recipe, Mapping) and recipe.get("kind") == IMPORTED
    return IMPORT_REMEDY if imported else SORT_REMEDY


def broken_rows(values: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """The rows that hold NaN or infinity."""
    return np.asarray(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))


def wrong_flags(values: np.ndarray) -> Bool[np.ndarray, " rows"]:
    """The rows that hold neither 0 nor 1."""
    return ~np.isin(values, (0, 1))


def outside_bounds(actions: np.ndarray, low: np.ndarray, high: np.ndarray) -> Bool[np.ndarray, "rows action"]:
    """Which action values lie outside their bounds."""
    return np.asarray((actions < low - BOUND_TOLERANCE) | (actions > high + BOUND_TOLERANCE))


def flat_columns(columns: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Columns of one number to a row that are stored as (n, 1), read as (n,); and a note on each.

    It is the one other shape that can mean nothing else. Some of D4RL's v1 files have it.
    """
    wide = [key for key, values in columns.items() if key in ONE_NUMBER and values.ndim == 2 and values.shape[1] == 1]
    notes = [f"{key} is stored with shape {columns[key].shape} and was read as one number to a row." for key in wide]
    return {key: values[:, 0] if key in wide else values for key, values in columns.items()}, notes


def number_matrix(name: str, key: str, values: np.ndarray) -> Float32[np.ndarray, "rows columns"]:
    """A column with several numbers to a row, in float32."""
    values = np.asarray(values)
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but a matrix of numbers with one row per step is expected: store it so."
        )
    return in_float32(values)


def number_vector(name: str, key: str, values: np.ndarray) -> Float32[np.ndarray, " rows"]:
    """A column with one number to a row, in float32."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name}: {key} is an array of {values.dtype} with shape {values.shape}, "
            "but one number per step is expected: store it so."
        )
    return in_float32(values)


def in_float32(values: np.ndarray) -> np.ndarray:
    """The numbers as programs take them; those beyond float32 become infinite."""
    with np.errstate(over="ignore"):  # whoever takes them refuses what is infinite
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
    """No value is NaN, infinite, or so large that float32 cannot hold its square."""
    least, most = values.min(), values.max()  # NaN if any value is
    if least >= -LARGEST and most <= LARGEST:
        return
    rows = np.flatnonzero(broken_rows(values))
    if len(rows):
        raise InputError(
            f"{name}: {key} has NaN or infinite values in {len(rows)} of {len(values)} rows, the first in row "
            f"{rows[0]}: {GAP_REMEDY}."
        )
    rows = np.flatnonzero((np.abs(values.reshape(len(values), -1)) > LARGEST).any(axis=1))
    raise InputError(
        f"{name}: {key} reaches from {least:g} to {most:g}, the first beyond ±{LARGEST:g} in row {rows[0]}: float32 "
        "cannot compute with such numbers; give it another unit, or replace placeholders."
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
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise InputError(f"{name}: times is {times[row]} in row {row}, but a finite number is expected: {GAP_REMEDY}.")
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


def check_least_usable(share: float) -> None:
    """Refuse what is no share."""
    if not 0 <= share <= 1:
        raise InputError(f"`least_usable` is {share:g}; it must be a share of the rows, between 0 and 1.")


def too_few_left(left: int, recorded: int, least: float = LEAST_USABLE, remedy: str = SORT_REMEDY) -> str | None:
    """Why rows cannot be learned from, if too many of them have no next observation; None if enough have one."""
    if left >= least * recorded:
        return None
    given = math.floor(1000 * left / recorded) / 1000
    return (
        f"only {left:,} of {recorded:,} rows can be learned from: the others are the last of a trajectory and have no "
        f"next observation. {remedy}. If that is how it is, say so with `least_usable={given:g}`"
    )


def bound_vectors(
    name: str, bounds: Bounds, width: int
) -> tuple[Float32[np.ndarray, " action"], Float32[np.ndarray, " action"]]:
    """The lower and upper bound of every action."""
    try:
        with np.errstate(over="ignore"):  # an infinite bound is refused below
            low, high = (np.broadcast_to(np.asarray(b, dtype=np.float32), (width,)).copy() for b in bounds)
    except ValueError:
        shapes = [np.shape(bound) for bound in bounds]
        raise InputError(
            f"{name}: action bounds of shapes {shapes} were given, but the actions have {width} dimensions."
        ) from None
    within = (np.abs(low) <= LARGEST).all() and (np.abs(high) <= LARGEST).all()  # NaN is not
    if not (within and (high.astype(np.float64) - low > SMALLEST).all()):
        raise InputError(
            f"{name}: the action bounds {low.tolist()} to {high.tolist()} are not finite and ascending (within "
            f"±{LARGEST:g}): give a low and a higher number."
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


def mark_columns(
    name: str, terminals: np.ndarray, timeouts: np.ndarray | None, trajectory_ends: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The columns of marks as booleans."""
    marks = {"terminals": flag_vector(name, "terminals", terminals)}
    if timeouts is not None:
        marks["timeouts"] = flag_vector(name, "timeouts", timeouts)
    elif trajectory_ends is not None:
        marks["timeouts"] = np.zeros_like(marks["terminals"])
    else:
        raise InputError(f"{name} has no timeouts: store them, or the ends of trajectories in trajectory_ends.")
    if trajectory_ends is not None:
        marks["trajectory_ends"] = flag_vector(name, "trajectory_ends", trajectory_ends)
    return marks
