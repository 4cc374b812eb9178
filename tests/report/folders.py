"""Experiment folders as training leaves them, written through the store itself, with numbers that tests choose."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter, Row
from score_rl.store.records import DatasetRecord, ExperimentRecord, RunRecord, RunStatus, StatusRecord
from score_rl.store.request import AlgorithmRequest, ExperimentSpec

PROVENANCE = {
    "code": "0123456789abcdef",
    "versions": {"score-rl": "0.1.0", "jax": "0.10.2"},
    "python": "3.11.7",
    "device": {"platform": "cpu", "kind": "cpu", "count": 1},
    "cores": 2,
    "system": "Linux x86_64",
}


def write_experiment(
    path: Path,
    *,
    algorithm: str = "score",
    dataset: str = "replica:hopper-medium",
    settings: Sequence[Mapping[str, Any]] = ({},),
    scores: Mapping[int, Sequence[float]],  # seed: along training, every 10 updates
    steps: int = 30,
    state: str = "finished",
    states: Mapping[int, str] | None = None,
    environment: str | None = "hopper",
    rows: int | None = 3000,
    error: str | None = None,
    metric: str = "evaluation/score",
    unequal: bool = False,
) -> Path:
    """One run for each setting and seed; the scores of a later setting are 10 higher than of the one before."""
    name = dataset.replace(":", "-").replace("/", "-")
    runs: list[RunRecord] = []
    measured: list[Row] = []
    status = StatusRecord(state, error)
    for number, setting in enumerate(settings):
        for seed, values in scores.items():
            label = "_".join([name, *(f"{k}={v}" for k, v in setting.items()), f"seed={seed}"])
            config = {"beta": 0.2, "hidden": [16, 16], **setting}
            runs.append(RunRecord(label, algorithm, dataset, "c" * 64, environment, 11, 3, seed, config, 0, len(runs)))
            run_state = (states or {}).get(seed, "finished")
            if run_state != "waiting":
                status.runs[label] = RunStatus(run_state, 10 * len(values))
            for place, value in enumerate(values):
                step = 10 * (place + 1)
                measured += [
                    Row(label, step, "train/uncertainty", 1.0 / step),
                    Row(label, step, "speed/updates_per_second", 100.0 + seed),
                ]
                if environment is not None:
                    measured.append(Row(label, step, metric, value + 10 * number))
                if unequal:
                    measured.append(Row(label, step, "evaluation/episode_length", 50.0))
    request = ExperimentSpec(
        (AlgorithmRequest(algorithm),),
        (dataset,),
        tuple(scores),
        steps,
        eval_every=10,
        eval_episodes=2,
        log_every=10,
        transitions=rows,
    )
    data = DatasetRecord("c" * 64, rows, 10, environment, {"kind": "replica"}, 1000.0, 10.0, 40.0, 1.0)
    if unequal:  # recordings that stopped at different lengths
        data = DatasetRecord("c" * 64, rows, 10, environment, {"kind": "replica"}, behaviour_reward=0.25)
    folder = Folder.create(path, ExperimentRecord(request, PROVENANCE, {dataset: data}, tuple(runs)))
    folder.write_status(status)
    writer = MetricsWriter(path, tensorboard=False)
    writer.write(measured)
    writer.close()
    return path
