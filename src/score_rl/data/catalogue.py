"""Data sets by name: `d4rl:...`, `replica:...`, or the path of a D4RL-format HDF5 file."""

from collections.abc import Sequence
from pathlib import Path

from score_rl.data.columns import LEAST_USABLE
from score_rl.data.dataset import Dataset
from score_rl.data.sources.reader import NamedDataset, Request, refuse_unprintable
from score_rl.data.sources.registry import PREFIXES, file_reader, get_reader, is_named
from score_rl.disk import cache_folder
from score_rl.errors import InputError, unknown_name


def named_datasets(cache: Path | None = None) -> list[NamedDataset]:
    """Every data set that has a name, replicas first: they need no network."""
    folder = cache_folder(cache)
    return [entry for prefix in PREFIXES for entry in get_reader(prefix).names(folder)]


def load_dataset(
    name: str | Path,
    *,
    transitions: int | None = None,
    seed: int = 0,
    environment: str | None = None,
    action_bounds: Sequence[float] | None = None,
    least_usable: float = LEAST_USABLE,
    cache: Path | None = None,
    progress: bool = True,
) -> Dataset:
    """The data set of this name. It is fetched or recorded first if it is not in the cache.

    Args:
        name: replica:NAME, d4rl:NAME, ogbench:NAME, or the path of a file.
        transitions: Rows to use. It shrinks a replica in all its parts alike; of any other source it takes evenly
            spread trajectories.
        seed: Seed of a replica's recording.
        environment: Where to judge, instead of what the source says.
        action_bounds: LOW, HIGH of all actions, or of each, instead of what the source says.
        least_usable: The share of the rows that must have a next observation, where these are not stored.
        cache: Folder for what is fetched and recorded; `$SCORE_RL_CACHE` or the platform's unless given.
        progress: Whether to show a bar.
    """
    if transitions is not None and transitions < 1:
        raise InputError(f"{transitions} transitions were asked for, but a data set needs at least 1.")
    from score_rl.data.loading import make_from_recording

    name = str(name)
    if is_named(name):
        prefix, _, rest = name.partition(":")
        reader, called = get_reader(prefix), name
    else:
        path = _existing_file(name)
        reader, rest, called = file_reader(path), str(path), path.stem
    recording = reader.read(rest, Request(transitions, seed, cache_folder(cache), progress))
    return make_from_recording(
        called,
        recording,
        transitions=None if reader.takes_transitions else transitions,
        environment=environment,
        action_bounds=action_bounds,
        least_usable=least_usable,
    )


def _existing_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.exists():
        refuse_unprintable(path)
        return path
    if path.suffix or len(path.parts) > 1:
        raise InputError(f"{path} does not exist: give the path of a D4RL-format HDF5 file.")
    raise unknown_name("data set", name, [entry.name for entry in named_datasets()])
