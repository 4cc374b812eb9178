"""Mean, deviation and spread of every column of a data set: what stages scale their inputs and outcomes by."""

from typing import Any

import numpy as np
from jaxtyping import Float

from score_rl.algorithms.algorithm import Spread, Statistics
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment


def dataset_statistics(dataset: Dataset, treatment: Treatment) -> Statistics:
    """Over all rows in treated units; computed in float64, stored in float32."""
    treat = Treatment(*map(_float64, treatment))
    observations = treat.observe(_float64(dataset.observations))
    changes = treat.observe(_float64(dataset.next_observations)) - observations
    actions, rewards = treat.action_in(_float64(dataset.actions)), treat.reward(_float64(dataset.rewards))
    return Statistics(
        inputs=_spread(np.concatenate([observations, actions], axis=1)),
        outcomes=_spread(np.concatenate([rewards[:, None], changes], axis=1)),
    )


def _float64(numbers: Any) -> Any:
    return np.asarray(numbers, np.float64)


def _spread(table: Float[np.ndarray, "rows columns"]) -> Spread:
    mean = table.mean(axis=0)
    numbers = (mean, table.std(axis=0), np.abs(table - mean[None]).mean(axis=0))
    return Spread(*(number.astype(np.float32) for number in numbers))
