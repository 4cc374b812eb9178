"""Small recordings for tests."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

EPISODES, STEPS = 12, 60  # of `plant`


def recording(lengths: tuple[int, ...] = (5, 4, 3), ends: str = "tcp", seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Arrays of a made-up recording with 3 observations and 2 actions.

    One letter per episode says how it ends: t terminal, c cut by a timeout, p partial (only for the last).
    """
    generator = np.random.default_rng(seed)
    rows = sum(lengths)
    paths = [generator.normal(size=(length + 1, 3)).astype(np.float32) for length in lengths]
    arrays: dict[str, Any] = {
        "observations": np.concatenate([path[:-1] for path in paths]),
        "next_observations": np.concatenate([path[1:] for path in paths]),
        "actions": generator.uniform(-1, 1, (rows, 2)).astype(np.float32),
        "rewards": generator.normal(size=rows).astype(np.float32),
        "terminals": np.zeros(rows, dtype=bool),
        "timeouts": np.zeros(rows, dtype=bool),
    }
    for last, end in zip(np.cumsum(lengths) - 1, ends, strict=True):
        arrays["terminals"][last] = end == "t"
        arrays["timeouts"][last] = end == "c"
    arrays.update(changes)
    return {key: values for key, values in arrays.items() if values is not None}


def hopper_recording(**changes: Any) -> dict[str, Any]:
    """The same with hopper's dimensions, standing still."""
    wide: dict[str, Any] = {
        "observations": np.ones((12, 11)),
        "next_observations": np.ones((12, 11)),
        "actions": np.zeros((12, 3)),
    }
    return recording(**{**wide, **changes})


def write(path: Path, arrays: dict[str, Any]) -> Path:
    """A plain D4RL-format file."""
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values
    return path


def plant(seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Twelve batches of a slow process that start apart from where the last one ended."""
    generator = np.random.default_rng(seed)
    starts = generator.normal(0, 5, (EPISODES, 1, 4))
    walks = starts + np.cumsum(generator.normal(0, 0.1, (EPISODES, STEPS, 4)), axis=1)
    rows = EPISODES * STEPS
    timeouts = np.zeros(rows, bool)
    timeouts[STEPS - 1 :: STEPS] = True
    arrays = {
        "observations": walks.reshape(rows, 4).astype(np.float32),
        "actions": generator.uniform(-1, 1, (rows, 2)).astype(np.float32),
        "rewards": generator.normal(size=rows).astype(np.float32),
        "terminals": np.zeros(rows, bool),
        "timeouts": timeouts,
    }
    return arrays | changes
