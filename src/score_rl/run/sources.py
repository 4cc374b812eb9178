"""The data of an experiment: named so that they are found again, loaded, doubted and described."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from score_rl.algorithms.settings import scheduled_for, schedules
from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.sources.registry import PREFIXES, is_named
from score_rl.data.warnings import find_large_observations, find_warnings
from score_rl.engine.runs import Run
from score_rl.envs import normalised_score
from score_rl.errors import InputError, as_read
from score_rl.run.expansion import preset_of
from score_rl.store.records import DatasetRecord
from score_rl.store.request import ExperimentSpec


def dataset_names(dataset: Any) -> tuple[str, ...]:
    """Names and files as they are stored: an experiment must find its data again when it is resumed."""
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


def found_again(name: str, began_in: str | None) -> str:
    """What `load_dataset` takes for a data set of an experiment that began in another folder."""
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
    datasets = [
        load_dataset(
            name,
            transitions=spec.transitions,
            seed=spec.data_seed,
            environment=None if spec.environment == "none" else spec.environment,
            action_bounds=spec.action_bounds,
            progress=not quiet,
        )
        for name in spec.datasets
    ]
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets have the same name ({', '.join(names)}); rename a file.")
    return datasets


def say_doubts(runs: Sequence[Run], console: Console) -> None:
    """About data from elsewhere; what is recorded or fetched by name is known."""
    for run in {run.dataset.checksum: run for run in runs if run.dataset.source.get("kind") == "file"}.values():
        found = find_warnings(run.dataset)
        if not run.config.normalise_states:
            found += find_large_observations(run.dataset)
        for doubt in found:
            console.print(
                f"Warning, {run.dataset.name}: {as_read(doubt)}", highlight=False, markup=False, soft_wrap=True
            )


def say_presets(runs: Sequence[Run], given: Collection[str], console: Console) -> None:
    """What the authors chose for these data, where the user has not said otherwise."""
    for run in {run.dataset.checksum: run for run in runs}.values():
        chosen = preset_of(run.algorithm, run.dataset)
        told = ", ".join(f"{name} {value}" for name, value in chosen.items() if name not in given)
        if told:
            console.print(
                f"Note, {run.algorithm.title} on {run.dataset.name} has its authors' settings for such data: {told}",
                highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip


def say_schedules(runs: Sequence[Run], steps: int, console: Console) -> None:
    """Where a method counts on more updates than it gets, or on fewer."""
    said = {}
    for run in runs:
        for name, schedule in schedules(run.config).items():
            updates = getattr(run.config, name)
            what = schedule.shorter if updates > steps else schedule.longer if 0 < updates < steps else ""
            if what:
                usual = scheduled_for(getattr(run.algorithm.Config(), name), steps)
                said[name] = (
                    f"{run.algorithm.title}: {name} is {updates:,} and training has {steps:,} updates, so {what}. "
                    f"For the authors' share of a run: `config.{name}={usual}`"
                )
    for message in said.values():
        console.print(f"Note, {as_read(message)}", highlight=False, markup=False, soft_wrap=True)


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
    )
