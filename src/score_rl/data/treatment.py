"""How recorded numbers are scaled for learning, and back again for acting.

A treatment is part of the trained policy, which means nothing without it.
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from score_rl.data.dataset import Dataset
from score_rl.errors import InputError

STATE_EPSILON = 1e-3  # (s - mean)/(std + 1e-3), as in TD3-BC's and SCORE's published code; a constant is not magnified

RewardScaling = Literal["minmax", "none", "return-range"]


class Treatment(NamedTuple):
    """treated observation = (s - mean)/scale, reward = (r - shift)/scale, action = (a - centre)/half-width."""

    observation_mean: Float[Array, " observation"]
    observation_scale: Float[Array, " observation"]
    reward_shift: Float[Array, ""]
    reward_scale: Float[Array, ""]
    action_centre: Float[Array, " action"]
    action_halfwidth: Float[Array, " action"]

    def observe(self, observations: Float[Array, "*batch observation"]) -> Float[Array, "*batch observation"]:
        """Observations in treated units."""
        return (observations - _beside(self.observation_mean, observations)) / _beside(
            self.observation_scale, observations
        )

    def reward(self, rewards: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Rewards in treated units."""
        return (rewards - self.reward_shift) / self.reward_scale

    def action_in(self, actions: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
        """Actions from the environment's units to ±1."""
        return (actions - _beside(self.action_centre, actions)) / _beside(self.action_halfwidth, actions)

    def action_out(self, actions: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
        """Actions from ±1 to the environment's units."""
        return _beside(self.action_centre, actions) + _beside(self.action_halfwidth, actions) * actions


def _beside(vector: Array, partner: Array) -> Array:
    return vector.reshape((1,) * (partner.ndim - 1) + vector.shape)


def fit_treatment(dataset: Dataset, *, normalise_states: bool, reward_scaling: RewardScaling) -> Treatment:
    """The treatment of a data set. It is computed in float64 over all rows and stored in float32.

    `minmax` scales rewards to [0, 1] over the data set; the meaning of SCORE's β depends on it. `return-range` divides
    by (best - worst return of a trajectory)/1000, as IQL does for locomotion.
    """
    observations = dataset.observations.astype(np.float64)
    if normalise_states:
        mean, std = observations.mean(0), observations.std(0)
        scale = np.where(np.ptp(dataset.observations, axis=0) > 0, std + STATE_EPSILON, 1.0)
    else:
        mean, scale = np.zeros(dataset.observation_dim), np.ones(dataset.observation_dim)
    shift, spread = 0.0, 1.0
    if reward_scaling == "minmax":
        shift = float(dataset.rewards.min())
        spread = float(dataset.rewards.max()) - shift
    elif reward_scaling == "return-range":
        returns = dataset.returns()[0]
        spread = float(returns.max() - returns.min()) / 1000.0
    elif reward_scaling != "none":
        raise InputError(f"`config.reward_scaling` is {reward_scaling!r}; it must be minmax, return-range or none.")
    if not spread > 0:
        raise InputError(
            f"{dataset.name}: every reward is the same, so {reward_scaling!r} scaling divides by zero and there is "
            "nothing to learn; use data with differing rewards or `config.reward_scaling=none`."
        )
    low, high = dataset.action_low.astype(np.float64), dataset.action_high.astype(np.float64)
    numbers = (mean, scale, shift, spread, (high + low) / 2, (high - low) / 2)
    return Treatment(*(jnp.asarray(number, dtype=jnp.float32) for number in numbers))
