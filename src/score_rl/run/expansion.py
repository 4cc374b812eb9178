"""The runs that a request expands to."""

import itertools
from collections.abc import Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.presets import preset
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.engine.runs import Run
from score_rl.envs.tasks import task_of
from score_rl.store.records import RunRecord, config_json
from score_rl.store.request import ExperimentSpec, label, short


def expand_runs(spec: ExperimentSpec, algorithm: Algorithm, datasets: Sequence[Dataset]) -> list[Run]:
    """The product: data sets × settings × variants × seeds."""
    names = list(spec.settings)
    varied = [name for name in names if len(spec.settings[name]) > 1]
    runs = []
    for dataset, values, variant, seed in itertools.product(
        datasets, itertools.product(*(spec.settings[name] for name in names)), spec.variants, spec.seeds
    ):
        settings = dict(zip(names, values, strict=True)) | dict(variant)
        parts = [dataset.name.replace(":", "-").replace("/", "-")]
        parts += [f"{name}={short(settings[name])}" for name in varied if name not in variant]
        parts += label(variant)
        parts.append(f"seed={seed}")
        runs.append(
            Run(
                "_".join(parts),
                algorithm,
                dataset,
                seed,
                make_config(algorithm, preset_of(algorithm, dataset) | settings),
            )
        )
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
