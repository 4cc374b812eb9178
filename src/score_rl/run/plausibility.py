"""Which values a critic can have at all.

Rewards between r₋ and r₊ add up, discounted, to something between min(r₋, 0)/(1 - γ) and max(r₊, 0)/(1 - γ). An
entropy bonus of α adds at most α·A·ln 2/(1 - γ) for A actions in ±1. Critics that say more have left the data, however
finite their numbers are. Pessimistic methods may say less, so less is remarked on only where the penalty dwarfs the
rewards.
"""

import dataclasses
import math

import numpy as np

from score_rl.data.treatment import Treatment
from score_rl.engine.runs import Run

ABOVE = 0.3  # of the range, before a value counts as impossible: it is a mean over critics that are still learning
BELOW = 2.0


@dataclasses.dataclass(frozen=True)
class ValueRange:
    """What sums of discounted, scaled rewards can be."""

    least: float
    most: float
    bonus: float  # to `most`, for each unit of an entropy's weight

    def warning(self, q: float, temperature: float = 0.0) -> str | None:
        """A sentence if Q is outside."""
        most = self.most + self.bonus * temperature
        width = most - self.least
        if q > most + ABOVE * width:
            return (
                f"Q is {q:.3g}, but rewards add up to {most:.3g} at most: the critics say what no data can have told "
                "them, so do not trust the policy."
            )
        if q < self.least - BELOW * width:
            return (
                f"Q is {q:.3g}, but rewards add up to {self.least:.3g} at least: a penalty outweighs all rewards or "
                "the critics have diverged, so do not trust the policy."
            )
        return None


def value_range(run: Run, treatment: Treatment) -> ValueRange | None:
    """None for a method that discounts nothing."""
    discount = getattr(run.config, "discount", 1.0)
    if discount >= 1:
        return None
    ends = np.asarray([run.dataset.rewards.min(), run.dataset.rewards.max()], np.float64)
    low, high = (ends - float(treatment.reward_shift)) / float(treatment.reward_scale)
    horizon = 1 / (1 - discount)
    return ValueRange(min(low, 0.0) * horizon, max(high, 0.0) * horizon, run.dataset.action_dim * math.log(2) * horizon)
