"""Data sets by name: `d4rl:...`, `replica:...`, or the path of a D4RL-format HDF5 file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from score_rl.data.dataset import Dataset
from score_rl.disk import cache_folder
from score_rl.errors import InputError, unknown_name


@dataclass(frozen=True)
class Entry:
    """One named data set."""

    name: str
    environment: str
    rows: int
    origin: str  # the server, or that it is recorded on this machine
    file: Path  # where it is, or will be, cached
    cached: bool


def dataset_names(cache: Path | None = None) -> list[Entry]:
    """Every named data set, replicas first: they need no network."""
    from score_rl.data.sources.d4rl import d4rl_path, d4rl_table
    from score_rl.data.sources.replica import replica_names, replica_path, replica_rows
    from score_rl.envs.tasks import task_of

    folder = cache_folder(cache)
    found = [
        *(
            (f"replica:{n}", replica_rows(n), "recorded here", replica_path(folder, n, None, 0))
            for n in replica_names()
        ),
        *(
            (f"d4rl:{n}", facts.transitions, urlsplit(facts.url).netloc, d4rl_path(folder, n))
            for n, facts in d4rl_table().items()
        ),
    ]
    return [Entry(name, task_of(name) or "", rows, origin, path, path.exists()) for name, rows, origin, path in found]


def load_dataset(
    name: str | Path,
    *,
    transitions: int | None = None,
    seed: int = 0,
    environment: str | None = None,
    action_bounds: Sequence[float] | None = None,
    cache: Path | None = None,
    progress: bool = True,
) -> Dataset:
    """The data set of this name, downloaded or built first if it is not in the cache.

    `transitions` shrinks a replica in all its parts alike, and takes evenly spread episodes of any other
    source. `seed` is the recording seed of a replica. `environment` and `action_bounds` override what the
    source says.
    """
    if transitions is not None and transitions < 1:
        raise InputError(f"{transitions} transitions were asked for, but a data set needs at least 1.")
    from score_rl.data.files import load_file

    name = str(name)
    source, _, rest = name.partition(":")
    if source == "replica":
        path = ready_replica(rest, transitions, seed, cache_folder(cache), progress)
        return load_file(path, name=name, environment=environment, action_bounds=action_bounds)
    if source == "d4rl":
        from score_rl.data.sources.d4rl import ready_d4rl

        path = ready_d4rl(rest, cache_folder(cache), progress)
    else:
        path = _existing_file(name)
    return load_file(
        path,
        name=name if source == "d4rl" else path.stem,
        transitions=transitions,
        environment=environment,
        action_bounds=action_bounds,
    )


def ready_replica(name: str, transitions: int | None, seed: int, cache: Path, progress: bool) -> Path:
    """The cached file of a replica, built if it is not there or was made by another recipe."""
    from score_rl.data.sources.replica import build_replica, holds_recipe, replica_path, replica_recipe

    recipe = replica_recipe(name, transitions, seed)
    path = replica_path(cache, name, transitions, seed)
    if not holds_recipe(path, recipe):
        build_replica(name, path, transitions=transitions, seed=seed, progress=progress)
    return path


def _existing_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.exists():
        return path
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"{path} does not exist: give the path of a D4RL-format HDF5 file.")
    raise unknown_name("data set", name, [entry.name for entry in dataset_names()])
