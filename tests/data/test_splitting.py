"""Trajectories held out: whole ones, none twice, none lost, the same ones every time."""

from typing import Any

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.splitting import split_dataset
from score_rl.errors import InputError


def logs(trajectories: int = 40, length: int = 7, stored_next: bool = True) -> Dataset:
    rows = trajectories * length
    last = np.arange(rows) % length == length - 1
    numbers = np.arange(rows, dtype=np.float32)[:, None]
    return make_dataset(
        "logs",
        observations=numbers,
        actions=np.zeros((rows, 1)),
        rewards=np.arange(rows) // length,
        terminals=last & (np.arange(rows) // length % 2 == 0),
        timeouts=last & (np.arange(rows) // length % 2 == 1),
        next_observations=numbers + 1 if stored_next else None,
    )


@pytest.mark.parametrize("stored_next", [True, False])
def test_every_trajectory_is_in_exactly_one_part(stored_next: bool) -> None:
    whole = logs(stored_next=stored_next)
    kept, held_out = split_dataset(whole, 0.2)
    assert (len(kept.trajectories), len(held_out.trajectories)) == (32, 8)
    both = np.sort(np.concatenate([kept.observations, held_out.observations])[:, 0])
    np.testing.assert_array_equal(both, whole.observations[:, 0])
    for part in (kept, held_out):
        for number, (start, stop) in enumerate(part.trajectories):
            rewards = part.rewards[start:stop]
            assert len(set(rewards)) == 1, "a trajectory stays whole"
            assert stop - start in (6, 7)
            assert part.returns().values[number] == 7 * rewards[0], "returns belong to their trajectories"
            assert bool(part.terminals[stop - 1]) != bool(part.timeouts[stop - 1])
        np.testing.assert_array_equal(part.next_observations[~part.terminals], part.observations[~part.terminals] + 1)
    assert kept.checksum != held_out.checksum != whole.checksum


def test_the_held_out_trajectories_are_spread_over_the_recording() -> None:
    held_out = split_dataset(logs(trajectories=100), 0.1).held_out
    which = held_out.rewards[held_out.trajectories[:, 0]]
    assert np.diff(np.sort(which)).max() <= 21
    assert split_dataset(logs(trajectories=100), 0.1).held_out.checksum == held_out.checksum


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_that_leaves_nothing_is_refused(fraction: Any) -> None:
    with pytest.raises(InputError, match="`hold_out` is"):
        split_dataset(logs(), fraction)


def test_too_few_trajectories_are_refused() -> None:
    with pytest.raises(InputError, match="has 5 trajectories, which leaves fewer than 2 on one side"):
        split_dataset(logs(trajectories=5), 0.1)
