"""The data set type: what it refuses, and what its checksum notices."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.errors import InputError

from .recordings import recording


def test_a_plain_recording() -> None:
    dataset = make_dataset("test", **recording(), environment=None, source={"kind": "test"})
    assert (len(dataset), dataset.observation_dim, dataset.action_dim) == (12, 3, 2)
    np.testing.assert_array_equal(dataset.trajectories, [[0, 5], [5, 9], [9, 12]])
    np.testing.assert_array_equal(dataset.returns().complete, [True, True, False])
    np.testing.assert_array_equal(dataset.action_low, [-1, -1])
    assert {dataset.observations.dtype, dataset.actions.dtype, dataset.rewards.dtype} == {np.dtype(np.float32)}
    assert dataset.terminals.dtype == dataset.timeouts.dtype == bool
    assert len(dataset.checksum) == 64


def test_arrays_are_read_only_and_the_caller_s_stay_writable() -> None:
    arrays = recording()
    dataset = make_dataset("test", **arrays)
    with pytest.raises(ValueError, match="read-only"):
        dataset.rewards[0] = 1.0
    arrays["rewards"][0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "other"  # type: ignore[misc]


def test_a_timeout_counts_as_complete_only_at_the_environment_s_limit() -> None:
    arrays = recording((1000, 999, 30), "cct")
    arrays["observations"] = np.zeros((2029, 11))
    arrays["next_observations"] = np.zeros((2029, 11))
    arrays["actions"] = np.zeros((2029, 3))
    hopper = make_dataset("test", **arrays, environment="hopper")
    np.testing.assert_array_equal(hopper.returns().complete, [True, False, True])
    np.testing.assert_array_equal(make_dataset("test", **arrays).returns().complete, [True, True, True])


def test_integer_flags_and_double_precision_are_accepted() -> None:
    plain = make_dataset("test", **recording())
    arrays = recording()
    other = {
        **arrays,
        "terminals": arrays["terminals"].astype(np.uint8),
        "timeouts": arrays["timeouts"].astype(np.float64),
        "observations": arrays["observations"].astype(np.float64),
    }
    assert make_dataset("test", **other).checksum == plain.checksum


def nudge(key: str, row: int = 3) -> dict[str, np.ndarray]:
    values = recording()[key].copy()
    values[row] = ~values[row] if values.dtype == bool else np.nextafter(values[row], np.float32(0))
    return {key: values}


@pytest.mark.parametrize(
    "change",
    [
        *(nudge(key) for key in ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")),
        {"action_bounds": (-1.0, 2.0)},
        {"action_bounds": (-2.0, 1.0)},
        {"next_observations": None},
        {key: values[::-1] for key, values in recording().items() if key in ("observations", "next_observations")},
    ],
    ids=lambda change: "+".join(change),
)
def test_the_checksum_notices_every_change_of_content(change: dict[str, Any]) -> None:
    assert make_dataset("test", **{**recording(), **change}).checksum != make_dataset("test", **recording()).checksum


def test_the_checksum_ignores_name_environment_and_source() -> None:
    plain = make_dataset("test", **recording())
    other = make_dataset("other", **recording(), environment="Pendulum-v1", source={"kind": "file"})
    assert other.checksum == plain.checksum


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


def test_nothing_but_cut_single_steps_is_refused() -> None:
    with pytest.raises(InputError, match="no row with a next observation"):
        make_dataset("test", **recording((1, 1), "cc", next_observations=None))


def test_rounding_over_a_bound_is_accepted_and_not_repaired() -> None:
    dataset: Dataset = make_dataset("test", **{**recording(), **with_value("actions", 1.0 + 5e-6)})
    assert dataset.actions.max() > 1.0


def test_values_so_large_that_their_sum_overflows_are_not_called_infinite() -> None:
    big = {"observations": np.full((12, 3), 3e38, dtype=np.float32)}
    assert len(make_dataset("test", **{**recording(), **big})) == 12
