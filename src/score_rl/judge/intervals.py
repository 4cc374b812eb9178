"""Estimates with bootstrap intervals over trajectories, and their differences from the behaviour, in pairs."""

import numpy as np
from jaxtyping import Float

from score_rl.store.judgements import Estimate

RESAMPLES = 400
TAIL = 0.05  # on each side: an interval of 90 %


def from_resamples(
    values: Float[np.ndarray, " policies"], drawn: Float[np.ndarray, "resamples policies"]
) -> list[Estimate]:
    """Estimates of all policies but the last, which is the behaviour, and then of the behaviour."""
    differences, gaps = values - values[-1], drawn - drawn[:, -1:]
    low, high = np.quantile(drawn, (TAIL, 1 - TAIL), axis=0)
    gap_low, gap_high = np.quantile(gaps, (TAIL, 1 - TAIL), axis=0)
    columns = (values, low, high, differences, gap_low, gap_high)
    return [Estimate(*(float(column[number]) for column in columns)) for number in range(len(values))]


def trajectory_counts(trajectories: int, seed: int = 0) -> Float[np.ndarray, "resamples trajectories"]:
    """How often each trajectory is in each bootstrap sample."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(trajectories, np.full(trajectories, 1 / trajectories), size=RESAMPLES).astype(float)


def of_members(
    values: Float[np.ndarray, "policies members trajectories"], *, pessimistic: bool = False, seed: int = 0
) -> list[Estimate]:
    """From what each member of an ensemble says of each trajectory's start.

    A resample draws trajectories and one member. The pessimistic estimate takes the least member in each start. Its
    intervals are over trajectories alone, and the behaviour's value, with which it is compared, is the plain one.
    """
    _, members, trajectories = values.shape
    counts = trajectory_counts(trajectories, seed) / trajectories
    if pessimistic:
        least = np.concatenate([values[:-1].min(axis=1), values[-1:].mean(axis=1)])
        return from_resamples(least.mean(axis=1), counts @ least.T)
    chosen = np.random.default_rng([seed, 1]).integers(members, size=RESAMPLES)
    drawn = np.einsum("rt,rpt->rp", counts, values.transpose(1, 0, 2)[chosen])
    return from_resamples(values.mean(axis=(1, 2)), drawn)
