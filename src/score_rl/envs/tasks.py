"""The three locomotion tasks as D4RL recorded them: sizes, rewards, ends and reference scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """One locomotion task; the observation is `qpos[1:]` followed by `qvel`."""

    name: str
    model_file: str  # in Gymnasium's `envs/mujoco/assets`
    frame_skip: int
    positions: int  # length of qpos, and of qvel
    action_dim: int
    alive_bonus: float
    control_cost: float
    velocity_limit: float  # observed velocities are clipped to ±this
    reset_noise: float
    total_mass: float | None  # what the model's `settotalmass` says
    random_return: float  # scores 0 %
    expert_return: float  # scores 100 %
    max_steps: int = 1000

    @property
    def observation_dim(self) -> int:
        return 2 * self.positions - 1


TASKS = {
    task.name: task
    for task in (
        Task(
            name="halfcheetah",
            model_file="half_cheetah.xml",
            frame_skip=5,
            positions=9,
            action_dim=6,
            alive_bonus=0.0,
            control_cost=0.1,
            velocity_limit=np.inf,
            reset_noise=0.1,
            total_mass=14.0,
            random_return=-280.178953,
            expert_return=12135.0,
        ),
        Task(
            name="hopper",
            model_file="hopper.xml",
            frame_skip=4,
            positions=6,
            action_dim=3,
            alive_bonus=1.0,
            control_cost=1e-3,
            velocity_limit=10.0,
            reset_noise=5e-3,
            total_mass=None,
            random_return=-20.272305,
            expert_return=3234.3,
        ),
        Task(
            name="walker2d",
            model_file="walker2d.xml",
            frame_skip=4,
            positions=9,
            action_dim=6,
            alive_bonus=1.0,
            control_cost=1e-3,
            velocity_limit=10.0,
            reset_noise=5e-3,
            total_mass=None,
            random_return=1.629008,
            expert_return=4592.3,
        ),
    )
}


def task_of(name: str) -> str | None:
    """The task behind a name such as "hopper", "hopper-medium-v2" or "replica:hopper-medium"; None if there
    is none.

    Case counts: "Hopper-v5" is Gymnasium's own environment, not one of these tasks.
    """
    stem = name.rpartition(":")[2].partition("-")[0]
    return stem if stem in TASKS else None


def normalised_score(name: str, returns: np.ndarray) -> np.ndarray | None:
    """Returns as percent of the way from D4RL's random to its expert reference; None where no reference
    exists.

    For returns only: it subtracts the random reference, which a difference or a standard deviation must not.
    """
    task = TASKS.get(task_of(name) or "")
    if task is None:
        return None
    values = np.asarray(returns, dtype=np.float64)
    return 100.0 * (values - task.random_return) / (task.expert_return - task.random_return)


def terminates(name: str, next_observations: Any) -> Any:
    """Whether a step that led to these observations [..., S] ended the task, as booleans [...].

    Pure, for NumPy and JAX arrays alike. An observation that is not finite ends hopper and walker2d.
    Hopper's limit of 100 on velocities can only be seen in predicted observations: recorded ones are clipped
    to 10.
    """
    task = task_of(name)
    height, angle = next_observations[..., 0], next_observations[..., 1]
    if task == "hopper":
        bounded = (abs(next_observations[..., 1:]) < 100.0).all(-1)
        return ~((height > 0.7) & (abs(angle) < 0.2) & bounded)
    if task == "walker2d":
        return ~((height > 0.8) & (height < 2.0) & (abs(angle) < 1.0))
    if task == "halfcheetah":
        return next_observations.__array_namespace__().zeros(height.shape, dtype=bool)
    raise ValueError(f"no termination rule is known for {name!r}")


def step_limit(environment: str | None) -> int | None:
    """After how many steps the environment cuts an episode; None where that is not known."""
    task = TASKS.get(task_of(environment or "") or "")
    return None if task is None else task.max_steps
