"""The runs that a request expands to, and what is stored of each."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm, cycle
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config, names_of
from score_rl.data.dataset import Dataset
from score_rl.data.ownership import is_own
from score_rl.data.readiness import refuse_unready
from score_rl.engine.runs import Run
from score_rl.envs.tasks import task_of
from score_rl.store.records import RunRecord, config_json
from score_rl.store.request import AlgorithmRequest, ExperimentSpec, label, short


def combinations(
    settings: Mapping[str, tuple[Any, ...]], variants: Sequence[Mapping[str, Any]]
) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Every combination of the settings' values, with every variant over it; each with its variant."""
    products = itertools.product(*settings.values())
    return [
        (dict(zip(settings, values, strict=True)) | dict(variant), variant)
        for values, variant in itertools.product(products, variants)
    ]


def common_cycle(requests: Sequence[AlgorithmRequest]) -> int:
    """The least number of updates that is whole cycles of every algorithm with every combination of its settings."""
    cycles = [1]
    for request in requests:
        algorithm = get_algorithm(request.name)
        made = (make_config(algorithm, chosen) for chosen, _ in combinations(request.settings, request.variants))
        cycles += [cycle(algorithm, config) for config in made]
    return math.lcm(*cycles)


def expand_runs(spec: ExperimentSpec, datasets: Sequence[Dataset]) -> list[Run]:
    """The product, for one algorithm after the other: data sets × settings × variants × seeds."""
    runs = []
    for request in spec.algorithms:
        algorithm = get_algorithm(request.name)
        varied = [name for name, values in request.settings.items() if len(values) > 1]
        called = [file_name(request.name)] if len(spec.algorithms) > 1 else []
        for dataset, (settings, variant), seed in itertools.product(
            datasets, combinations(request.settings, request.variants), spec.seeds
        ):
            named = [f"{name}={short(settings[name])}" for name in varied if name not in variant]
            first = dataset.name.replace(":", "-").replace("/", "-")
            name = "_".join([first, *called, *named, *label(variant), f"seed={seed}"])
            chosen = preset_of(algorithm, dataset) | settings
            if spec.scales_own_data:
                chosen = scaling_of_own(algorithm, dataset, chosen) | chosen
            config = make_config(algorithm, chosen)
            runs.append(Run(name, algorithm, dataset, seed, config))
    return runs


def file_name(algorithm: str) -> str:
    """An algorithm's name in names of runs and folders."""
    return algorithm.replace(":", "-")


def refuse_unready_runs(spec: ExperimentSpec, runs: Sequence[Run]) -> None:
    """Refuse data that the runs cannot begin with, before a folder is made."""
    for dataset in {run.dataset.checksum: run.dataset for run in runs}.values():
        scalings = [run.config.reward_scaling for run in runs if run.dataset.checksum == dataset.checksum]
        refuse_unready(dataset, spec.environment or dataset.environment, scalings)


def preset_of(algorithm: Algorithm, dataset: Dataset) -> dict[str, Any]:
    """What the algorithm's authors set for these data."""
    return preset(algorithm.name, dataset.name, task_of(dataset.environment or ""))


def scaling_of_own(algorithm: Algorithm, dataset: Dataset, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Standardised observations, where a default that was chosen for a benchmark would take somebody's own data raw.

    Columns of logs may differ by orders of magnitude, and the large ones then drown the others. The rule of a task
    (MOPO, MOReL) needs observations as recorded.
    """
    has_setting = "normalise_states" in names_of(algorithm.Config) and not algorithm.Config().normalise_states
    if not has_setting or not is_own(dataset) or chosen.get("task", "none") != "none":
        return {}
    return {"normalise_states": True}


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
