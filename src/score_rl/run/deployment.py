"""What is exported of a run: its policy, the limits of its data, and where both come from."""

from collections.abc import Mapping
from typing import Any

from score_rl.deploy.limits import Limits, fit_limits
from score_rl.deploy.policy import TrainedPolicy
from score_rl.errors import InputError
from score_rl.run.asking import AskedRun
from score_rl.run.sources import load_same_dataset
from score_rl.store.records import ExperimentRecord, RunRecord, RunStatus


def limits_of(asked: AskedRun, experiment: ExperimentRecord, run: RunRecord) -> Limits:
    """How far the data of a run reach. They are read again, and must be those that it was trained on."""
    dataset = load_same_dataset(experiment, run.dataset, quiet=True)
    return fit_limits(dataset, None if asked.algorithm.uncertainty is None else asked.raw_uncertainty)


def trained_policy(
    asked: AskedRun, experiment: ExperimentRecord, run: RunRecord, limits: Limits | None, origin: Mapping[str, Any]
) -> TrainedPolicy:
    """What is exported of a run."""
    labels = experiment.datasets[run.dataset].labels
    return TrainedPolicy(asked.algorithm, asked.config, asked.state, asked.treatment, labels, limits, origin)


def refuse_diverged(run: str, status: RunStatus) -> None:
    """A policy of a run whose numbers were no longer finite is no policy."""
    if status.state == "diverged":
        raise InputError(
            f"{run} diverged by update {status.diverged_at:,}, so its policy is worth nothing and is not exported: "
            "export another run, or train again with a smaller learning rate."
        )


def origin_of(experiment: ExperimentRecord, run: RunRecord, status: RunStatus, updates: int) -> dict[str, Any]:
    """Where a policy comes from, as its file says it."""
    data = {"name": run.dataset, "checksum": run.checksum}
    doubt = {} if status.warning is None else {"warning": status.warning}
    return {
        "algorithm": run.algorithm,
        "run": run.id,
        "seed": run.seed,
        "updates": updates,
        "data": data,
        "experiment": experiment.created,
        "code": experiment.provenance.get("code"),
        "versions": experiment.provenance.get("versions"),
        **doubt,
    }
