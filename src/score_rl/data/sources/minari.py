"""Minari's data sets: `minari:ID` from where Minari keeps them, fetched by it if need be, or a folder of one.

Minari stores one observation more than steps in every episode, so every step has its true next observation. Episodes
are trajectories. A terminated step is a terminal, a truncated one a timeout. Spaces are vectors, or dictionaries and
tuples of vectors, whose parts stand side by side.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from score_rl.data.labels import NO_LABELS, Labels
from score_rl.data.progress_bar import row_progress
from score_rl.data.sources.hdf5_inside import refuse_outside
from score_rl.data.sources.reader import NamedDataset, Reader, Recording, Request
from score_rl.errors import InputError, not_installed, printable

SPACES = gymnasium.spaces
VERSIONED = re.compile(r"-v\d+$")
EXAMPLE = "minari:mujoco/hopper/medium-v0"


def _read(name: str, request: Request) -> Recording:
    """An ID, or the path of a folder: that is absolute or begins with a dot."""
    folder = Path(name) if is_minari_folder(Path(name)) else None
    if folder is None and Path(name).is_dir():
        raise InputError(f"{name} is a folder without Minari's data: give a file, or a folder that Minari wrote.")
    dataset = _opened_folder(folder) if folder is not None else _opened(name)
    with _sound(name):
        return _recording(name, dataset, folder, request)


@contextmanager
def _sound(name: str) -> Iterator[None]:
    """Whatever Minari and HDF5 raise on a damaged data set becomes one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = printable(str(error).partition("\n")[0][:200]) or type(error).__name__
        raise InputError(f"{name} is damaged ({reason}): fetch or make it again.") from error


def _recording(name: str, dataset: Any, folder: Path | None, request: Request) -> Recording:
    observed, acted = dataset.observation_space, dataset.action_space
    observations, actions = _names(name, "observation", observed), _names(name, "action", acted)
    columns = _columns(name, dataset, (len(observations), len(actions)), request.progress)
    environment = _environment(dataset)
    origin = {"kind": "minari", "id": dataset.spec.dataset_id, "minari": str(dataset.spec.minari_version)}
    if folder is not None:  # anybody's: nobody chose settings for it
        origin |= {"kind": "file", "path": str(folder)}
    return Recording(
        columns,
        origin=origin | {"environment": environment or _asked_environment(dataset)},
        label="",
        environment=environment or "none",
        action_bounds=_bounds(acted),
        labels=NO_LABELS if isinstance(observed, SPACES.Box) else Labels(tuple(observations), tuple(actions)),
    )


def is_minari_folder(path: Path) -> bool:
    """Whether a folder is one of Minari's, or the data in it."""
    return path.is_dir() and any((path / inner / "metadata.json").exists() for inner in ("", "data"))


def _minari() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import minari
    except ImportError:
        raise not_installed("Minari's data need minari", "minari") from None
    return minari


def _opened(name: str) -> Any:
    if not VERSIONED.search(name):
        raise InputError(
            f"minari:{printable(name)} is no name of Minari's: they end with a version, such as {EXAMPLE}. "
            "`minari list remote` shows them."
        )
    minari = _minari()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return minari.load_dataset(name, download=name not in minari.list_local_datasets())
    except Exception as error:  # Minari's are of many kinds, with the network's among them
        raise InputError(
            f"minari:{name} cannot be had ({str(error).splitlines()[0] if str(error) else type(error).__name__}); "
            "minari list remote shows the names, and minari download fetches one where there is a network."
        ) from None


