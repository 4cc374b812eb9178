"""Data of one decision that can fool whoever maximises: an avenue that is known and a side street that is not.

One decision, one dimension, after the paper's example of the green lights. Actions below 0 drive the avenue, which
pays 0.7 at best and hardly varies. Actions above 0 take a side street with three lights, each green with probability
0.75: all green pays 1.0, anything else 0.2, 0.54 on average at best. The data has three hundred drives on the avenue
and four in the side street.
"""

import dataclasses
from functools import cache

import numpy as np
from jaxtyping import Float

AVENUE, STREET, GREEN_LIGHT, LIGHTS = 0.7, 0.5, 0.75, 3
FAST, SLOW, BEND, NOISE = 1.0, 0.2, 0.4, 0.05
DRIVES, TRIES, XI = 300, 4, 0.1  # on the avenue, in the side street; Hoeffding's bound holds with 1 - ξ
NEAR = 0.05  # an action this far from all recorded ones was never tried: what is said of it is extrapolated


def true_value(actions: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The mean reward of each action."""
    fast = GREEN_LIGHT**LIGHTS
    street = fast * FAST + (1 - fast) * SLOW - BEND * (actions - STREET) ** 2
    return np.where(actions < 0, AVENUE - BEND * (actions + STREET) ** 2, street)


@dataclasses.dataclass(frozen=True)
class Drives:
    """A data set of single decisions."""

    actions: Float[np.ndarray, " drives"]
    rewards: Float[np.ndarray, " drives"]

    def road(self, street: bool) -> Float[np.ndarray, " some"]:
        return self.rewards[(self.actions > 0) == street]

    def knows(self, action: float) -> bool:
        """Whether something like this action was recorded."""
        return bool(np.abs(self.actions - action).min() <= NEAR)

    @property
    def lucky(self) -> bool:
        """Whether the side street looks better than the avenue."""
        return bool(self.road(street=True).mean() > self.road(street=False).mean())

    def bound(self, street: bool) -> float:
        """Hoeffding's lower bound of a road's mean, rewards between 0 and 1."""
        seen = self.road(street)
        return float(seen.mean() - np.sqrt(np.log(1 / XI) / (2 * len(seen))))


@cache
def drives(number: int) -> Drives:
    rng = np.random.default_rng([20, number])
    avenue = np.clip(rng.normal(-STREET, 0.2, DRIVES), -1, -0.05)
    street = np.clip(rng.normal(STREET, 0.1, TRIES), 0.05, 1)
    lights = rng.random((TRIES, LIGHTS)) < GREEN_LIGHT
    paid = np.where(lights.all(axis=1), FAST, SLOW) - BEND * (street - STREET) ** 2
    rewards = np.concatenate([true_value(avenue) + rng.normal(0, NOISE, DRIVES), paid])
    order = rng.permutation(DRIVES + TRIES)
    return Drives(np.concatenate([avenue, street])[order], rewards[order])
