"""The data set type: what it refuses, and what its checksum notices."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from score_rl.data.dataset import make_dataset
from score_rl.data.labels import Labels
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


def test_checksums_are_those_of_version_0_1_0() -> None:
    """Random keys of runs derive from them, and folders of that version are compared by them."""
    rows = np.arange(12)
    arrays = {
        "observations": np.stack([rows, rows % 5, -rows], axis=1) / 8,
        "actions": np.stack([rows % 3 - 1, 1 - rows % 2], axis=1) / 4,
        "rewards": rows / 16,
        "terminals": rows == 4,
        "timeouts": rows == 8,
    }
    bare = make_dataset("test", **arrays)
    assert bare.checksum == "3c5f2b09dd50350d147305796ab0ae55d8a8d425091cfd7a105ef6e72bb5c7b3"
    stored = make_dataset("test", **arrays, next_observations=arrays["observations"] + 1, action_bounds=(-2.0, 1.0))
    assert stored.checksum == "3588f90947da76ffe510ffee0cd50c9594991d514887d3367667698b23b8931f"


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


def test_nothing_but_cut_single_steps_is_refused() -> None:
    with pytest.raises(InputError, match="no row with a next observation"):
        make_dataset("test", **recording((1, 1), "cc", next_observations=None))


def test_it_says_what_it_is() -> None:
    named = make_dataset("replica:test", **recording(), environment="Pendulum-v1")
    assert repr(named) == (
        "<Dataset replica:test: 12 rows in 3 trajectories, 3 observations, 2 actions, environment Pendulum-v1>"
    )


def test_rows_of_an_unsorted_table_are_refused_with_the_remedy() -> None:
    """Such a table changes its trajectory in nearly every row, and nearly every row is an end."""
    with pytest.raises(InputError, match=r"test: only 5 of 12 rows can be learned from.*Are the rows sorted\?"):
        make_dataset("test", **recording((1, 2, 1, 3, 2, 1, 2), "ccccccc", next_observations=None))
    assert len(make_dataset("test", **recording((1, 2, 1, 3, 2, 1, 2), "ccccccc"))) == 12


def test_times_must_ascend_within_each_trajectory() -> None:
    times = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2])
    plain = make_dataset("test", **recording())
    assert make_dataset("test", **recording(), times=times).checksum == plain.checksum
    for wrong, words in (
        (times.take([0, 1, 3, 2, *range(4, 12)]), r"1 of 12 rows .* the first in row 3 \(time 2 after 3\): sort"),
        (np.where(np.arange(12) == 6, 0.0, times), r"1 of 12 rows .* in row 6 \(time 0 after 0\)"),
        (np.where(np.arange(12) == 6, np.nan, times), "times is nan in row 6, but a finite number is expected"),
        (times[:5], "one number per step is expected"),
    ):
        with pytest.raises(InputError, match=words):
            make_dataset("test", **recording(), times=wrong)


def test_labels_are_kept_and_checked() -> None:
    labels = Labels(("a", "b", "c"), ("valve", "pump"), {"a": "K", "pump": "rpm"})
    named = make_dataset("test", **recording(), labels=labels)
    assert named.checksum == make_dataset("test", **recording()).checksum
    assert (named.observation_names, named.action_names) == (("a", "b", "c"), ("valve", "pump"))
    assert named.units == {"a": "K", "pump": "rpm"}
    for wrong, words in (
        (Labels(("a", "b")), "2 observation names were given for 3 observations"),
        (Labels(actions=("u", "u")), "two actions are called 'u'"),
    ):
        with pytest.raises(InputError, match=words):
            make_dataset("test", **recording(), labels=wrong)


def test_lengths_and_returns_are_of_the_whole_recorded_trajectory() -> None:
    arrays = recording((5, 1, 4), "ccc", next_observations=None, rewards=np.ones(10))
    dataset = make_dataset("test", **arrays)
    np.testing.assert_array_equal(dataset.recorded.lengths, [5, 4])
    np.testing.assert_array_equal(dataset.returns().values, [5.0, 4.0])