def _opened_folder(folder: Path) -> Any:
    minari = _minari()
    inner = folder if (folder / "metadata.json").exists() else folder / "data"
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise InputError(f"{path} is a link or no ordinary file, and none is followed: put the file itself there.")
        if path.suffix in (".hdf5", ".h5"):
            refuse_outside(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return minari.MinariDataset(inner)
    except Exception as error:
        reason = printable(str(error).partition("\n")[0][:200]) or type(error).__name__
        raise InputError(f"{folder} cannot be read as a Minari data set ({reason}); fetch or make it again.") from None


def _columns(name: str, dataset: Any, widths: tuple[int, int], progress: bool) -> dict[str, np.ndarray]:
    total = int(dataset.total_steps)
    if not total:
        raise InputError(f"{name} has no steps; at least one is needed.")
    arrays: dict[str, np.ndarray] = {
        "observations": np.empty((total, widths[0]), np.float32),
        "next_observations": np.empty((total, widths[0]), np.float32),
        "actions": np.empty((total, widths[1]), np.float32),
        "rewards": np.empty(total, np.float32),
        **{mark: np.zeros(total, bool) for mark in ("terminals", "timeouts", "trajectory_ends")},
    }
    done = 0
    with row_progress(f"reading {name}", total, progress) as advance:
        for episode in dataset.iterate_episodes():
            count = len(episode.rewards)
            rows = slice(done, done + count)
            seen = _flat(episode.observations, count + 1)
            arrays["observations"][rows], arrays["next_observations"][rows] = seen[:-1], seen[1:]
            arrays["actions"][rows] = _flat(episode.actions, count)
            arrays["rewards"][rows] = episode.rewards
            arrays["terminals"][rows] = np.asarray(episode.terminations, bool)
            done += count
            arrays["trajectory_ends"][done - 1] = True
            advance(count)
    arrays["timeouts"] = arrays["trajectory_ends"] & ~arrays["terminals"]
    return {key: values[:done] for key, values in arrays.items()}


def _flat(values: Any, rows: int) -> np.ndarray:
    """The parts of a space side by side, in the order of `_names`."""
    if isinstance(values, dict):
        return np.concatenate([_flat(part, rows) for part in values.values()], axis=1)
    if isinstance(values, tuple):
        return np.concatenate([_flat(part, rows) for part in values], axis=1)
    return np.asarray(values, np.float32).reshape(rows, -1)


def _names(name: str, what: str, space: Any) -> list[str]:
    """What the columns of a space are called; a space that is no vector is refused."""
    return [text.lstrip("_") for text in _parts(name, what, "", space)]


def _parts(name: str, what: str, before: str, space: Any) -> Iterator[str]:
    if isinstance(space, SPACES.Dict):
        for key, inner in space.spaces.items():
            yield from _parts(name, what, f"{before}_{key}", inner)
    elif isinstance(space, SPACES.Tuple):
        for number, inner in enumerate(space.spaces):
            yield from _parts(name, what, f"{before}_{number}", inner)
    elif isinstance(space, SPACES.Box) and len(space.shape) <= 1:
        size = int(np.prod(space.shape))
        yield from (f"{before}_{number}" if size > 1 or not before else before for number in range(size))
    else:
        raise InputError(
            f"{name} has the {what} space {space}, but vectors of numbers are expected, or dictionaries of them: "
            "choose another data set."
        )


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray] | None:
    if not isinstance(space, SPACES.Box) or not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        return None
    return space.low.reshape(-1).astype(np.float32), space.high.reshape(-1).astype(np.float32)


def _asked_environment(dataset: Any) -> str | None:
    return None if dataset.env_spec is None else str(dataset.env_spec.id)


def _environment(dataset: Any) -> str | None:
    """The environment, if Gymnasium knows it by itself and its observations are one vector, as a simulator's are here.

    A name with a module is left to the user: no file causes an import.
    """
    name = _asked_environment(dataset)
    plain = isinstance(dataset.observation_space, SPACES.Box) and isinstance(dataset.action_space, SPACES.Box)
    return name if name in gymnasium.registry and plain and ":" not in str(name) else None


def _local(cache: Path) -> list[NamedDataset]:
    """Those that Minari keeps on this machine."""
    try:
        minari = _minari()
    except InputError:
        return []
    found = minari.list_local_datasets()
    return [
        NamedDataset(f"minari:{name}", "", int(about["total_steps"]), "Minari, on this machine", Path(), cached=True)
        for name, about in sorted(found.items())
    ]


READER = Reader(_read, _local)
