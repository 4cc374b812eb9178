"""Everything that is wrong with a file, rather than the first thing: what `score data check` prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from score_rl.data.columns import (
    GAP_REMEDY,
    LEAST_USABLE,
    Bounds,
    bound_vectors,
    bounds_of_list,
    broken_rows,
    disordered_rows,
    flat_columns,
    in_float32,
    outside_bounds,
    too_few_left,
    wrong_flags,
)
from score_rl.data.dataset import Dataset
from score_rl.data.loading import infer_environment, make_from_recording
from score_rl.data.readiness import USUAL_SCALING, refuse_unready
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.data.sources.reader import Recording, Request, file_checksum, refuse_unprintable
from score_rl.data.sources.registry import ANY_FILE, file_reader, get_reader
from score_rl.data.trajectories import end_rows, split_trajectories
from score_rl.data.warnings import (
    find_continued_terminals,
    find_dropped_rows,
    find_impossible_terminals,
    find_narrow_actions,
    find_unmarked_ends,
    find_unrelated_rows,
    listed,
)
from score_rl.disk import cache_folder
from score_rl.envs.tasks import TASKS, step_limit, task_of, terminates
from score_rl.errors import InputError, printable

Level = Literal["error", "warning", "note"]
MATRICES = ("observations", "next_observations", "actions")
FLAGS = ("terminals", "timeouts", "trajectory_ends")


@dataclass(frozen=True)
class Finding:
    """One thing about a file. An error keeps it from being used; a warning makes results doubtful; a note informs."""

    level: Level
    message: str


def check_file(
    path: Path,
    *,
    environment: str | None = None,
    action_bounds: Sequence[float] | None = None,
    least_usable: float = LEAST_USABLE,
) -> list[Finding]:
    """Everything found in a file; errors first. Empty when there is nothing to say.

    There is an error exactly where `score train` with the same options would not begin: both ask `make_from_recording`
    and `refuse_unready`. What is found beyond that says where the trouble lies.
    """
    path = Path(path)
    try:
        refuse_unprintable(path)
        recording = file_reader(path).read(str(path), Request(None, 0, cache_folder(), False))
    except InputError as error:
        return [Finding("error", str(error))]
    options: dict[str, Any] = {
        "environment": None if environment == "none" else environment,
        "action_bounds": action_bounds,
    }
    dataset, refusal = None, ""
    try:
        dataset = make_from_recording(path.stem, recording, **options, least_usable=least_usable)
        refuse_unready(dataset, environment or dataset.environment, [USUAL_SCALING])
    except InputError as error:
        refusal = str(error)
    found = [*_check_contents(path, recording, dataset, options), *_check_learning(dataset)]
    if refusal and not any(finding.level == "error" for finding in found):
        found.append(Finding("error", refusal))
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _check_contents(
    path: Path, recording: Recording, dataset: Dataset | None, options: Mapping[str, Any]
) -> Iterator[Finding]:
    arrays, notes = flat_columns(recording.columns)
    yield from (Finding("note", note) for note in notes)
    misshapen = list(_check_shapes(arrays))
    yield from misshapen
    if misshapen:
        return  # what follows compares rows across arrays
    if len(arrays["rewards"]) == 0:
        yield Finding("error", "the file is empty: every array has 0 rows.")
        return
    yield from _check_infos(path, len(arrays["rewards"]))
    arrays = {key: values if key == "times" else in_float32(values) for key, values in arrays.items()}
    yield from _check_values(arrays)
    environment = options["environment"] or recording.environment or infer_environment(recording.label, arrays)
    environment = None if environment == "none" else environment
    if environment is None:
        yield Finding("note", "the environment is not known: a policy learned from it cannot be judged by acting.")
    if dataset is not None:
        bounds: Bounds | None = (dataset.action_low, dataset.action_high)
    else:
        bounds = _bounds_to_check(arrays["actions"], recording, environment, options)
    if bounds is not None:
        yield from _check_actions(arrays["actions"], bounds)
    yield from _check_trajectories(arrays, environment, refused=dataset is None)
    yield from _check_published(path)


def _bounds_to_check(
    actions: np.ndarray, recording: Recording, environment: str | None, options: Mapping[str, Any]
) -> Bounds | None:
    """The bounds of a file that cannot be used, as far as they make sense themselves."""
    bounds: Bounds | None = recording.action_bounds if options["environment"] is None else None
    try:
        if options["action_bounds"]:
            bounds = bounds_of_list(options["action_bounds"], actions.shape[1])
        if bounds is None and task_of(environment or ""):
            bounds = (-1.0, 1.0)
        return None if bounds is None else bound_vectors("the file", bounds, actions.shape[1])
    except InputError:
        return None  # the refusal says so


def _check_shapes(arrays: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    for key, values in arrays.items():
        dimensions = 2 if key in MATRICES else 1
        kinds = "iuf" if key in (*MATRICES, "times") else "biuf"
        if values.ndim != dimensions or values.dtype.kind not in kinds or 0 in values.shape[1:]:
            expected = "a matrix with one row per step" if dimensions == 2 else "one value per step"
            yield Finding("error", f"{key} is {values.dtype} of shape {values.shape}; {expected} is expected.")
    counts = {key: len(values) for key, values in arrays.items() if values.ndim}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{key} {count}" for key, count in counts.items())
        yield Finding("error", f"the arrays differ in rows: {found}.")
    stored, observed = arrays.get("next_observations"), arrays.get("observations")
    if stored is not None and observed is not None and stored.shape[1:] != observed.shape[1:]:
        yield Finding("error", f"next_observations is {stored.shape}, observations {observed.shape}: not alike.")


def _check_infos(path: Path, count: int) -> Iterator[Finding]:
    if get_reader(ANY_FILE) != file_reader(path):
        return  # another format has none
    with open_hdf5(path) as file:
        try:
            shapes = {key: file.shape(f"infos/{key}") for key in file.names("infos")}
        except InputError as error:
            yield Finding("warning", f"{error} Nothing reads it.")
            return
    for key, shape in shapes.items():
        if shape[:1] != (count,):
            yield Finding("warning", f"infos/{printable(key)} has shape {shape}, but there are {count} steps.")


def _check_values(arrays: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    for key, values in arrays.items():
        if key in FLAGS:
            wrong = wrong_flags(values)
            if wrong.any():
                yield Finding("error", f"{key} holds values other than true and false {_rows(wrong)}.")
            continue
        broken = broken_rows(values)
        if broken.any():
            yield Finding("error", f"{key} has NaN or infinite values {_rows(broken)}: {GAP_REMEDY}.")
        rows = values.reshape(len(values), -1)
        constant = np.flatnonzero((rows == rows[0]).all(axis=0))
        if len(rows) > 1 and len(constant) and key != "next_observations":
            columns = f" in column {listed(constant)}" if values.ndim == 2 else ""
            yield Finding("warning", f"{key} never changes{columns}.")


def _check_actions(actions: np.ndarray, bounds: Bounds) -> Iterator[Finding]:
    low, high = (np.broadcast_to(bound, actions.shape[1:]) for bound in bounds)
    outside = outside_bounds(actions, low, high)
    for column in np.flatnonzero(outside.any(axis=0)):
        values = actions[:, column]
        yield Finding(
            "error",
            f"action {column} reaches from {np.nanmin(values):g} to {np.nanmax(values):g}, beyond its bounds "
            f"{low[column]:g} to {high[column]:g}, {_rows(outside[:, column])}.",
        )


def _check_trajectories(
    arrays: Mapping[str, np.ndarray], environment: str | None, *, refused: bool
) -> Iterator[Finding]:
    terminals = arrays["terminals"].astype(bool)
    timeouts = arrays.get("timeouts", np.zeros(len(terminals))).astype(bool)
    marked = arrays["trajectory_ends"].astype(bool) if "trajectory_ends" in arrays else None
    ends = end_rows(terminals, timeouts, marked)
    if not ends.any():
        words = "there is no terminal and no timeout" if marked is None else "no end of a trajectory is marked"
        yield Finding("error", f"{words}, so trajectories cannot be told apart.")
        return
    if (terminals & timeouts).any():
        both = _rows(terminals & timeouts)
        yield Finding("warning", f"terminal and timeout are both set {both}; the terminal counts.")
    if marked is not None:
        yield from _check_marked_ends(terminals, timeouts, marked)
    trajectories = split_trajectories(ends)
    if not ends[-1]:
        length = trajectories[-1, 1] - trajectories[-1, 0]
        yield Finding("note", f"the last trajectory is partial: {length} steps without an end.")
    yield from _check_lengths(trajectories, ends & ~terminals, environment)
    if "next_observations" in arrays:
        yield from _check_continuity(arrays["observations"], arrays["next_observations"], ends)
        yield from _check_rule(arrays["next_observations"], terminals, environment)
    else:
        yield from _check_dropped(trajectories, terminals, refused=refused)
    if "times" in arrays:
        yield from _check_times(arrays["times"], ends)


def _check_marked_ends(terminals: np.ndarray, timeouts: np.ndarray, marked: np.ndarray) -> Iterator[Finding]:
    inside = int((terminals & ~marked & ~timeouts).sum())
    if inside:
        yield Finding("note", f"the recording goes on after {inside} of {terminals.sum()} terminals.")
    if (timeouts & ~marked).any():
        rows = _rows(timeouts & ~marked)
        yield Finding("warning", f"timeouts has ends that trajectory_ends has not, {rows}; a timeout always counts.")


def _check_dropped(trajectories: np.ndarray, terminals: np.ndarray, *, refused: bool) -> Iterator[Finding]:
    dropped = ~terminals[trajectories[:, 1] - 1]
    if refused and too_few_left(len(terminals) - int(dropped.sum()), len(terminals)) is not None:
        return  # the refusal says so
    alone = int((dropped & (trajectories[:, 1] - trajectories[:, 0] == 1)).sum())
    vanished = f" {alone} of them are one row long and vanish." if alone else ""
    yield Finding(
        "note",
        "next_observations is not stored: the last row is dropped of those trajectories that do not end in a terminal, "
        f"{dropped.sum()} of {len(trajectories)}.{vanished}",
    )


def _check_times(times: np.ndarray, ends: np.ndarray) -> Iterator[Finding]:
    late = disordered_rows(times, ends)
    if late.any():
        yield Finding(
            "error",
            f"times do not ascend within a trajectory {_rows(late)}: sort the rows by trajectory and, within it, by "
            "time.",
        )


def _check_lengths(trajectories: np.ndarray, stopped: np.ndarray, environment: str | None) -> Iterator[Finding]:
    limit = step_limit(environment)
    if limit is None:
        return
    lengths = trajectories[:, 1] - trajectories[:, 0]
    long = lengths > limit
    if long.any():
        starts = listed(trajectories[long, 0])
        yield Finding(
            "warning",
            f"{long.sum()} trajectories are longer than {environment}'s {limit} steps (the longest {lengths.max()}), "
            f"starting in row {starts}: is an end not marked?",
        )
    short = int((stopped[trajectories[:, 1] - 1] & (lengths < limit)).sum())
    if short:
        cut_short = "1 trajectory was" if short == 1 else f"{short} trajectories were"
        yield Finding("note", f"{cut_short} cut short before {environment}'s {limit} steps.")


def _check_continuity(observations: np.ndarray, stored: np.ndarray, ends: np.ndarray) -> Iterator[Finding]:
    differs = ~np.isclose(stored[:-1], observations[1:], rtol=1e-4, atol=1e-5, equal_nan=True).all(axis=1)
    broken = differs & ~ends[:-1]
    if broken.any():
        yield Finding(
            "warning",
            f"next_observations is not the following row's observation inside a trajectory {_rows(broken)}: "
            "is an end not marked, or are rows out of order?",
        )


def _check_rule(stored: np.ndarray, terminals: np.ndarray, environment: str | None) -> Iterator[Finding]:
    task = task_of(environment or "")
    if task is None or stored.shape[1] != TASKS[task].observation_dim:
        return
    ended = np.asarray(terminates(task, stored))
    for wrong, words in (
        (ended & ~terminals, "are not terminal although their next observation ends"),
        (terminals & ~ended, "are terminal although their next observation does not end"),
    ):
        if wrong.any():
            yield Finding("warning", f"rows that {words} a {task} episode: {_rows(wrong)}.")


def _check_learning(dataset: Dataset | None) -> Iterator[Finding]:
    """What is doubtful about rows that can be used as they are."""
    if dataset is None:
        return
    found = [
        *find_dropped_rows(dataset),
        *find_impossible_terminals(dataset),
        *find_continued_terminals(dataset),
        *find_unrelated_rows(dataset),
        *find_narrow_actions(dataset),
    ]
    if dataset.dropped_rows:  # otherwise next observations are compared with the following rows
        found += find_unmarked_ends(dataset)
    for warning in found:
        yield Finding("warning", warning)


def _check_published(path: Path) -> Iterator[Finding]:
    from score_rl.data.sources.d4rl import d4rl_table

    for name, facts in d4rl_table().items():
        if facts.url.endswith(f"/{path.name}"):
            same = path.stat().st_size == facts.bytes and file_checksum(path) == facts.sha256
            words = "is" if same else "has the name of"
            tail = "" if same else " but not its contents"
            message = f"{path.name} {words} d4rl:{name}'s published file{tail}."
            yield Finding("note" if same else "warning", message)


def _rows(where: np.ndarray) -> str:
    rows = np.flatnonzero(where)
    return f"in {len(rows)} of {len(where)} rows ({listed(rows)})"
