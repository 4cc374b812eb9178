"""How far policies are from the data: what any method can be asked, whether it has an uncertainty of its own or not."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment
from score_rl.judge.dynamics import Model, disagreement
from score_rl.judge.fitting import BehaviourDensity
from score_rl.store.judgements import Distance, Histogram

QUANTILE = 0.99  # of the data: above it an action is unknown
EDGE = 0.99  # of the half-range: beyond it an action is at its bound
BINS = 24
ROWS = 20_000  # states that are asked about at most, evenly spread


def chosen_rows(dataset: Dataset) -> np.ndarray:
    """Rows whose states are asked about."""
    return np.linspace(0, len(dataset) - 1, min(ROWS, len(dataset))).astype(np.int64)


def distances(
    dataset: Dataset, learned: Float[np.ndarray, "policies rows action"], rows: np.ndarray,
    model: tuple[Model, Treatment], behaviour: BehaviourDensity,
) -> list[Distance]:  # fmt: skip
    """Of each policy, from its actions in these rows' states."""
    observations, recorded = dataset.observations[rows], dataset.actions[rows]
    taken, density = behaviour.scaled(recorded), behaviour.at(observations)
    base = _disagreement(model, observations, recorded)
    error = _apart(density.mean, taken, density.deviation)
    limit, least = np.quantile(base, QUANTILE), np.quantile(error, QUANTILE)
    found = []
    for actions in learned:
        scaled = behaviour.scaled(actions)
        doubt = _disagreement(model, observations, actions)
        found.append(
            Distance(
                moved=tuple(np.abs(scaled - taken).mean(axis=0).tolist()),
                behaviour_spread=tuple(np.abs(density.mean - taken).mean(axis=0).tolist()),
                unknown=float((doubt > limit).mean()),
                unlikely=float((_apart(density.mean, scaled, density.deviation) > least).mean()),
                saturated=float((np.abs(scaled) > EDGE).mean()),
                saturated_in_data=float((np.abs(taken) > EDGE).mean()),
                actions=tuple(
                    _histogram(low, high, recorded[:, column], actions[:, column])
                    for column, (low, high) in enumerate(zip(dataset.action_low, dataset.action_high, strict=True))
                ),
                uncertainty=_histogram_of_logarithms(base, doubt),
            )
        )
    return found


def _apart(mean: np.ndarray, actions: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The distance from the behaviour's mean action, in its deviations."""
    return np.asarray(np.square((actions - mean) / deviation).sum(axis=-1))


_disagreement_of = jax.jit(disagreement)


def _disagreement(model: tuple[Model, Treatment], observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    dynamics, treatment = model
    seen = treatment.observe(jnp.asarray(observations, jnp.float32))
    return np.asarray(_disagreement_of(dynamics, seen, treatment.action_in(jnp.asarray(actions, jnp.float32))))


def _histogram(low: Any, high: Any, data: np.ndarray, policy: np.ndarray) -> Histogram:
    edges = np.linspace(float(low), float(high), BINS + 1)
    shares = [np.histogram(np.clip(x, low, high), edges)[0] / len(x) for x in (data, policy)]
    return Histogram(float(low), float(high), *(tuple(share.round(5).tolist()) for share in shares))


def _histogram_of_logarithms(data: np.ndarray, policy: np.ndarray) -> Histogram:
    data, policy = (np.log10(np.maximum(x, 1e-12)) for x in (data, policy))
    low, high = min(data.min(), policy.min()), max(data.max(), policy.max())
    return _histogram(low, high if high > low else low + 1, data, policy)


def between_seeds(
    learned: Float[np.ndarray, "policies rows action"], groups: Sequence[Any], half_range: np.ndarray
) -> list[float | None]:
    """For each policy, how far its group's actions spread over seeds, in half-ranges; None for one seed alone."""
    members: dict[Any, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    spread: dict[Any, float | None] = {
        group: float((learned[numbers] / half_range).std(axis=0).mean()) if len(numbers) > 1 else None
        for group, numbers in members.items()
    }
    return [spread[group] for group in groups]
