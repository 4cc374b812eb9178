"""Any Gymnasium environment with box spaces, one instance per slot, through Gymnasium's vector interface."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from score_rl.envs.interface import Step
from score_rl.envs.tasks import TASKS
from score_rl.errors import InputError, unknown_name
from score_rl.plugins import import_named

SUCCESS = ("success", "is_success")  # what environments call it in the facts beside a step
DEFAULT_MAX_STEPS = 1000  # where the environment itself sets no limit: an episode must end


class GymnasiumSlots:
    """A batch of Gymnasium environments without autoreset: finished slots stand still until they are reset."""

    def __init__(self, name: str, slots: int) -> None:
        self.name = name
        self.slots = slots
        specification = _find(name)
        self.max_steps = specification.max_episode_steps or DEFAULT_MAX_STEPS
        self._vector = _make(name, slots, self.max_steps)
        try:
            self.observation_dim = _width(name, "observation", self._vector.single_observation_space)
            self.action_dim = _width(name, "action", self._vector.single_action_space)
            self.action_low, self.action_high = _bounds(name, self._vector.single_action_space)
            self._vector.reset(seed=0)  # a masked reset gives all observations, so all must have one
        except InputError:
            self.close()
            raise

    def reset(self, slots: np.ndarray, generators: Sequence[np.random.Generator]) -> np.ndarray:
        """Start an episode in each of these slots, seeded with one draw from its generator."""
        if len(slots) == 0:
            return np.empty((0, self.observation_dim))
        seeds: list[int | None] = [None] * self.slots
        for slot, generator in zip(slots, generators, strict=True):
            seeds[slot] = int(generator.integers(2**31))
        mask = np.zeros(self.slots, dtype=np.bool_)
        mask[slots] = True
        observations, _ = self._vector.reset(seed=seeds, options={"reset_mask": mask})
        return np.asarray(observations, dtype=np.float64)[slots]

    def step(self, slots: np.ndarray, actions: np.ndarray) -> Step:
        """One step in these slots; the vector interface steps all or none, so its members are stepped one by one."""
        count = len(slots)
        observations = np.empty((count, self.observation_dim))
        rewards = np.empty(count)
        terminals, timeouts = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        successes: np.ndarray | None = None
        dtype = self._vector.single_action_space.dtype
        for row, (slot, action) in enumerate(zip(slots, np.asarray(actions, dtype=dtype), strict=True)):
            result = self._vector.envs[slot].step(action)
            observations[row], rewards[row], terminals[row], truncated, facts = result
            timeouts[row] = truncated and not terminals[row]
            said = next((facts[name] for name in SUCCESS if name in facts), None)
            if said is not None:
                successes = np.zeros(count, dtype=bool) if successes is None else successes
                successes[row] = bool(said)
        return Step(observations, rewards, terminals, timeouts, successes)

    def close(self) -> None:
        self._vector.close()


def _find(name: str) -> Any:
    """Gymnasium's entry for this id; "module:Id-v0" imports the module first."""
    module, _, identity = name.rpartition(":")
    try:
        if module:
            import_named(module, f"the environment {name}", here=False)
        return gymnasium.spec(identity)
    except (gymnasium.error.Error, ImportError) as error:
        known = [*TASKS, *gymnasium.registry]
        raise unknown_name("environment", name, known) from error


def _make(name: str, slots: int, max_steps: int) -> Any:
    try:
        return gymnasium.make_vec(
            name,
            num_envs=slots,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
            max_episode_steps=max_steps,
            disable_env_checker=True,
        )
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        raise InputError(
            f"environment {name!r} needs a package that is not installed ({error}): install Gymnasium's extra for it, "
            "such as gymnasium[mujoco]."
        ) from error


def _width(name: str, kind: str, space: Any) -> int:
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise InputError(
            f"environment {name!r} has the {kind} space {space}, but only one-dimensional boxes are supported: "
            "choose an environment with vector observations and continuous actions."
        )
    return int(space.shape[0])


def _bounds(name: str, space: Any) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.asarray(space.low, dtype=np.float32), np.asarray(space.high, dtype=np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError(
            f"environment {name!r} has unbounded actions, but actions are scaled to bounds: "
            "wrap it so that its action space is finite."
        )
    return low, high
