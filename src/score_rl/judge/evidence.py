"""What estimates are computed from: recorded trajectories, and values per step of discounted time."""

import dataclasses
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from score_rl.data.dataset import Dataset


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Trajectories to judge by, and how their rewards are counted.

    A value *per step* is a discounted mean of rewards: Σ γᵗ·r_t / Σ γᵗ. The sums run over the recorded steps where the
    recording stopped, and for ever after a terminal, with nothing earned. So trajectories of unequal length compare.
    """

    dataset: Dataset
    discount: float

    @property
    def starts(self) -> Int[np.ndarray, " trajectories"]:
        """The first row of each trajectory."""
        return self.dataset.trajectories[:, 0]

    @property
    def lengths(self) -> Int[np.ndarray, " trajectories"]:
        return np.diff(self.dataset.trajectories, axis=1)[:, 0]

    @cached_property
    def trajectory_of_row(self) -> Int[np.ndarray, " rows"]:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def time_of_row(self) -> Int[np.ndarray, " rows"]:
        """Steps since the trajectory began."""
        return np.arange(len(self.dataset)) - np.repeat(self.starts, self.lengths)

    @cached_property
    def ended(self) -> Bool[np.ndarray, " trajectories"]:
        """Whether a trajectory ended in a terminal, after which nothing is earned."""
        return self.dataset.terminals[self.dataset.trajectories[:, 1] - 1]

    @cached_property
    def weight_of_row(self) -> Float[np.ndarray, " rows"]:
        """γᵗ."""
        return np.power(self.discount, self.time_of_row.astype(np.float64))

    @cached_property
    def earned(self) -> Float[np.ndarray, " trajectories"]:
        """Σ γᵗ·r_t of each trajectory."""
        return np.add.reduceat(self.weight_of_row * self.dataset.rewards, self.starts)

    @cached_property
    def time(self) -> Float[np.ndarray, " trajectories"]:
        """Σ γᵗ of each trajectory; for ever after a terminal."""
        recorded = np.add.reduceat(self.weight_of_row, self.starts)
        return np.where(self.ended, 1 / (1 - self.discount), recorded)

    def recorded_value(self) -> float:
        """What the behaviour earned per step."""
        return float(self.earned.sum() / self.time.sum())
