"""The model-based estimate: policies act in a learned model, from starts of the data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment
from score_rl.judge.candidates import Candidates
from score_rl.judge.dynamics import Model, predict
from score_rl.judge.fitting import BehaviourDensity

MARGIN = 0.5  # of the range of an observation in the data: further out no model is followed


class Imagined(NamedTuple):
    """Of every policy, and of the behaviour at the end."""

    values: Float[np.ndarray, "policies members starts"]  # per step
    strayed: Float[np.ndarray, " policies"]  # share of steps in which an observation is outside of what was recorded


class Limits(NamedTuple):
    """What was recorded, in treated units, and where a model is followed."""

    low: np.ndarray
    high: np.ndarray
    margin: np.ndarray
    least_reward: float
    most_reward: float

    @classmethod
    def of(cls, dataset: Dataset, treatment: Treatment) -> "Limits":
        seen = np.asarray(treatment.observe(jnp.asarray(dataset.observations)))
        low, high = seen.min(axis=0), seen.max(axis=0)
        return cls(low, high, MARGIN * (high - low), float(dataset.rewards.min()), float(dataset.rewards.max()))


def rollout_values(
    model: tuple[Model, Treatment],
    candidates: Candidates,
    behaviour: BehaviourDensity,
    dataset: Dataset,
    starts: Float[np.ndarray, "starts observation"],
    *,
    horizon: int,
    discount: float,
    seed: int = 0,
) -> "Imagined":
    """What each policy earns per step in each network of the model, over `horizon` steps; the behaviour comes last.

    A rollout stays in one network, so that the networks' disagreement adds up over time. All policies meet the same
    noise. Behind a terminal nothing is earned, for ever: rewards count by the probability that there was none, and
    what has ended by the horizon counts as time behind it too, as it does of recordings (`evidence.py`).
    """
    dynamics, treatment = model
    limits = Limits.of(dataset, treatment)
    members, policies, width = dynamics.networks.weights[0].shape[0], len(candidates) + 1, starts.shape[1]
    shape = (policies, members, len(starts))
    seen = np.asarray(treatment.observe(jnp.asarray(starts, jnp.float32)))
    state = np.broadcast_to(seen, (*shape, width)).copy()
    alive, total, outside, weights = np.ones(shape), np.zeros(shape), np.zeros(shape), 0.0
    rng = np.random.default_rng(seed)
    for time in range(horizon):
        actions = _actions(state, treatment, candidates, behaviour, rng)
        noise = rng.normal(size=(members, 1, len(starts), 1 + width)).astype(np.float32)
        step = _step(dynamics, limits, _by_member(state), _by_member(actions), noise)
        state, reward, terminal = (np.asarray(part).swapaxes(0, 1) for part in step)
        total += discount**time * alive * reward
        outside += alive * ((state < limits.low) | (state > limits.high)).any(axis=-1)
        alive *= 1 - terminal
        weights += discount**time
    behind = discount**horizon / (1 - discount)  # Σ γᵗ behind the horizon
    return Imagined(total / (weights + (1 - alive) * behind), outside.mean(axis=(1, 2)) / horizon)


def _actions(
    state: np.ndarray, treatment: Treatment, candidates: Candidates, behaviour: BehaviourDensity, rng: Any
) -> np.ndarray:
    """Of every policy in its own states, within ±1."""
    policies, members, starts, width = state.shape
    mean, scale = np.asarray(treatment.observation_mean), np.asarray(treatment.observation_scale)
    observations = (state * scale + mean).reshape(policies, members * starts, width)
    learned = behaviour.scaled(candidates.act(observations[:-1]))
    found = behaviour.at(observations[-1])
    sampled = np.clip(found.mean + found.deviation * rng.normal(size=found.mean.shape), -1, 1)
    actions = np.concatenate([learned, sampled[None]])
    return actions.reshape(policies, members, starts, -1).astype(np.float32)


def _by_member(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.swapaxes(0, 1), dtype=np.float32)


@jax.jit
def _step(model: Model, limits: Limits, state: Any, actions: Any, noise: Any) -> Any:
    """One step of all policies in all networks; arrays are (members, policies, starts, ...)."""
    members, policies, starts, width = state.shape
    found = predict(model, state.reshape(members, -1, width), actions.reshape(members, policies * starts, -1))
    mean, deviation = (part.reshape(members, policies, starts, -1) for part in (found.mean, found.deviation))
    outcome = mean + deviation * noise
    low, high, margin = (edge[None, None, None] for edge in (limits.low, limits.high, limits.margin))
    following = jnp.clip(state + outcome[..., 1:], low - margin, high + margin)
    reward = jnp.clip(outcome[..., 0], limits.least_reward, limits.most_reward)
    return following, reward, found.terminal.reshape(members, policies, starts)
