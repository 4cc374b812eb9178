"""The data of an experiment: named in the request, found and loaded, described in the record."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.sources.registry import PREFIXES, is_named
from score_rl.data.splitting import split_dataset
from score_rl.envs import normalised_score
from score_rl.errors import InputError
from score_rl.store.records import DatasetRecord, ExperimentRecord
from score_rl.store.request import ExperimentSpec


class OtherDataError(InputError):
    """An experiment that goes on found other data than it began with."""


def source_names(dataset: Any) -> tuple[str, ...]:
    """Names and paths for the request: an experiment must find its data again when it is resumed."""
    given = (dataset,) if isinstance(dataset, str) or not isinstance(dataset, Iterable) else tuple(dataset)
    for one in given:
        if isinstance(one, Dataset):
            raise InputError(
                f"{one.name} is a Dataset, and training reads its data itself, also when it is resumed: "
                f"pass {_origin(one)}."
            )
        if not isinstance(one, str | Path):
            raise InputError(
                f"a data set is given as {type(one).__name__}; give the name of one or the path of an HDF5 file."
            )
    return tuple(str(one) for one in given)


def _origin(dataset: Dataset) -> str:
    """What to pass instead of a data set that is in memory."""
    kind = dataset.source.get("kind")
    if kind in PREFIXES:
        return repr(dataset.name)
    if kind == "file":
        return f"{dataset.source['path']!r}, the file it was read from"
    return (
        "the path of an HDF5 file to which you wrote its observations, actions, rewards, next_observations, terminals "
        "and timeouts, each under its name, such as with h5py"
    )


def locate_source(name: str, began_in: str | None) -> str:
    """A name or path that is right here, for data of an experiment that began in the folder `began_in`."""
    path = Path(name).expanduser()
    if is_named(name) or path.is_absolute():
        return name
    if began_in is not None and (Path(began_in) / path).exists():
        return str(Path(began_in) / path)
    if not path.exists():
        there = began_in or "the folder in which training began"
        raise InputError(
            f"{path} is neither here nor in {there}, relative to which the experiment names its data; "
            + ("put it back, or call `resume` in a folder that has it." if began_in else "call `resume` there.")
        )
    return name


def load_datasets(spec: ExperimentSpec, quiet: bool) -> list[Dataset]:
    """What is trained on: without the trajectories that the request holds out."""
    whole = load_whole_datasets(spec, quiet)
    return whole if spec.hold_out is None else [split_dataset(dataset, spec.hold_out).kept for dataset in whole]


def load_whole_datasets(spec: ExperimentSpec, quiet: bool) -> list[Dataset]:
    datasets = [
        load_dataset(
            name,
            transitions=spec.transitions,
            seed=spec.data_seed,
            environment=None if spec.environment == "none" else spec.environment,
            action_bounds=spec.action_bounds,
            least_usable=spec.least_usable,
            progress=not quiet,
        )
        for name in spec.datasets
    ]
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets have the same name ({', '.join(names)}); rename a file.")
    return datasets


def load_same_datasets(record: ExperimentRecord, quiet: bool) -> list[Dataset]:
    """The data of an experiment that goes on, wherever it is called from; refuses others than at its start."""
    found = tuple(locate_source(name, record.began_in) for name in record.request.datasets)
    datasets = load_datasets(dataclasses.replace(record.request, datasets=found), quiet)
    for dataset in datasets:
        _refuse_others(record, dataset)
    return datasets


def load_same_dataset(record: ExperimentRecord, name: str, quiet: bool) -> Dataset:
    """One data set of an experiment by its name, the others left alone where names tell which it is."""
    sources = sorted(record.request.datasets, key=lambda source: name not in (source, Path(source).stem))
    for source in sources:
        found = (locate_source(source, record.began_in),)
        (dataset,) = load_datasets(dataclasses.replace(record.request, datasets=found), quiet)
        if dataset.name == name:
            _refuse_others(record, dataset)
            return dataset
    raise InputError(f"none of the sources of the experiment ({', '.join(sources)}) is called {name} any more.")


def _refuse_others(record: ExperimentRecord, dataset: Dataset) -> None:
    stored = record.datasets.get(dataset.name)
    checksum = "" if stored is None else stored.checksum
    if checksum != dataset.checksum:
        raise OtherDataError(
            f"{dataset.name} is not the data this experiment was started with (checksum {dataset.checksum[:12]}, "
            f"then {checksum[:12] or 'none'}); restore that file, or start a new experiment."
        )


def dataset_record(dataset: Dataset) -> DatasetRecord:
    """What a stored result says of its data, the behaviour policy's performance included."""
    returns, complete = dataset.returns()
    chosen = returns[complete] if complete.any() else returns
    scores = normalised_score(dataset.environment, chosen) if dataset.environment else None
    return DatasetRecord(
        checksum=dataset.checksum,
        rows=len(dataset),
        trajectories=len(dataset.trajectories),
        environment=dataset.environment,
        source=dict(dataset.source),
        behaviour_return=float(chosen.mean()),
        behaviour_return_std=float(chosen.std()),
        behaviour_score=None if scores is None else float(scores.mean()),
        behaviour_score_std=None if scores is None else float(scores.std()),
        labels=dataset.labels,
    )
