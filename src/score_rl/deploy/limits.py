"""How far the data reach, and what lies outside: one rule for `run.policy(check=True)` and for exported files.

An observation is far outside the data in two cases. A column lies beyond the least or the greatest recorded number by
more than a tenth of what lies between them. Or the whole observation is farther from the mean than any recorded one,
by more than a tenth: in Mahalanobis' distance, which finds combinations of columns that the data never have.

An action is unknown where the method's uncertainty u(s, a) is above the 99 % quantile of the recorded pairs. One in a
hundred recorded pairs is unknown by that rule. Methods without an uncertainty call no action unknown.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from score_rl.data.dataset import Dataset

BEYOND = 0.1  # of the recorded range, or distance, that is not yet far
CONSTANT = 1e-3  # of its size by which a column may differ that is always the same
LEAST_SPREAD = 1e-2  # of a standard deviation: directions in which the data vary less count as that wide
QUANTILE = 0.99
PAIRS = 20_000  # of the data, at most, that the quantile is taken of
ROWS_AT_ONCE = 2_000  # whose uncertainty is computed in one go
MOST_ROWS = 1_000_000  # whose distances are computed in one go

Uncertainty = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (observations, actions) -> u, as recorded


class Limits(NamedTuple):
    """How far the recorded observations reach, and the greatest uncertainty of an action that counts as known."""

    least: Float[Array, " observation"]
    most: Float[Array, " observation"]
    margin: Float[Array, " observation"]
    mean: Float[Array, " observation"]
    whitening: Float[Array, "observation directions"]
    farthest: Float[Array, ""]
    uncertainty: Float[Array, ""] | None  # None: the method has none


def distance(limits: Limits, observations: Float[Array, "batch observation"]) -> Float[Array, " batch"]:
    """How far outside the data, by the farther of the two measures: above 1 is far."""
    least, most, margin, mean = (x[None] for x in (limits.least, limits.most, limits.margin, limits.mean))
    beyond = (jnp.maximum(least - observations, observations - most) / margin).max(axis=1)
    together = jnp.sqrt((((observations - mean) @ limits.whitening) ** 2).sum(axis=1)) / limits.farthest
    return jnp.maximum(beyond, together)


def is_far(distances: Float[Array, " batch"]) -> Bool[Array, " batch"]:
    """Also where the distance is not a number."""
    return jnp.logical_not(distances <= 1)


def is_unknown(limits: Limits, uncertainty: Float[Array, " batch"]) -> Bool[Array, " batch"]:
    """Also where the uncertainty is not a number."""
    assert limits.uncertainty is not None
    return jnp.logical_not(uncertainty <= limits.uncertainty)


def fit_limits(dataset: Dataset, uncertainty: Uncertainty | None) -> Limits:
    """The limits of a data set, computed in float64 over all rows; `uncertainty` is the method's, if it has one."""
    observations = dataset.observations
    least, most = observations.min(axis=0).astype(np.float64), observations.max(axis=0).astype(np.float64)
    size = np.maximum(np.abs(least), np.abs(most))
    margin = np.where(most > least, BEYOND * (most - least), np.maximum(CONSTANT * size, CONSTANT))
    mean = observations.mean(axis=0, dtype=np.float64)
    whitening = _whitening(observations, mean)
    blocks = (observations[at : at + MOST_ROWS] for at in range(0, len(observations), MOST_ROWS))
    farthest = max(float(np.sqrt((((block - mean) @ whitening) ** 2).sum(axis=1)).max()) for block in blocks)
    return Limits(
        least=_single(least),
        most=_single(most),
        margin=_single(margin),
        mean=_single(mean),
        whitening=_single(whitening),
        farthest=_single(max(farthest, 1e-6) * (1 + BEYOND)),
        uncertainty=None if uncertainty is None else _single(_quantile(dataset, uncertainty)),
    )


def _single(number: np.ndarray | float) -> Array:
    return jnp.asarray(number, jnp.float32)


def _whitening(observations: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """To directions in which the data have a variance of 1. Columns that are always the same are left out."""
    width = observations.shape[1]
    covariance = np.zeros((width, width))
    for at in range(0, len(observations), MOST_ROWS):
        centred = observations[at : at + MOST_ROWS] - mean
        covariance += centred.T @ centred
    covariance /= len(observations)
    varies = np.ptp(observations, axis=0) > 0
    spread = np.where(varies, np.sqrt(np.diag(covariance)), 1.0)
    spread[spread == 0] = 1.0
    correlation = (covariance / np.outer(spread, spread))[np.ix_(varies, varies)]
    variances, directions = np.linalg.eigh(correlation)
    full = np.zeros((width, int(varies.sum())))
    full[varies] = directions / np.sqrt(np.maximum(variances, LEAST_SPREAD**2))
    return full / spread[:, None] if varies.any() else np.zeros((width, 1))


def _quantile(dataset: Dataset, uncertainty: Uncertainty) -> float:
    """Of the uncertainties of recorded pairs that are spread evenly over the data."""
    rows = np.unique(np.linspace(0, len(dataset) - 1, min(PAIRS, len(dataset))).astype(np.int64))
    short = -len(rows) % min(ROWS_AT_ONCE, len(rows))
    filled = np.concatenate([rows, rows[:short]])  # whole blocks: a block of another size would compile again
    found = [
        np.asarray(uncertainty(dataset.observations[block], dataset.actions[block]))
        for block in np.split(filled, len(filled) // min(ROWS_AT_ONCE, len(rows)))
    ]
    return float(np.quantile(np.concatenate(found)[: len(rows)], QUANTILE))
