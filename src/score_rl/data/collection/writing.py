"""Writing a recording to a file in D4RL's format, with the recipe that made it."""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.collection.policies import SquashedGaussian, write_policy
from score_rl.data.collection.recorder import Rows
from score_rl.disk import replacing
from score_rl.envs.tasks import TASKS
from score_rl.versions import version_of

RECIPE_FORMAT = 1  # raise it when the same recipe would give other rows


def write_hdf5(
    path: Path,
    rows: Rows,
    *,
    environment: str,
    action_bounds: tuple[np.ndarray, np.ndarray],
    recipe: Mapping[str, Any],
    policy: SquashedGaussian | None,
) -> None:
    """Write a recording in D4RL's format, whole or not at all."""
    import h5py

    with replacing(path, rows.nbytes) as temporary, h5py.File(temporary, "w") as file:
        for key, values in rows.stored().items():
            file[key] = values
        metadata = file.create_group("metadata")
        metadata["environment"] = environment
        metadata["action_low"], metadata["action_high"] = action_bounds
        metadata["recipe"] = json.dumps(recipe, indent=1)
        if policy is not None:
            write_policy(metadata.create_group("policy"), policy)


def library_versions() -> dict[str, str]:
    """The libraries that recorded the rows. Another MuJoCo or BLAS may round otherwise, and chaos does the rest."""
    names = ("score-rl", "mujoco", "gymnasium", "numpy")
    return {"python": platform.python_version(), **{name: version_of(name) for name in names}}


def unit_bounds(task: str) -> tuple[np.ndarray, np.ndarray]:
    """The action bounds of a locomotion task: ±1 in every dimension."""
    ones = np.ones(TASKS[task].action_dim, dtype=np.float32)
    return -ones, ones
