"""What the columns of a recording must be, and what is said of those that are not."""

from typing import Any

import numpy as np
import pytest

from score_rl.data.columns import bounds_of_list, flat_columns, outside_bounds, wrong_flags
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.errors import InputError

from .recordings import recording


def with_value(key: str, value: float, row: int = 7) -> dict[str, np.ndarray]:
    values = recording()[key].astype(np.float32)
    values[row] = value
    return {key: values}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_value("observations", np.nan), "observations has NaN or infinite values in 1 of 12 rows, .* row 7"),
        (with_value("next_observations", np.inf), "next_observations has NaN or infinite values .* row 7"),
        (with_value("actions", np.nan), "actions has NaN"),
        (with_value("rewards", -np.inf), "rewards has NaN or infinite"),
        (with_value("actions", 1.01), r"action 0 reaches .* in 1 rows, the first in row 7: .*`action_bounds`"),
        (with_value("terminals", 0.5), "terminals holds 0.5 in row 7"),
        ({"rewards": np.zeros(11)}, "differ in rows .observations 12, actions 12, rewards 11"),
        ({"rewards": np.zeros((12, 1))}, "rewards is an array of float64 with shape .12, 1."),
        ({"observations": np.zeros(12)}, "observations is an array of float64 with shape .12,."),
        ({"observations": np.full((12, 3), "a")}, "observations is an array of <U1"),
        ({"next_observations": np.zeros((12, 4))}, "next_observations has shape .12, 4. and observations .12, 3."),
        ({"terminals": np.zeros(12), "timeouts": np.zeros(12)}, "no terminal and no timeout in 12 rows"),
        ({"action_bounds": (1.0, -1.0)}, "not finite and ascending"),
        ({"action_bounds": (np.zeros(3), np.ones(3))}, "actions have 2 dimensions"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        make_dataset("test", **{**recording(), **change})
    assert "\n" not in str(caught.value)


def test_empty_is_refused() -> None:
    with pytest.raises(InputError, match="test is empty"):
        make_dataset("test", **{key: values[:0] for key, values in recording().items()})


def test_rounding_over_a_bound_is_accepted_and_not_repaired() -> None:
    dataset: Dataset = make_dataset("test", **{**recording(), **with_value("actions", 1.0 + 5e-6)})
    assert dataset.actions.max() > 1.0


def test_values_that_float32_cannot_compute_with() -> None:
    for key, shape in (("observations", (12, 3)), ("rewards", (12,))):
        for size in (3e38, -1e35):
            with pytest.raises(InputError, match=rf"{key} reaches from .* beyond ±1e\+15 in row 0: float32 cannot"):
                make_dataset("test", **recording() | {key: np.full(shape, size, dtype=np.float32)})
        assert len(make_dataset("test", **recording() | {key: np.full(shape, 1e15)})) == 12
    with pytest.raises(InputError, match="rewards has NaN or infinite values"):
        make_dataset("test", **recording(rewards=np.full(12, 1e300)))  # beyond float32


def test_a_column_of_one_number_to_a_row_may_be_a_matrix_of_width_one() -> None:
    columns, notes = flat_columns(recording(rewards=np.ones((12, 1)), observations=np.ones((12, 1))))
    assert columns["rewards"].shape == (12,)
    assert columns["observations"].shape == (12, 1), "one observation stays a matrix"
    assert notes == ["rewards is stored with shape (12, 1) and was read as one number to a row."]


def test_bounds_from_a_list() -> None:
    assert bounds_of_list((0, 250), width=2) == (0.0, 250.0)
    low, high = bounds_of_list((0, 250, -1, 1), width=2)
    np.testing.assert_array_equal([low, high], [[0, -1], [250, 1]])
    with pytest.raises(InputError, match="`action_bounds` has 3 numbers for 2 actions"):
        bounds_of_list((0, 1, 2), width=2)


def test_which_rows_break_a_rule() -> None:
    np.testing.assert_array_equal(wrong_flags(np.array([0.0, 1.0, 2.0, np.nan])), [False, False, True, True])
    actions = np.array([[1.0, 2.0 + 5e-6], [1.1, 2.1]], np.float32)
    np.testing.assert_array_equal(
        outside_bounds(actions, np.zeros(2), np.array([1.0, 2.0])), [[False, False], [True, True]]
    )
