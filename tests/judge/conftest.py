"""Evaluators fitted once to a plant whose values are known exactly."""

from typing import NamedTuple

import pytest

from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment
from score_rl.judge.candidates import Candidates
from score_rl.judge.dynamics import Model
from score_rl.judge.estimates import Estimates, Fits, estimates_by
from score_rl.judge.evidence import Evidence
from score_rl.judge.fitting import BehaviourDensity, Effort, fit_density, fit_model, fit_q
from tests.judge import linear_plant as plant

GAINS = {"strong": 1.5, "weak": 0.0, "behaviour's own": plant.GAIN}
EFFORT = Effort(
    updates=700,
    behaviour_updates=500,
    critics=3,
    hidden=(32, 32),
    density_updates=500,
    models=3,
    model_hidden=(32, 32),
    model_epochs=25,
    model_updates=2_000,
)


class Fitted(NamedTuple):
    dataset: Dataset
    behaviour: BehaviourDensity
    model: tuple[Model, Treatment]
    found: Estimates


@pytest.fixture(scope="session")
def evaluators() -> Fitted:
    dataset = plant.logs(300)
    candidates = Candidates({name: plant.linear(gain) for name, gain in GAINS.items()}, [-1.0], [1.0])
    behaviour, model = fit_density(dataset, EFFORT), fit_model(dataset, EFFORT)
    fits = Fits(behaviour, model, fit_q(dataset, candidates, plant.DISCOUNT, EFFORT))
    return Fitted(dataset, behaviour, model, estimates_by(Evidence(dataset, plant.DISCOUNT), candidates, fits))
