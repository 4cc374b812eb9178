"""Statistics of a data set, against the textbook on small columns."""

import numpy as np
import pytest

from score_rl.data.treatment import fit_treatment
from score_rl.engine.statistics import dataset_statistics
from tests.engine.made_up import recording


@pytest.mark.parametrize("normalise_states", [False, True])
def test_statistics_are_of_all_rows_in_treated_units(normalise_states: bool) -> None:
    data = recording(rows=300)
    treatment = fit_treatment(data, normalise_states=normalise_states, reward_scaling="none")
    scale = np.asarray(treatment.observation_scale, np.float64)
    observations = (data.observations - np.asarray(treatment.observation_mean, np.float64)) / scale
    changes = (data.next_observations.astype(np.float64) - data.observations) / scale
    statistics = dataset_statistics(data, treatment)
    inputs = np.concatenate([observations, data.actions], axis=1)
    outcomes = np.concatenate([data.rewards[:, None], changes], axis=1)
    for spread, table in ((statistics.inputs, inputs), (statistics.outcomes, outcomes)):
        np.testing.assert_allclose(spread.mean, table.mean(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(spread.std, table.std(0), rtol=1e-5)
        np.testing.assert_allclose(spread.deviation, np.abs(table - table.mean(0)).mean(0), rtol=1e-5)
        assert {column.dtype for column in spread} == {np.dtype(np.float32)}
