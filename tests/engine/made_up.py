"""Small recordings and fleets, made on the spot."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import jax
import numpy as np

from score_rl import engine
from score_rl.algorithms.registry import get_algorithm
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run

SMALL: dict[str, Any] = {"hidden": (32, 32), "batch_size": 32}


def recording(name: str = "noise", rows: int = 500, seed: int = 0, observation: int = 5, action: int = 2) -> Dataset:
    """Noise; trajectories of 50 rows that end in a terminal and in a timeout by turns."""
    rng = np.random.default_rng(seed)
    timeouts, terminals = np.zeros(rows, bool), np.zeros(rows, bool)
    timeouts[99::100], terminals[49::100] = True, True
    return make_dataset(
        name,
        observations=rng.normal(3, 2, (rows, observation)),
        actions=rng.uniform(-1, 1, (rows, action)),
        rewards=rng.normal(size=rows),
        next_observations=rng.normal(3, 2, (rows, observation)),
        terminals=terminals,
        timeouts=timeouts,
    )


def make_runs(
    datasets: Sequence[Dataset], seeds: Iterable[int] = (0,), algorithm: str = "score", **settings: Sequence[Any]
) -> list[Run]:
    """Settings × data sets × seeds; every setting is a list of values."""
    combinations = [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]
    chosen = [SMALL | combination for combination in combinations]
    return engine.make_runs(get_algorithm(algorithm), datasets, seeds=seeds, settings=chosen)


def train(runs: Sequence[Run], updates: int = 100, window: int = 50) -> tuple[Any, Any]:
    """The states after so many updates, and the metrics of the last window."""
    program = FleetProgram(runs)
    state = program.init()
    for start in range(0, updates, window):
        state, metrics = program.advance(state, start, window)
    return state, metrics


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of a tree; of random keys, their numbers."""
    return [
        np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
        for x in jax.tree.leaves(tree)
    ]


def relative(a: Any, b: Any) -> float:
    """The largest distance between two arrays of the trees, in lengths of the second."""
    pairs = zip(leaves(a), leaves(b), strict=True)
    return max(float(np.linalg.norm(x - y) / (np.linalg.norm(y) + 1e-12)) for x, y in pairs)
