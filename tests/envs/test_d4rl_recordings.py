"""D4RL's physics against genuine recordings, where this machine has them."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from score_rl.envs import TASKS, make_environment, terminates
from score_rl.envs.locomotion import Locomotion

SAMPLES = os.environ.get("SCORE_RL_D4RL_SAMPLES")
pytestmark = pytest.mark.skipif(
    not SAMPLES, reason="SCORE_RL_D4RL_SAMPLES does not name a folder with genuine D4RL v2 excerpts"
)
LARGEST_ERROR = {"hopper": 1.2e-6, "walker2d": 8.4e-6, "halfcheetah": 6.6e-5}  # over every observation of every step


def recording(task: str) -> dict[str, np.ndarray]:
    keys = ("observations", "next_observations", "actions", "rewards", "terminals", "infos/qpos", "infos/qvel")
    with h5py.File(Path(SAMPLES or "") / f"{task}_medium-v2.hdf5") as file:
        return {key: file[key][()] for key in keys}


@pytest.mark.parametrize("task", TASKS)
def test_one_step_from_every_recorded_state_lands_on_the_recorded_next_state(task: str) -> None:
    data = recording(task)
    environment, slots = make_environment(task, len(data["rewards"])), np.arange(len(data["rewards"]))
    assert isinstance(environment, Locomotion)
    observed = environment.set_state(slots, data["infos/qpos"], data["infos/qvel"])
    np.testing.assert_array_equal(observed.astype(np.float32), data["observations"])
    step = environment.step(slots, data["actions"])
    # A velocity at the limit was clipped when it was recorded, so the true state is not known there.
    limit = TASKS[task].velocity_limit
    known = (np.abs(data["infos/qvel"]) < limit).all(axis=1) & (np.abs(environment.qvel) < limit).all(axis=1)
    assert known.mean() > 0.6
    error = np.abs(step.observations - data["next_observations"])[known]
    assert error.max() < LARGEST_ERROR[task]
    np.testing.assert_allclose(step.rewards[known], data["rewards"][known], atol=2e-4)
    np.testing.assert_array_equal(step.terminals, data["terminals"])


@pytest.mark.parametrize("task", TASKS)
def test_today_s_physics_misses_the_recording_by_far_more(task: str) -> None:
    data = recording(task)
    environment, slots = make_environment(task, len(data["rewards"]), physics="stock"), np.arange(len(data["rewards"]))
    assert isinstance(environment, Locomotion)
    environment.set_state(slots, data["infos/qpos"], data["infos/qvel"])
    step = environment.step(slots, data["actions"])
    assert np.median(np.abs(step.observations - data["next_observations"]).max(axis=1)) > 100 * LARGEST_ERROR[task]


@pytest.mark.parametrize("task", TASKS)
def test_the_rule_gives_the_recorded_terminals(task: str) -> None:
    data = recording(task)
    np.testing.assert_array_equal(terminates(task, data["next_observations"]), data["terminals"])
