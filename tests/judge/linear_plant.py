"""A plant whose values are known exactly: linear, with quadratic costs and linear policies.

    s' = 0.9·s + 0.3·a + 0.1·ε,    r = -s² - 0.1·a²,    π(s) = -k·s,    γ = 0.9

    V(s) = -(p·s² + q),    p = (1 + 0.1·k²)/(1 - γ·(0.9 - 0.3·k)²),    q = γ·p·0.01/(1 - γ)

The behaviour has k = 0.3 and Gaussian noise of deviation 0.3 on its actions.
"""

from collections.abc import Callable

import numpy as np

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.judge.fitting import Noise

DISCOUNT, STEPS = 0.9, 20
GAIN, NOISE = 0.3, 0.3
START = 1 / 3  # the mean of s² at the start, s being uniform within ±1


def linear(gain: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda observations: -gain * observations


def per_step(gain: float, noise: float = 0.0) -> float:
    """(1 - γ)·E[V(s_0)], exactly."""
    slope = 0.9 - 0.3 * gain
    p = (1 + 0.1 * gain**2) / (1 - DISCOUNT * slope**2)
    q = (DISCOUNT * p * (0.01 + (0.3 * noise) ** 2) + 0.1 * noise**2) / (1 - DISCOUNT)
    return -(1 - DISCOUNT) * (p * START + q)


def truncated(gain: float, noise: float = 0.0, steps: int = STEPS, start: float = START) -> float:
    """Σ γᵗ·E[r_t] / Σ γᵗ over so many steps, exactly; `start` is the mean of s² at the start."""
    square, total, time = start, 0.0, 0.0
    for step in range(steps):
        total -= DISCOUNT**step * ((1 + 0.1 * gain**2) * square + 0.1 * noise**2)
        time += DISCOUNT**step
        square = (0.9 - 0.3 * gain) ** 2 * square + 0.01 + (0.3 * noise) ** 2
    return total / time


def value(gain: float, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """(1 - γ)·Q(s, a) of a linear policy without noise, exactly."""
    p = (1 + 0.1 * gain**2) / (1 - DISCOUNT * (0.9 - 0.3 * gain) ** 2)
    q = DISCOUNT * p * 0.01 / (1 - DISCOUNT)
    following = (0.9 * states + 0.3 * actions) ** 2 + 0.01
    return np.asarray((1 - DISCOUNT) * (-(states**2) - 0.1 * actions**2 - DISCOUNT * (p * following + q)))


def logs(trajectories: int = 200, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    states, actions = (np.empty((trajectories, STEPS + (name == "s"))) for name in "sa")
    states[:, 0] = rng.uniform(-1, 1, trajectories)
    for step in range(STEPS):
        actions[:, step] = np.clip(-GAIN * states[:, step] + NOISE * rng.normal(size=trajectories), -1, 1)
        noise = 0.1 * rng.normal(size=trajectories)
        states[:, step + 1] = 0.9 * states[:, step] + 0.3 * actions[:, step] + noise
    now = states[:, :-1]
    ends = np.zeros((trajectories, STEPS), bool)
    ends[:, -1] = True
    return make_dataset(
        "linear",
        observations=now.reshape(-1, 1),
        actions=actions.reshape(-1, 1),
        rewards=(-(now**2) - 0.1 * actions**2).ravel(),
        next_observations=states[:, 1:].reshape(-1, 1),
        terminals=np.zeros(ends.size),
        timeouts=ends.ravel(),
    )


class ExactDensity:
    """The behaviour's density, known and not fitted; actions are within ±1 already."""

    def at(self, observations: np.ndarray) -> Noise:
        mean = -GAIN * np.asarray(observations, np.float64)
        return Noise(mean, np.full(mean.shape, NOISE))

    def scaled(self, actions: np.ndarray) -> np.ndarray:
        return np.asarray(actions, np.float64)
