"""Small recordings for tests."""

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from score_rl.data.collection.policies import D4RL_LOG_STD, SquashedGaussian, write_policy

EPISODES, STEPS = 12, 60  # of `plant`
SAMPLES = os.environ.get("SCORE_RL_D4RL_SAMPLES")
genuine = pytest.mark.skipif(
    not SAMPLES, reason="SCORE_RL_D4RL_SAMPLES does not name a folder with genuine D4RL v2 excerpts"
)


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


def small_policy(observations: int = 11, actions: int = 3, hidden: int = 8) -> SquashedGaussian:
    generator = np.random.default_rng(0)
    sizes = {
        "fc0": (hidden, observations),
        "fc1": (hidden, hidden),
        "last_fc": (actions, hidden),
        "last_fc_log_std": (actions, hidden),
    }
    weights = {
        layer: (generator.normal(size=size).astype(np.float32) / 4, np.zeros(size[0], np.float32))
        for layer, size in sizes.items()
    }
    return SquashedGaussian(weights, D4RL_LOG_STD)


def file_with_policy(path: Path, policy: SquashedGaussian) -> Path:
    """A file as D4RL publishes them: with a policy, and without the range of its log standard deviation."""
    write(path, hopper_recording())
    with h5py.File(path, "a") as file:
        write_policy(file.create_group("metadata/policy"), policy)
        del file["metadata/policy/log_std_clip"]
    return path
