"""Data sets from dictionaries of arrays and from frames."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from score_rl.data.dataset import Dataset
from score_rl.errors import InputError

from .tables import log, plain_transitions, transitions

ROWS = log((5, 4, 6))


def arrays(rows: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    plain = {
        "observations": [[row["o1"], row["o2"]] for row in rows],
        "actions": [row["a1"] for row in rows],
        "rewards": [row["r"] for row in rows],
        "episodes": [row["trip"] for row in rows],
        "times": [row["t"] for row in rows],
    }
    return {key: values for key, values in (plain | changes).items() if values is not None}


def test_episodes_and_times_sort_the_rows() -> None:
    shuffled = [ROWS[place] for place in np.random.default_rng(0).permutation(len(ROWS))]
    dataset = Dataset.from_arrays(arrays(shuffled), observation_names=["level", "flow"], units={"flow": "l/h"})
    assert transitions(dataset) == plain_transitions(ROWS)
    assert dataset.observation_names == ("level", "flow")
    assert dataset.action_names is None
    frame = Dataset.from_frame(
        pl.DataFrame(shuffled), observations=["o*"], actions="a1", reward="r", episode="trip", time="t", name="mine"
    )
    assert frame.checksum == dataset.checksum
    assert (frame.name, frame.action_names) == ("mine", ("a1",))


def test_marks_tell_trajectories() -> None:
    timeouts = [row["t"] == (5, 4, 6)[row["trip"]] - 1 for row in ROWS]
    marked = Dataset.from_arrays(arrays(ROWS, episodes=None, times=None, timeouts=timeouts))
    assert marked.checksum == Dataset.from_arrays(arrays(ROWS)).checksum


def test_next_observations_tell_trajectories() -> None:
    """As in the dictionary of d4rl.qlearning_dataset, which has no timeouts."""
    whole = Dataset.from_arrays(arrays(ROWS))
    given = {
        key: getattr(whole, key) for key in ("observations", "actions", "rewards", "next_observations", "terminals")
    }
    found = Dataset.from_arrays(given)
    assert transitions(found) == plain_transitions(ROWS)
    np.testing.assert_array_equal(found.trajectories, whole.trajectories)


def test_bounds() -> None:
    wide = [{**row, "a1": 5.0 + row["t"]} for row in ROWS]
    assert Dataset.from_arrays(arrays(wide), action_bounds="data").action_low == 5
    assert Dataset.from_arrays(arrays(wide), action_bounds=[0, 20]).action_high == 20
    with pytest.raises(InputError, match="row 0: actions_0 is beyond ±1, and nobody said"):
        Dataset.from_arrays(arrays(wide))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": None}, "arrays lacks rewards"),
        ({"reward": [1.0]}, "unknown array in arrays: 'reward': did you mean 'rewards'"),
        ({"episodes": None}, "does not tell its trajectories apart; give episodes"),
        ({"times": [0] * len(ROWS)}, "12 rows have the times of another row of their episode, such as row 0 and row 1"),
        ({"times": [0, 1]}, r"the arrays differ in rows \(.*times 2"),
        ({"trajectory_ends": [True] * len(ROWS)}, "has episodes and trajectory_ends"),
    ],
)
def test_arrays_that_are_wrong(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Dataset.from_arrays(arrays(ROWS, **changes))
