"""What estimates are computed from: recorded trajectories, and values per step of discounted time."""

import dataclasses
import math
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from score_rl.data.dataset import Dataset

FEW = 5  # trajectories: fewer say nothing of their spread, and long ones are cut
PIECES = 20  # that a recording of few trajectories is cut into, where it is long enough


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Trajectories to judge by, and how their rewards are counted.

    A value *per step* is a discounted mean of rewards: Σ γᵗ·r_t / Σ γᵗ. The sums run over the recorded steps where the
    recording stopped, and for ever after a terminal, with nothing earned. So trajectories of unequal length compare.
    Where a recording goes on after a terminal, the rows behind its first terminal do not count.
    """

    dataset: Dataset
    discount: float

    @property
    def starts(self) -> Int[np.ndarray, " trajectories"]:
        """The first row of each trajectory."""
        return self.dataset.trajectories[:, 0]

    @cached_property
    def _recorded(self) -> Int[np.ndarray, " trajectories"]:
        return np.diff(self.dataset.trajectories, axis=1)[:, 0]

    @cached_property
    def lengths(self) -> Int[np.ndarray, " trajectories"]:
        """Rows of each trajectory that count: all of them, or up to its first terminal."""
        rows = np.where(self.dataset.terminals, self.time_of_row + 1, len(self.dataset))
        return np.minimum(np.minimum.reduceat(rows, self.starts), self._recorded)

    @cached_property
    def trajectory_of_row(self) -> Int[np.ndarray, " rows"]:
        return np.repeat(np.arange(len(self._recorded)), self._recorded)

    @cached_property
    def time_of_row(self) -> Int[np.ndarray, " rows"]:
        """Steps since the trajectory began."""
        return np.arange(len(self.dataset)) - np.repeat(self.starts, self._recorded)

    @cached_property
    def counts(self) -> Bool[np.ndarray, " rows"]:
        """Whether a row counts."""
        return self.time_of_row < np.repeat(self.lengths, self._recorded)

    @cached_property
    def ended(self) -> Bool[np.ndarray, " trajectories"]:
        """Whether a trajectory has a terminal, after which nothing is earned."""
        return np.logical_or.reduceat(self.dataset.terminals, self.starts)

    @cached_property
    def weight_of_row(self) -> Float[np.ndarray, " rows"]:
        """γᵗ; 0 behind a terminal."""
        return np.power(self.discount, self.time_of_row.astype(np.float64)) * self.counts

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


def in_pieces(dataset: Dataset, discount: float) -> Dataset:
    """The same rows. Where there are only few trajectories, long ones are cut into pieces of a horizon or more.

    A plant may have been recorded in one go. Its one trajectory has one start and no spread, but every state of it is
    one from which the future can be judged.
    """
    if len(dataset.trajectories) >= FEW:
        return dataset
    length = max(math.ceil(1 / (1 - discount)), len(dataset) // PIECES)
    return dataclasses.replace(dataset, trajectories=_in_equal_pieces(dataset.trajectories, length))


def bootstrap_units(dataset: Dataset) -> Int[np.ndarray, " rows"]:
    """What a bootstrap sample holds or leaves out as a whole: the trajectory of each row, or a part of a long one
    where there are too few of them to draw from."""
    bounds = dataset.trajectories
    if len(bounds) < PIECES:
        bounds = _in_equal_pieces(bounds, max(1, len(dataset) // PIECES))
    return np.repeat(np.arange(len(bounds)), np.diff(bounds, axis=1)[:, 0])


def _in_equal_pieces(bounds: Int[np.ndarray, "trajectories 2"], length: int) -> Int[np.ndarray, "pieces 2"]:
    """Each trajectory in equal pieces of at least this length, or whole."""
    pieces = []
    for start, stop in bounds:
        number = max(1, int(stop - start) // length)
        edges = np.linspace(start, stop, number + 1).round().astype(np.int64)
        pieces.append(np.stack([edges[:-1], edges[1:]], axis=1))
    return np.concatenate(pieces)
