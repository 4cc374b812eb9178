"""The data of an experiment: named in the request, found and loaded, described in the record."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.sources.hdf5 import Metadata, read_metadata
from score_rl.data.sources.hdf5_file import open_hdf5
from score_rl.data.sources.registry import is_named
from score_rl.data.splitting import split_dataset
from score_rl.envs import episode_limit, is_module_named, normalised_score
from score_rl.errors import InputError
from score_rl.run.trusted_modules import refuse_foreign, refuse_foreign_modules
from score_rl.store.records import DatasetRecord, ExperimentRecord
from score_rl.store.request import KEPT, ExperimentSpec

NOTHING_KEPT: Mapping[str, Dataset] = {}


class OtherDataError(InputError):
    """An experiment that goes on found other data than it began with."""


def locate_source(name: str, record: ExperimentRecord) -> str:
    """A name or path that is right here, of data that an experiment names."""
    if name.startswith(KEPT):
        return f"{KEPT}{(record.folder or Path()) / name.removeprefix(KEPT)}"
    began_in, path = record.began_in, Path(name).expanduser()
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


def load_datasets(spec: ExperimentSpec, quiet: bool, kept: Mapping[str, Dataset] = NOTHING_KEPT) -> list[Dataset]:
    """What is trained on: without the trajectories that the request holds out. `kept` are in memory already."""
    whole = load_whole_datasets(spec, quiet, kept)
    return whole if spec.hold_out is None else [split_dataset(dataset, spec.hold_out).kept for dataset in whole]


def load_whole_datasets(spec: ExperimentSpec, quiet: bool, kept: Mapping[str, Dataset] = NOTHING_KEPT) -> list[Dataset]:
    datasets = [kept[name] if name in kept else _load(name, spec, quiet) for name in spec.datasets]
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets have the same name ({', '.join(names)}); rename a file.")
    return datasets


def _load(name: str, spec: ExperimentSpec, quiet: bool) -> Dataset:
    if name.startswith(KEPT):
        return _load_kept(Path(name.removeprefix(KEPT)))
    return load_dataset(
        name,
        transitions=spec.transitions,
        seed=spec.data_seed,
        environment=None if spec.environment == "none" else spec.environment,
        action_bounds=spec.action_bounds,
        least_usable=spec.least_usable,
        progress=not quiet,
    )


def _load_kept(path: Path) -> Dataset:
    """As it was given to `train`: what the request says is in it. Its environment may have the name of a module."""
    said = _metadata(path)
    if said.environment is None or said.action_bounds is None or not is_module_named(said.environment):
        return load_dataset(path, progress=False)
    refuse_foreign([said.environment], path)
    bounds = np.column_stack(said.action_bounds).ravel().tolist()
    return load_dataset(path, environment=said.environment, action_bounds=bounds, progress=False)


def _metadata(path: Path) -> Metadata:
    if not path.exists():
        raise InputError(f"{path} is missing: it has the data that this experiment was given; restore it.")
    with open_hdf5(path) as file:
        return read_metadata(file)


def load_same_datasets(record: ExperimentRecord, quiet: bool) -> list[Dataset]:
    """The data of an experiment that goes on, wherever it is called from; refuses others than at its start."""
    refuse_foreign_modules(record)
    found = tuple(locate_source(name, record) for name in record.request.datasets)
    datasets = load_datasets(dataclasses.replace(record.request, datasets=found), quiet)
    for dataset in datasets:
        _refuse_others(record, dataset)
    return datasets


def load_same_dataset(record: ExperimentRecord, name: str, quiet: bool) -> Dataset:
    """One data set of an experiment by its name, the others left alone where names tell which it is."""
    refuse_foreign_modules(record)
    sources = sorted(record.request.datasets, key=lambda source: name not in (source, Path(source).stem))
    for source in sources:
        found = (locate_source(source, record),)
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
    whole = whole_episodes(dataset)
    scores = normalised_score(dataset.environment, whole) if dataset.environment and whole is not None else None
    return DatasetRecord(
        checksum=dataset.checksum,
        rows=len(dataset),
        trajectories=len(dataset.trajectories),
        environment=dataset.environment,
        source=dict(dataset.source),
        behaviour_return=None if whole is None else float(whole.mean()),
        behaviour_return_std=None if whole is None else float(whole.std()),
        behaviour_score=None if scores is None else float(scores.mean()),
        behaviour_score_std=None if scores is None else float(scores.std()),
        behaviour_reward=float(dataset.rewards.mean(dtype=np.float64)),
        labels=dataset.labels,
    )


def whole_episodes(dataset: Dataset) -> np.ndarray | None:
    """Returns of recorded trajectories that are as long as episodes of their environment; None if there are none.

    A sum over a recording that merely stopped says nothing beside a sum over a whole episode. Whole is what ended in a
    terminal or was cut at the environment's own limit. Where no limit is known, all that stopped must be equally long.
    """
    returns, complete = dataset.returns()
    stopped = complete & ~dataset.terminals[dataset.trajectories[:, 1] - 1]
    lengths, limit = dataset.recorded.lengths, episode_limit(dataset.environment)
    if limit is not None:
        complete = complete & (~stopped | (lengths >= limit))
    elif len(np.unique(lengths[stopped])) > 1:
        return None
    return returns[complete] if complete.any() else None
