"""The runs that a request expands to, and what is stored of each."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm, cycle
from score_rl.algorithms.presets import preset
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.engine.runs import Run
from score_rl.envs.tasks import task_of
from score_rl.errors import InputError
from score_rl.store.records import RunRecord, config_json
from score_rl.store.request import ExperimentSpec, label, short


def values_of(settings: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Each setting with all its values: a list is swept over."""
    values = {name: tuple(value) if isinstance(value, list) else (value,) for name, value in settings.items()}
    for name, listed in values.items():
        if not listed:
            raise InputError(f"`config.{name}` is an empty list; give at least one value, or leave it out.")
    return values


def combinations(
    settings: Mapping[str, tuple[Any, ...]], variants: Sequence[Mapping[str, Any]]
) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Every combination of the settings' values, with every variant over it; each with its variant."""
    products = itertools.product(*settings.values())
    return [
        (dict(zip(settings, values, strict=True)) | dict(variant), variant)
        for values, variant in itertools.product(products, variants)
    ]


def common_cycle(
    algorithm: Algorithm, settings: Mapping[str, tuple[Any, ...]], variants: Sequence[Mapping[str, Any]]
) -> int:
    """The least number of updates that is whole cycles of the algorithm with every combination of settings."""
    made = (make_config(algorithm, chosen) for chosen, _ in combinations(settings, variants))
    return math.lcm(*(cycle(algorithm, config) for config in made))


def expand_runs(spec: ExperimentSpec, algorithm: Algorithm, datasets: Sequence[Dataset]) -> list[Run]:
    """The product: data sets × settings × variants × seeds."""
    varied = [name for name, values in spec.settings.items() if len(values) > 1]
    runs = []
    for dataset, (settings, variant), seed in itertools.product(
        datasets, combinations(spec.settings, spec.variants), spec.seeds
    ):
        named = [f"{name}={short(settings[name])}" for name in varied if name not in variant]
        first = dataset.name.replace(":", "-").replace("/", "-")
        name = "_".join([first, *named, *label(variant), f"seed={seed}"])
        config = make_config(algorithm, preset_of(algorithm, dataset) | settings)
        runs.append(Run(name, algorithm, dataset, seed, config))
    return runs


def preset_of(algorithm: Algorithm, dataset: Dataset) -> dict[str, Any]:
    """What the algorithm's authors set for these data."""
    return preset(algorithm.name, dataset.name, task_of(dataset.environment or ""))


def run_record(run: Run, fleet: int, position: int) -> RunRecord:
    """What is stored of a run."""
    return RunRecord(
        id=run.id,
        algorithm=run.algorithm.name,
        dataset=run.dataset.name,
        checksum=run.dataset.checksum,
        environment=run.dataset.environment,
        observation_dim=run.dataset.observation_dim,
        action_dim=run.dataset.action_dim,
        seed=run.seed,
        config=config_json(run.config),
        fleet=fleet,
        position=position,
    )
