"""What a fleet's program reads: rows once for each data set, and for every run where its own are."""

from typing import Any

import jax
import numpy as np

from score_rl.engine.batches import pack_rows
from score_rl.engine.inputs import packed_rows, stacked_inputs
from tests.engine.made_up import make_runs, recording

MODEL: dict[str, Any] = {"models": (3,), "elites": (2,), "dynamics_hidden": ((8, 8, 8, 8),)}


def test_each_data_set_is_packed_once() -> None:
    data = [recording("one", rows=140), recording("two", rows=160, seed=1)]
    runs = make_runs(data, seeds=(0, 1))
    inputs, rows = stacked_inputs(runs), packed_rows(runs)
    np.testing.assert_array_equal(inputs.offset, [0, 0, 140, 140])
    np.testing.assert_array_equal(inputs.length, [140, 140, 160, 160])
    np.testing.assert_array_equal(rows, np.concatenate([pack_rows(dataset) for dataset in data]))
    np.testing.assert_allclose(inputs.treatment.observation_mean[2], data[1].observations.mean(0), rtol=1e-5)
    assert inputs.overview is None


def test_settings_are_stacked_and_share_their_keys() -> None:
    inputs = stacked_inputs(make_runs([recording()], seeds=(0, 1), beta=(0.1, 0.5)))
    np.testing.assert_allclose(inputs.config.beta, [0.1, 0.1, 0.5, 0.5])
    assert inputs.config.critics == make_runs([recording()])[0].config.critics, "static: the same for all"
    keys = jax.random.key_data(inputs.key)
    np.testing.assert_array_equal(keys[:2], keys[2:])
    assert (keys[0] != keys[1]).any()


def test_stages_know_their_data() -> None:
    """Statistics of all rows in treated units, and the first rows of trajectories; padded to the longest list."""
    data = [recording("one"), recording("two", rows=300, seed=1)]
    inputs = stacked_inputs(make_runs(data, algorithm="mopo", **MODEL))
    overview = inputs.overview
    assert overview is not None
    np.testing.assert_array_equal(overview.trajectories, [10, 6])
    np.testing.assert_array_equal(overview.starts[0], np.arange(0, 500, 50))
    np.testing.assert_array_equal(overview.starts[1], [*range(0, 300, 50), 0, 0, 0, 0])
    for number, dataset in enumerate(data):
        mean = overview.statistics.inputs.mean[number]
        np.testing.assert_allclose(mean[:5], dataset.observations.mean(0), rtol=1e-4, atol=1e-5)
