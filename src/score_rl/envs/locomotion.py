"""Many episodes of a locomotion task at once, stepped by MuJoCo's own threads (`mujoco.rollout`)."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

from score_rl.envs.interface import Step, available_cores
from score_rl.envs.physics import load_model
from score_rl.envs.tasks import Task, terminates


class Locomotion:
    """A batch of episodes of one task; the state of every slot lives in arrays, so any subset is one C++ call."""

    def __init__(self, task: Task, slots: int, *, physics: str = "d4rl", threads: int | None = None) -> None:
        self.task = task
        self.name = task.name
        self.physics = physics
        self.slots = slots
        self.observation_dim = task.observation_dim
        self.action_dim = task.action_dim
        self.max_steps = task.max_steps
        self.model = load_model(task, physics)
        self.action_low, self.action_high = self.model.actuator_ctrlrange.T.astype(np.float32)
        self._step_time = self.model.opt.timestep * task.frame_skip
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
        self._state = np.zeros((slots, mujoco.mj_stateSize(self.model, full)))  # time, qpos, qvel
        self._steps = np.zeros(slots, dtype=np.int64)
        workers = min(threads or available_cores(), slots)
        self._pool: Any = rollout.Rollout(nthread=workers if workers > 1 else 0)
        self._data = [mujoco.MjData(self.model) for _ in range(workers)]

    @property
    def qpos(self) -> np.ndarray:
        """Positions of every slot, [slots, nq] float64; a view that changes with the next step."""
        return self._state[:, 1 : 1 + self.model.nq]

    @property
    def qvel(self) -> np.ndarray:
        """Velocities of every slot, unclipped, [slots, nv] float64; a view that changes with the next step."""
        return self._state[:, 1 + self.model.nq : 1 + self.model.nq + self.model.nv]

    def reset(self, slots: np.ndarray, generators: Sequence[np.random.Generator]) -> np.ndarray:
        """Start an episode in each of these slots, with the noise Gymnasium would draw from the same generator."""
        for slot, generator in zip(slots, generators, strict=True):
            self.qpos[slot] = self.model.qpos0 + self._position_noise(generator)
            self.qvel[slot] = self._velocity_noise(generator)
        self._state[slots, 0] = 0.0
        self._steps[slots] = 0
        return self._observe(self._state[slots])

    def set_state(self, slots: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """Put these slots into given states at the start of an episode; their observations."""
        self.qpos[slots], self.qvel[slots] = qpos, qvel
        self._state[slots, 0] = 0.0
        self._steps[slots] = 0
        return self._observe(self._state[slots])

    def step(self, slots: np.ndarray, actions: np.ndarray) -> Step:
        """One step (`frame_skip` physics steps) in these slots.

        MuJoCo clips the control to its range; the control cost counts the action as given, as Gymnasium does.
        """
        slots = np.asarray(slots)
        before = self._state[slots]
        after = self._simulate(before, np.asarray(actions, dtype=np.float64))
        self._state[slots] = after
        steps = self._steps[slots] + 1
        self._steps[slots] = steps
        forward = (after[:, 1] - before[:, 1]) / self._step_time
        cost = self.task.control_cost * np.square(actions, dtype=np.float64).sum(-1)
        # The rule is about the state, so velocities count before they are clipped for the observation.
        terminals = np.asarray(terminates(self.name, self._seen(after)))
        timeouts = (steps >= self.max_steps) & ~terminals
        return Step(self._observe(after), forward + self.task.alive_bonus - cost, terminals, timeouts)

    def close(self) -> None:
        """End the threads; the environment cannot be stepped afterwards."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _simulate(self, before: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The states after the frames of a step."""
        count, frames = len(before), self.task.frame_skip
        if actions.shape != (count, self.action_dim):
            raise ValueError(f"actions have shape {actions.shape}, expected {(count, self.action_dim)}")
        if count == 0:
            return before
        control = np.repeat(actions[:, None, :], frames, axis=1)
        states = np.empty((count, frames, before.shape[1]))
        self._pool.rollout(
            [self.model] * count,
            self._data,
            before,
            control,
            skip_checks=True,
            nstep=frames,
            state=states,
        )
        return states[:, -1]

    def _seen(self, states: np.ndarray) -> np.ndarray:
        """What of the states an observation is made of: all positions but the first, and velocities; a view."""
        return states[:, 2 : 1 + self.model.nq + self.model.nv]

    def _observe(self, states: np.ndarray) -> np.ndarray:
        limit, observations = self.task.velocity_limit, self._seen(states).copy()
        velocities = observations[:, self.model.nq - 1 :]
        np.clip(velocities, -limit, limit, out=velocities)
        return observations

    def _position_noise(self, generator: np.random.Generator) -> np.ndarray:
        scale = self.task.reset_noise
        return generator.uniform(-scale, scale, self.model.nq)

    def _velocity_noise(self, generator: np.random.Generator) -> np.ndarray:
        scale = self.task.reset_noise
        if self.name == "halfcheetah":
            return scale * generator.standard_normal(self.model.nv)
        return generator.uniform(-scale, scale, self.model.nv)
