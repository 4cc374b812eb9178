"""Which trajectories the judge uses: those that training held out, other data, or what was trained on."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.data.splitting import split_dataset
from score_rl.errors import InputError
from score_rl.run.experiment import Experiment
from score_rl.run.sources import load_whole_datasets, locate_source
from score_rl.run.trusted_modules import refuse_foreign_modules


class Parts(NamedTuple):
    """Evaluators are fitted to one part, and asked about the trajectories of the other."""

    fitted_to: Dataset
    asked: Dataset
    held_out: bool  # whether what is asked about took no part in training


def parts_of(experiment: Experiment, name: str, data: str | Path | None, quiet: bool) -> Parts:
    """The data of the experiment's runs on the data set of this name."""
    trained, aside = _trained_on(experiment, name, quiet)
    if data is not None:
        other = load_dataset(
            str(data), environment=trained.environment, action_bounds=_bounds(trained), progress=not quiet
        )
        if (other.observation_dim, other.action_dim) != (trained.observation_dim, trained.action_dim):
            raise InputError(
                f"{other.name} has {other.observation_dim} observations and {other.action_dim} actions, {name} has "
                f"{trained.observation_dim} and {trained.action_dim}; give data of the same columns."
            )
        return Parts(trained, other, other.checksum != trained.checksum)
    return Parts(trained, trained if aside is None else aside, aside is not None)


def _trained_on(experiment: Experiment, name: str, quiet: bool) -> tuple[Dataset, Dataset | None]:
    """What was trained on and what was held out, as they were then."""
    spec, record = experiment.spec, experiment.record
    refuse_foreign_modules(record)
    likely_first = sorted(spec.datasets, key=lambda source: name not in (source, Path(source).stem))
    for source in (locate_source(each, record) for each in likely_first):
        (whole,) = load_whole_datasets(dataclasses.replace(spec, datasets=(source,)), quiet)
        if whole.name != name:
            continue
        kept, aside = (whole, None) if spec.hold_out is None else split_dataset(whole, spec.hold_out)
        stored = record.datasets[name].checksum
        if kept.checksum != stored:
            raise InputError(
                f"{name} is not the data this experiment was trained on (checksum {kept.checksum[:12]}, then "
                f"{stored[:12]}); restore that file."
            )
        return kept, aside
    raise InputError(f"{experiment.path} names no data set {name}; restore its experiment.json from a copy.")


def _bounds(dataset: Dataset) -> tuple[float, ...]:
    """LOW HIGH of each action."""
    return tuple(float(x) for pair in zip(dataset.action_low, dataset.action_high, strict=True) for x in pair)
