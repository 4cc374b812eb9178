"""What an environment is to the rest of the library: a batch of independent episodes, each in its slot."""

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

PHYSICS = ("d4rl", "stock")


class Step(NamedTuple):
    """What one step gave in each of the slots that were stepped."""

    observations: np.ndarray  # [n, S] float64, those after the step
    rewards: np.ndarray  # [n] float64
    terminals: np.ndarray  # [n] bool: the task ended
    timeouts: np.ndarray  # [n] bool: the step limit was reached and the task had not ended
    successes: np.ndarray | None = None  # [n] bool: the task was solved; None where the environment does not say


@runtime_checkable
class Environment(Protocol):
    """A batch of independent episodes. A slot must be reset before its first step and after its episode's end."""

    name: str
    slots: int
    observation_dim: int
    action_dim: int
    action_low: np.ndarray  # [A] float32
    action_high: np.ndarray  # [A] float32
    max_steps: int

    def reset(self, slots: np.ndarray, generators: Sequence[np.random.Generator]) -> np.ndarray:
        """Start an episode in each of these slots from its own generator; observations [len(slots), S] float64."""
        ...

    def step(self, slots: np.ndarray, actions: np.ndarray) -> Step:
        """One step in these slots, in this order, and in no others; actions [len(slots), A]."""
        ...

    def close(self) -> None: ...


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
