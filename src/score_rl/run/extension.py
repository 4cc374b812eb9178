"""Making an experiment longer: its request with more updates, and the trace that this leaves in its folder."""

import dataclasses
import math
from datetime import UTC, datetime

from score_rl.algorithms.algorithm import cycle
from score_rl.errors import InputError
from score_rl.run.experiment import Experiment
from score_rl.run.status import StatusKeeper
from score_rl.store.lock import held
from score_rl.store.provenance import provenance
from score_rl.store.request import ExperimentSpec


def longer_request(experiment: Experiment, steps: int) -> ExperimentSpec:
    """The experiment's request with so many updates."""
    before = experiment.spec.steps
    if steps < before:
        raise InputError(
            f"`steps` is {steps}, and {experiment.path} trains {before} updates; give more, or leave `steps` out."
        )
    spec = dataclasses.replace(experiment.spec, steps=steps)
    spec.check(math.lcm(*(cycle(run.algorithm, run.config) for run in experiment)))
    return spec


def store_longer_request(experiment: Experiment, spec: ExperimentSpec) -> None:
    """The longer request, with the code, libraries and machine that go on from here."""
    folder, record = experiment.folder, experiment.record
    with held(folder.path):
        StatusKeeper(folder).make_longer()
        longer = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **provenance()}
        earlier = record.provenance.get("longer", {})
        stamp = {"longer": {**earlier, f"{experiment.spec.steps} to {spec.steps} updates": longer}}
        folder.write_experiment(dataclasses.replace(record, request=spec, provenance={**record.provenance, **stamp}))
