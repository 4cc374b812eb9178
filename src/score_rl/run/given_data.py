"""Data that `train` is given in memory. They are kept in the folder of the experiment, so that it can be resumed."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from score_rl.data.dataset import Dataset
from score_rl.data.saving import save_dataset
from score_rl.errors import InputError
from score_rl.store.request import KEPT, KEPT_IN


class GivenData(NamedTuple):
    """What the request names, and those of its data sets that are in memory."""

    names: tuple[str, ...]
    kept: Mapping[str, Dataset]  # by their names in the request


def given_data(
    dataset: Any, columns: Mapping[str, Any] | None, environment: str | None, action_bounds: Any
) -> GivenData:
    """Names and paths as they are; what is in memory as a data set with a name in the experiment's folder.

    `columns` says what the columns of a frame are: the arguments of `Dataset.from_frame`. `environment` and
    `action_bounds` are those of the request.
    """
    options = {"action_bounds": action_bounds, "environment": environment}
    names, kept = [], {}
    for one in _listed(dataset):
        if isinstance(one, str | Path):
            names.append(str(one))
            continue
        made = _as_dataset(one, columns, {key: value for key, value in options.items() if value is not None})
        made = dataclasses.replace(made, name=re.sub(r"[^\w.=-]+", "-", made.name).strip("-.") or "data")
        names.append(f"{KEPT}{KEPT_IN}/{made.name}.hdf5")
        if names[-1] in kept:
            raise InputError(f"two data sets are called {made.name}; give each its own `name`.")
        kept[names[-1]] = made
    return GivenData(tuple(names), kept)


def keep_data(kept: Mapping[str, Dataset], folder: Path) -> None:
    """Write them to the folder of their experiment."""
    for name, dataset in kept.items():
        save_dataset(dataset, folder / name.removeprefix(KEPT))


def _listed(dataset: Any) -> tuple[Any, ...]:
    single = isinstance(dataset, str | Path | Dataset | Mapping) or _is_frame(dataset)
    return (dataset,) if single or not isinstance(dataset, Iterable) else tuple(dataset)


def _is_frame(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("pandas", "polars")


def _as_dataset(value: Any, columns: Mapping[str, Any] | None, options: Mapping[str, Any]) -> Dataset:
    if isinstance(value, Dataset):
        if "action_bounds" in options:
            raise InputError(f"{value.name} is a Dataset, which has its bounds; leave `action_bounds` out.")
        judged_in = options.get("environment", value.environment)
        return dataclasses.replace(value, environment=None if judged_in == "none" else judged_in)
    if isinstance(value, Mapping):
        return Dataset.from_arrays(value, **options)
    if not _is_frame(value):
        raise InputError(
            f"a data set is given as {type(value).__name__}; give the name of one, the path of a file, a Dataset, a "
            "frame, or a dictionary of arrays."
        )
    if columns is None:
        raise InputError(
            f"a frame was given, but not what its columns are; give them as `columns`, such as {_guess(value)}."
        )
    return Dataset.from_frame(value, **{**options, **columns})


def _guess(frame: Any) -> str:
    """What the columns of a frame could be."""
    from score_rl.data.tables.frames import table_of_frame
    from score_rl.data.tables.proposal import propose

    roles = propose(table_of_frame(frame, "frame")).roles
    said = {name: value for name, value in vars(roles).items() if value}
    return repr({name: list(value) if isinstance(value, tuple) else value for name, value in said.items()})
