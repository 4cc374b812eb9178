"""`replica:` data sets: D4RL's fifteen, recorded on this machine with the package's own behaviour policies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.collection.policies import (
    Policy,
    SquashedGaussian,
    UniformActions,
    ladder_catalogue,
    ladder_checksum,
    ladder_policies,
)
from score_rl.data.collection.recorder import collect
from score_rl.data.collection.writing import RECIPE_FORMAT, library_versions, unit_bounds, write_hdf5
from score_rl.data.progress_bar import row_progress, say
from score_rl.data.sources.hdf5 import read_hdf5, read_recipe
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.data.sources.reader import NamedDataset, Reader, Recording, Request
from score_rl.data.sources.sealed_file import broken_seal, sealing
from score_rl.disk import is_there, private_folder
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError, unknown_name

KINDS = ("random", "medium", "medium-replay", "medium-expert", "expert")
D4RL_ROWS = {"random": 1_000_000, "medium": 1_000_000, "medium-expert": 2_000_000, "expert": 1_000_000}


def replica_names() -> list[str]:
    """The fifteen names, without "replica:"."""
    return [f"{task}-{kind}" for task in TASKS for kind in KINDS]


def replica_rows(name: str) -> int:
    """How many rows D4RL's data set of this name has."""
    task, kind = _split(name)
    if kind == "medium-replay":
        return int(ladder_catalogue()[task]["medium_replay_transitions"])
    return D4RL_ROWS[kind]


def replica_recipe(name: str, transitions: int | None, seed: int) -> dict[str, Any]:
    """Everything that decides the rows of a replica. Equal recipes give equal rows."""
    task, kind = _split(name)
    rows = replica_rows(name) if transitions is None else transitions
    steps = _snapshots(task, kind)
    if rows < len(steps):
        raise InputError(
            f"replica:{name} is made of {len(steps)} parts, so {rows} transitions are too few: "
            f"ask for at least {len(steps)}."
        )
    shares = np.diff(np.arange(len(steps) + 1) * rows // len(steps))  # equal, up to one row
    return {
        "format": RECIPE_FORMAT,
        "name": name,
        "environment": task,
        "physics": "d4rl",
        "seed": seed,
        "transitions": rows,
        "streams": [
            {"policy": "uniform" if step is None else f"snapshot {step}", "transitions": int(share)}
            for step, share in zip(steps, shares, strict=True)
        ],
        "policies_sha256": ladder_checksum(task),
    }


def build_replica(
    name: str, path: Path, *, transitions: int | None = None, seed: int = 0, progress: bool = True
) -> None:
    """Record the replica and write it to `path`."""
    recipe = replica_recipe(name, transitions, seed)
    policies = _policies(name)
    streams = [(policy, part["transitions"]) for policy, part in zip(policies, recipe["streams"], strict=True)]
    with row_progress(f"recording replica:{name}", recipe["transitions"], progress) as advance:
        rows = collect(recipe["environment"], streams, seed=seed, on_rows=advance)
    single = policies[0] if len(policies) == 1 else None
    with sealing(path) as unsealed:
        write_hdf5(
            unsealed,
            rows,
            environment=recipe["environment"],
            action_bounds=unit_bounds(recipe["environment"]),
            recipe={**recipe, "versions": library_versions()},
            policy=single if isinstance(single, SquashedGaussian) else None,
        )


def replica_path(cache: Path, name: str, transitions: int | None, seed: int) -> Path:
    """Where the replica is cached."""
    rows = replica_rows(name) if transitions is None else transitions
    return cache / "replica" / f"{name}-{rows}-seed{seed}.hdf5"


def holds_recipe(path: Path, recipe: Mapping[str, Any]) -> bool:
    """Whether the file exists, opens and was made by this recipe. Library versions may differ."""
    if not path.exists():
        return False
    try:
        with open_hdf5(path) as file:
            stored = read_recipe(file)
    except InputError:
        return False
    return stored is not None and {k: v for k, v in stored.items() if k != "versions"} == recipe


def ready_replica(name: str, transitions: int | None, seed: int, cache: Path, progress: bool) -> Path:
    """The cached file of a replica. It is recorded if it is not there, is damaged or was made by another recipe."""
    recipe = replica_recipe(name, transitions, seed)
    path = replica_path(cache, name, transitions, seed)
    private_folder(path.parent)
    problem = broken_seal(path) if path.exists() else None
    if problem is not None:
        say(f"{path} is not used, since {problem}; it is recorded anew.")
    if problem is not None or not holds_recipe(path, recipe):
        build_replica(name, path, transitions=transitions, seed=seed, progress=progress)
    return path


def _split(name: str) -> tuple[str, str]:
    task, kind = task_of(name), name.partition("-")[2]
    if task is None or kind not in KINDS:
        raise unknown_name("data set", f"replica:{name}", [f"replica:{known}" for known in replica_names()])
    return task, kind


def _snapshots(task: str, kind: str) -> list[int | None]:
    """The training step of every stream's policy, in training order; None for uniform actions."""
    catalogue = ladder_catalogue()[task]
    medium, expert = catalogue["medium_step"], catalogue["expert_step"]
    replay = list(catalogue["medium_replay_steps"])
    return {
        "random": [None],
        "medium": [medium],
        "medium-replay": replay,
        "medium-expert": [medium, expert],
        "expert": [expert],
    }[kind]


def _policies(name: str) -> list[Policy]:
    task, kind = _split(name)
    steps = [step for step in _snapshots(task, kind) if step is not None]
    if not steps:
        return [UniformActions(TASKS[task].action_dim)]
    return list(ladder_policies(task, steps))


def _read(name: str, request: Request) -> Recording:
    path = ready_replica(name, request.transitions, request.seed, request.cache, request.progress)
    return read_hdf5(path, "replica")


def _names(cache: Path) -> list[NamedDataset]:
    found = []
    for name in replica_names():
        path = replica_path(cache, name, None, 0)
        entry = (f"replica:{name}", task_of(name) or "", replica_rows(name), "recorded here", path, is_there(path))
        found.append(NamedDataset(*entry))
    return found


READER = Reader(_read, _names, takes_transitions=True)
