"""`ogbench:` data sets: OGBench's single tasks, from a published file, or from a recording made on this machine.

`ogbench:cube-single-play-singletask-task2` is the recording `cube-single-play` with the rewards of task 2. A published
file is taken where it is: in the cache, or where OGBench's package puts it. Else manipulation data are recorded here
by the oracles that made the published ones, and so are the point's ways through mazes. Data that need a learned expert
are read from files only.

Reward and success of a row belong to the state in which the row begins. Where that state solves the task, nothing is
bootstrapped, and the recording goes on: such a row is a terminal inside its trajectory. The last row of a trajectory
has no next observation and is left out, as OGBench's own loader does.
"""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from score_rl.data.collection.oracle_episodes import COLUMNS, OracleTask, make_quietly
from score_rl.data.collection.oracle_recording import (
    holds_oracle_recipe,
    oracle_recipe,
    read_oracle_recipe,
    record_oracles,
)
from score_rl.data.progress_bar import say
from score_rl.data.sources.npz_file import read_npz
from score_rl.data.sources.reader import NamedDataset, Reader, Recording, Request, file_facts
from score_rl.data.sources.sealed_file import broken_seal, sealing
from score_rl.disk import is_there, private_folder
from score_rl.errors import InputError, unknown_name

TASKS = 5  # of every environment
PACKAGE_FOLDER = Path("~/.ogbench/data")  # where OGBench's package keeps what it fetches
NAME = re.compile(r"(?P<recording>[a-z0-9-]+?)-singletask(-task(?P<task>\d+))?(-v0)?")
OTHER_FAMILIES = ("antmaze", "humanoidmaze", "antsoccer")  # read from files only


class Family(NamedTuple):
    """How the published data of a manipulation environment were recorded, play and noisy."""

    episodes: int
    random_actions: float  # of noisy data
    default_task: int  # where the name has none


class Size(NamedTuple):
    """How much of a recording was published."""

    episodes: int
    steps: int  # rows of an episode; the last has no next observation


FAMILIES = {
    "cube-single": Family(1000, 0.1, 2),
    "cube-double": Family(1000, 0.1, 2),
    "cube-triple": Family(3000, 0.1, 2),
    "cube-quadruple": Family(5000, 0.1, 2),
    "scene": Family(1000, 0.1, 2),
    "puzzle-3x3": Family(1000, 0.2, 4),
    "puzzle-4x4": Family(1000, 0.2, 4),
    "puzzle-4x5": Family(3000, 0.2, 2),
    "puzzle-4x6": Family(5000, 0.2, 2),
}
KINDS = ("play", "noisy")
STEPS = 1001  # of manipulation
MAZES = {
    f"pointmaze-{maze}": {"navigate": Size(*sizes), "stitch": Size(5000, 201)}
    for maze, sizes in {
        "medium": (1000, 1001), "large": (1000, 1001), "giant": (500, 2001), "teleport": (1000, 1001),
    }.items()
}  # fmt: skip
SIZES = {
    **{f"{name}-{kind}": Size(family.episodes, STEPS) for kind in KINDS for name, family in FAMILIES.items()},
    **{f"{name}-{kind}": size for name, kinds in MAZES.items() for kind, size in kinds.items()},
}  # of all that can be recorded here


class Asked(NamedTuple):
    """A name, taken apart."""

    recording: str  # such as cube-single-play
    environment: str  # cube-single
    task: int | None  # None: the environment's default

    @property
    def gymnasium_id(self) -> str:
        """The single task's environment, with the module that knows it."""
        task = "" if self.task is None else f"-task{self.task}"
        module = "ogbench.manipspace" if self.environment in FAMILIES else "ogbench.locomaze"
        return f"{module}:{self.environment}-singletask{task}-v0"

    def recorded_as(self) -> OracleTask:
        """What to record. Refused where that needs more than the package has."""
        kind = self.recording.removeprefix(f"{self.environment}-")
        if self.recording not in SIZES:
            raise InputError(
                f"ogbench:{self.recording} cannot be recorded here, since its robots need a learned expert that is "
                f"not in OGBench's package: put the published {self.recording}-v0.npz into "
                f"{PACKAGE_FOLDER.expanduser()}."
            )
        share = FAMILIES[self.environment].random_actions if kind == "noisy" else 0.0
        return OracleTask(self.environment, kind, SIZES[self.recording].steps, share)


def taken_apart(name: str) -> Asked:
    """What a name without "ogbench:" asks for."""
    match = NAME.fullmatch(name)
    recording = match["recording"] if match else ""
    environment = recording.rpartition("-")[0]
    other = environment.partition("-")[0] in OTHER_FAMILIES
    task = int(match["task"]) if match and match["task"] else None
    if not (recording in SIZES or other) or (task is not None and not 1 <= task <= TASKS):
        raise unknown_name("data set", f"ogbench:{name}", [f"ogbench:{each}" for each in ogbench_names()])
    return Asked(recording, environment, task)


def ogbench_names() -> list[str]:
    """What can be recorded here, without "ogbench:": each recording with its default task, of five."""
    return [f"{recording}-singletask-task{default_task(recording)}" for recording in SIZES]


def default_task(recording: str) -> int:
    """The task that its environment has where a name has none."""
    family = FAMILIES.get(recording.rpartition("-")[0])
    return 1 if family is None else family.default_task


