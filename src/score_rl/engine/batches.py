"""Transitions as packed rows, and batches drawn from them.

`RowLayout` is the one place that says which column holds what. Rows are packed by it on the host, read by it on the
device, and counted by it where memory is predicted.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment


class RowLayout(NamedTuple):
    """The columns of a packed row: one transition, in the units of the recording."""

    observation: slice
    action: slice
    reward: int
    next_observation: slice
    terminal: int
    followed: int
    width: int

    @classmethod
    def of(cls, shapes: Shapes) -> "RowLayout":
        """The columns in the order of the fields, each after the one before."""
        free = itertools.count()

        def columns(number: int) -> slice:
            taken = [next(free) for _ in range(number)]
            return slice(taken[0], taken[-1] + 1)

        return cls(
            observation=columns(shapes.observation),
            action=columns(shapes.action),
            reward=next(free),
            next_observation=columns(shapes.observation),
            terminal=next(free),
            followed=next(free),
            width=next(free),
        )


def shapes_of(dataset: Dataset) -> Shapes:
    return Shapes(dataset.observation_dim, dataset.action_dim)


def pack_rows(dataset: Dataset) -> Float[np.ndarray, "rows columns"]:
    """One transition in each row, so that drawing a batch is one gather."""
    layout = RowLayout.of(shapes_of(dataset))
    rows = np.empty((len(dataset), layout.width), np.float32)
    rows[:, layout.observation] = dataset.observations
    rows[:, layout.action] = dataset.actions
    rows[:, layout.reward] = dataset.rewards
    rows[:, layout.next_observation] = dataset.next_observations
    rows[:, layout.terminal] = dataset.terminals
    rows[:, layout.followed] = dataset.followed()
    return rows


def rows_bytes(dataset: Dataset) -> int:
    """Bytes that the packed rows of a data set take."""
    return len(dataset) * RowLayout.of(shapes_of(dataset)).width * np.dtype(np.float32).itemsize


def draw_batch(
    treatment: Treatment,
    shapes: Shapes,
    rows: Float[Array, "rows columns"],
    offset: Int[Array, ""],
    length: Int[Array, ""],
    drawn: Int[Array, " batch"],
) -> Batch:
    """The transitions with these numbers, in treated units.

    `rows` may hold several data sets: this one has `length` rows from `offset` on. The second gather reads the actions
    one step later. The compiler leaves it out unless an algorithm uses them.
    """
    layout = RowLayout.of(shapes)
    here = rows[offset + drawn]
    later = rows[offset + jnp.minimum(drawn + 1, length - 1)]
    return Batch(
        observations=treatment.observe(here[:, layout.observation]),
        actions=treatment.action_in(here[:, layout.action]),
        rewards=treatment.reward(here[:, layout.reward]),
        next_observations=treatment.observe(here[:, layout.next_observation]),
        terminals=here[:, layout.terminal],
        rows=drawn,
        next_actions=treatment.action_in(later[:, layout.action]),
        followed=here[:, layout.followed],
    )
