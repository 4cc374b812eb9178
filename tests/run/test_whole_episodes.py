"""What the behaviour reached per episode is said only where whole episodes were recorded."""

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.run.sources import dataset_record, whole_episodes


def logs(lengths: list[int], ended: tuple[int, ...] = (), environment: str | None = None) -> Dataset:
    """A reward of 1 in each step; these trajectories end in a terminal, the others were stopped."""
    rows, last = sum(lengths), np.cumsum(lengths) - 1
    terminals, timeouts = np.zeros(rows), np.zeros(rows)
    timeouts[last] = 1
    for number in ended:
        terminals[last[number]], timeouts[last[number]] = 1, 0
    column = np.zeros((rows, 1))
    return make_dataset(
        "logs", observations=column, actions=column, rewards=np.ones(rows), next_observations=column,
        terminals=terminals, timeouts=timeouts, environment=environment,
    )  # fmt: skip


def test_recordings_of_unequal_length_that_stopped_have_no_return() -> None:
    assert whole_episodes(logs([20, 30])) is None
    record = dataset_record(logs([20, 30]))
    assert (record.behaviour_return, record.behaviour_score) == (None, None)
    assert record.behaviour_reward == 1.0
    assert "behaviour_return" not in record.to_json()


def test_equal_lengths_and_terminals_are_episodes() -> None:
    assert whole_episodes(logs([25, 25])).tolist() == [25, 25]  # type: ignore[union-attr]
    assert whole_episodes(logs([25, 25, 4], ended=(2,))).tolist() == [25, 25, 4]  # type: ignore[union-attr]
    assert whole_episodes(logs([7, 4], ended=(0, 1))).tolist() == [7, 4]  # type: ignore[union-attr]


@pytest.mark.parametrize("environment", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_the_environments_own_limit_decides_where_it_is_known(environment: str) -> None:
    limit = {"Pendulum-v1": 200, "MountainCarContinuous-v0": 999}[environment]
    found = whole_episodes(logs([limit, 50, 60], ended=(1,), environment=environment))
    assert found is not None
    assert found.tolist() == [limit, 50], "60 steps were cut before the limit"
    assert whole_episodes(logs([50, 50], environment=environment)) is None, "equal, and both too short"