def published_file(recording: str, cache: Path) -> Path | None:
    """Where the published file lies, if it is on this machine."""
    places = (cache / "ogbench", PACKAGE_FOLDER.expanduser())
    return next((path for place in places if is_there(path := place / f"{recording}-v0.npz")), None)


def recorded_file(recording: str, cache: Path, episodes: int, seed: int) -> Path:
    """Where a recording made on this machine is cached."""
    return cache / "ogbench" / f"{recording}-recorded-{episodes}-seed{seed}.npz"


def ready_recording(asked: Asked, request: Request) -> Path:
    """The published file, or the cached recording, which is made if it is not there."""
    published = published_file(asked.recording, request.cache)
    if published is not None:
        return published
    task = asked.recorded_as()
    if request.seed < 0:
        raise InputError(f"the seed {request.seed} is negative, but a recording needs one of 0 or more.")
    episodes = _episodes(request.transitions, SIZES[asked.recording])
    path = recorded_file(asked.recording, request.cache, episodes, request.seed)
    private_folder(path.parent)
    problem = broken_seal(path) if path.exists() else None
    if problem is not None:
        say(f"{path} is not used, since {problem}; it is recorded anew.")
    if problem is not None or not holds_oracle_recipe(path, oracle_recipe(task, episodes, request.seed)):
        label = f"recording ogbench:{asked.recording}"
        parts = path.with_name(f"{path.name}.parts")  # under its own name: a recording that breaks off goes on
        with sealing(path) as unsealed:
            record_oracles(unsealed, task, episodes, request.seed, parts, label=label, progress=request.progress)
    return path


def read_transitions(path: Path) -> dict[str, np.ndarray]:
    """The rows that have a next observation, as OGBench's loader makes them of a file.

    `terminals` of the file mark the last row of each trajectory. Here `trajectory_ends` marks the last that is left.
    """
    stored = read_npz(path, COLUMNS)
    missing = [name for name in ("observations", "actions", "terminals", "qpos") if name not in stored]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}: a file of OGBench's data has them; fetch it again.")
    _refuse_misshapen(stored, path)
    last = stored.pop("terminals").astype(bool)
    if not len(last) or not last[-1]:
        raise InputError(f"{path} ends in the middle of a trajectory: it is not whole; fetch it again.")
    columns = {name: column[~last] for name, column in stored.items()}
    columns["next_observations"] = stored["observations"][1:][~last[:-1]]
    columns["trajectory_ends"] = np.append(last[1:], True)[~last]
    return columns


def _refuse_misshapen(stored: Mapping[str, np.ndarray], path: Path) -> None:
    """Every column has a row for each step, of numbers."""
    rows = stored["terminals"].shape[:1]
    for name, values in stored.items():
        dimensions = 1 if name == "terminals" else 2
        if values.ndim != dimensions or values.shape[:1] != rows or values.dtype.kind not in "biuf":
            raise InputError(
                f"{path}: {name} is {values.dtype} of shape {values.shape}; numbers with a row for each of "
                f"{rows[0] if rows else 0} steps are expected: fetch it again."
            )


def relabelled(columns: Mapping[str, np.ndarray], gymnasium_id: str) -> dict[str, np.ndarray]:
    """Rewards and terminals of a single task for rows in which other things were done."""
    environment = make_quietly(gymnasium_id)
    from ogbench.relabel_utils import relabel_dataset

    labels = {name: columns[name] for name in ("qpos", "button_states") if name in columns}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above, in every reset
            relabel_dataset(gymnasium_id.partition(":")[2], environment, labels)
    finally:
        environment.close()
    solved = labels["masks"] == 0
    kept = {name: columns[name] for name in ("observations", "actions", "next_observations", "trajectory_ends")}
    return {**kept, "rewards": labels["rewards"], "terminals": solved}


def _episodes(transitions: int | None, published: Size) -> int:
    """As many whole episodes as have so many transitions."""
    return published.episodes if transitions is None else -(-transitions // (published.steps - 1))


def _first(columns: Mapping[str, np.ndarray], transitions: int) -> dict[str, np.ndarray]:
    """The first so many rows: episodes are alike, so the first stand for all. The last trajectory may be cut."""
    found = {name: column[:transitions].copy() for name, column in columns.items()}
    found["trajectory_ends"][-1] = True
    return found


def _read(name: str, request: Request) -> Recording:
    asked = taken_apart(name)
    path = ready_recording(asked, request)
    columns = relabelled(read_transitions(path), asked.gymnasium_id)
    if request.transitions is not None:
        columns = _first(columns, request.transitions)
    recipe = read_oracle_recipe(path)
    origin = {"kind": "ogbench", **file_facts(path), "environment": asked.gymnasium_id}
    return Recording(
        columns,
        origin={**origin, "recorded": "here" if recipe else "published", **({"recipe": recipe} if recipe else {})},
        label=name,
        environment=asked.gymnasium_id,
        names_module=True,
        action_bounds=(-1.0, 1.0),
    )


def _names(cache: Path) -> list[NamedDataset]:
    found = []
    for name in ogbench_names():
        asked = taken_apart(name)
        size = SIZES[asked.recording]
        here = published_file(asked.recording, cache)
        path = here or recorded_file(asked.recording, cache, size.episodes, 0)
        origin = "published file" if here else "recorded here"
        rows = size.episodes * (size.steps - 1)
        found.append(NamedDataset(f"ogbench:{name}", asked.gymnasium_id, rows, origin, path, is_there(path)))
    return found


READER = Reader(_read, _names, takes_transitions=True)
