"""Rows are packed and read by one layout."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms.algorithm import Shapes
from score_rl.data.treatment import fit_treatment
from score_rl.engine.batches import RowLayout, draw_batch, pack_rows, rows_bytes, shapes_of
from tests.engine.made_up import recording


@pytest.mark.parametrize("shapes", [Shapes(1, 1), Shapes(5, 2), Shapes(111, 8)])
def test_every_column_belongs_to_one_part(shapes: Any) -> None:
    layout = RowLayout.of(shapes)
    numbers = np.arange(layout.width)
    parts = [np.atleast_1d(numbers[columns]) for columns in layout[:-1]]
    np.testing.assert_array_equal(np.concatenate(parts), numbers)
    assert [len(part) for part in parts] == [shapes.observation, shapes.action, 1, shapes.observation, 1, 1]


def test_rows_are_what_0_1_0_packed() -> None:
    """s, a, r, s', terminal, followed."""
    data = recording(rows=300)
    rows = pack_rows(data)
    columns = (
        data.observations, data.actions, data.rewards[:, None], data.next_observations, data.terminals[:, None],
        data.followed()[:, None],
    )  # fmt: skip
    np.testing.assert_array_equal(rows, np.concatenate(columns, axis=1, dtype=np.float32))
    assert rows.dtype == np.float32
    assert rows_bytes(data) == rows.nbytes


def test_drawing_treats_every_column() -> None:
    data = recording()
    treatment = fit_treatment(data, normalise_states=True, reward_scaling="minmax")
    rows, length = jnp.asarray(pack_rows(data)), jnp.int32(len(data))
    batch = draw_batch(treatment, shapes_of(data), rows, jnp.int32(0), length, jnp.arange(len(data)))
    np.testing.assert_allclose(batch.observations.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(batch.observations.std(0), 1, atol=2e-3)  # the 1e-3 in the denominator
    assert float(batch.rewards.min()) == 0
    assert float(batch.rewards.max()) == 1
    np.testing.assert_array_equal(batch.actions, data.actions)
    np.testing.assert_array_equal(batch.rows, np.arange(len(data)))
    np.testing.assert_array_equal(batch.terminals, data.terminals.astype(np.float32))
    assert not np.array_equal(batch.terminals.astype(bool), data.terminals | data.timeouts)
    ends = np.zeros(len(data), bool)
    ends[49::50] = True
    assert batch.next_actions is not None
    np.testing.assert_array_equal(batch.followed, ~ends)
    np.testing.assert_array_equal(batch.next_actions[:-1][~ends[:-1]], data.actions[1:][~ends[:-1]])
    expected = (data.next_observations - data.observations.mean(0)) / (data.observations.std(0) + 1e-3)
    np.testing.assert_allclose(batch.next_observations, expected, atol=1e-4)


def test_a_data_set_is_drawn_from_where_its_rows_begin() -> None:
    """Numbers count from `offset`; after the last row comes the last row again, not another data set's."""
    one, two = recording("one", rows=100), recording("two", rows=100, seed=1)
    treatment = fit_treatment(two, normalise_states=False, reward_scaling="none")
    rows = jnp.asarray(np.concatenate([pack_rows(one), pack_rows(two), pack_rows(one)]))
    batch = draw_batch(treatment, shapes_of(two), rows, jnp.int32(100), jnp.int32(100), jnp.array([0, 98, 99]))
    np.testing.assert_array_equal(batch.observations, two.observations[[0, 98, 99]])
    np.testing.assert_array_equal(batch.next_actions, two.actions[[1, 99, 99]])
