"""Environments: batched MuJoCo locomotion with D4RL's physics, any Gymnasium environment, normalised scores."""

from score_rl.envs.interface import PHYSICS, Environment, Step, available_cores
from score_rl.envs.making import episode_limit, is_module_named, make_environment
from score_rl.envs.tasks import TASKS, Task, normalised_score, task_of, terminates

__all__ = [
    "PHYSICS",
    "TASKS",
    "Environment",
    "Step",
    "Task",
    "available_cores",
    "episode_limit",
    "is_module_named",
    "make_environment",
    "normalised_score",
    "task_of",
    "terminates",
]
