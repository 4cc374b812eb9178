"""Small recordings made on the spot."""

from collections.abc import Callable

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset


def recording(name: str = "noise", rows: int = 500, seed: int = 0, observation: int = 5, action: int = 2) -> Dataset:
    rng = np.random.default_rng(seed)
    timeouts = np.zeros(rows, bool)
    timeouts[99::100] = True
    terminals = np.zeros(rows, bool)
    terminals[49::100] = True
    return make_dataset(
        name,
        observations=rng.normal(3, 2, (rows, observation)),
        actions=rng.uniform(-1, 1, (rows, action)),
        rewards=rng.normal(size=rows),
        next_observations=rng.normal(3, 2, (rows, observation)),
        terminals=terminals,
        timeouts=timeouts,
    )


@pytest.fixture
def make_recording() -> Callable[..., Dataset]:
    return recording
