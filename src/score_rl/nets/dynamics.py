r"""Ensembles of learned dynamics.

Probabilistic (PETS, MOPO): each network gives a Gaussian over (r, s' - s), its log-variance softly held between two
learned bounds, and is fitted by the likelihood of the data:

    log σ² ← max - softplus(max - log σ²),  then  min + softplus(log σ² - min)
    L = Σ_i E[(μ_i - y)²/σ_i² + log σ_i²] + 0.01·Σ(max - min) + Σ_layers decay·½‖W‖²

Deterministic (MOReL): each network gives (s' - s) in units of its mean absolute deviation, fitted by squared error; a
small second one gives the reward from (s, a) and the predicted s'.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.perceptron import Activation, Perceptron

LEAST_SCALE = 1e-12  # a column that varies less is not scaled (published code of MOPO)
EPSILON = 1e-8  # beside every deviation that divides (published code of MOReL)
BOUND_WEIGHT = 0.01  # of the log-variance's bounds in the loss (published code of PETS and MOPO)


class Scaler(NamedTuple):
    """(x - mean)/scale, column by column."""

    mean: Float[Array, " columns"]
    scale: Float[Array, " columns"]

    @classmethod
    def identity(cls, columns: int) -> Self:
        return cls(jnp.zeros(columns), jnp.ones(columns))

    @classmethod
    def standard(cls, mean: Float[Array, " columns"], std: Float[Array, " columns"]) -> Self:
        return cls(mean, jnp.where(std < LEAST_SCALE, 1.0, std))

    @classmethod
    def absolute(cls, mean: Float[Array, " columns"], deviation: Float[Array, " columns"]) -> Self:
        """In units of mean absolute deviations; a column that does not vary is left in its own."""
        return cls(mean, jnp.where(deviation < EPSILON, 1.0, deviation + EPSILON))

    def __call__(self, x: Float[Array, "*batch columns"]) -> Float[Array, "*batch columns"]:
        return (x - _beside(self.mean, x)) / _beside(self.scale, x)

    def back(self, x: Float[Array, "*batch columns"]) -> Float[Array, "*batch columns"]:
        return x * _beside(self.scale, x) + _beside(self.mean, x)


def _beside(vector: Array, partner: Array) -> Array:
    return vector.reshape((1,) * (partner.ndim - 1) + vector.shape)


def truncated_start(key: PRNGKeyArray, sizes: Sequence[int], members: int) -> Perceptron:
    """Weights normal with deviation 1/(2√fan_in), cut off at two deviations; biases 0 (published code of PETS)."""
    weights, biases = [], []
    for fan_in, fan_out in pairwise(sizes):
        key, weight_key = jax.random.split(key)
        drawn = jax.random.truncated_normal(weight_key, -2.0, 2.0, (members, fan_in, fan_out))
        weights.append(drawn / (2 * fan_in**0.5))
        biases.append(jnp.zeros((members, fan_out)))
    return Perceptron(tuple(weights), tuple(biases))


class Bounds(NamedTuple):
    """Of the log-variances; learned, and shared by all networks of an ensemble."""

    largest: Float[Array, " outcome"]
    least: Float[Array, " outcome"]

    @classmethod
    def init(cls, outcomes: int) -> Self:
        return cls(jnp.full(outcomes, 0.5, float), jnp.full(outcomes, -10.0, float))


class GaussianDynamics(NamedTuple):
    """p_i(r, s' - s | s, a), each network with parameters along a leading axis."""

    networks: Perceptron
    bounds: Bounds
    scaler: Scaler

    def __call__(
        self, observations: Float[Array, "batch observation"], actions: Float[Array, "batch action"]
    ) -> tuple[Float[Array, "members batch outcome"], Float[Array, "members batch outcome"]]:
        """Mean and log-variance of every network."""
        inputs = self.scaler(jnp.concatenate([observations, actions], axis=-1))
        return gaussian(self.networks.members(inputs, jax.nn.swish), self.bounds)


def gaussian(
    outputs: Float[Array, "members batch doubled"], bounds: Bounds
) -> tuple[Float[Array, "members batch outcome"], Float[Array, "members batch outcome"]]:
    """Mean and softly bounded log-variance from what the networks say."""
    mean, log_variance = jnp.split(outputs, 2, axis=-1)
    largest, least = _beside(bounds.largest, mean), _beside(bounds.least, mean)
    log_variance = largest - jax.nn.softplus(largest - log_variance)
    return mean, least + jax.nn.softplus(log_variance - least)


def on_own(
    networks: Perceptron, inputs: Float[Array, "members batch fan_in"], activation: Activation = jax.nn.relu
) -> Float[Array, "members batch fan_out"]:
    """Every network on inputs of its own."""
    return jax.vmap(lambda network, x: network(x, activation))(networks, inputs)


def likelihood_loss(
    networks: Perceptron,
    bounds: Bounds,
    inputs: Float[Array, "members batch fan_in"],
    outcomes: Float[Array, "members batch outcome"],
    decays: Sequence[float],
) -> Float[Array, ""]:
    """L above; `inputs` are scaled."""
    mean, log_variance = gaussian(on_own(networks, inputs, jax.nn.swish), bounds)
    losses = ((mean - outcomes) ** 2 * jnp.exp(-log_variance) + log_variance).mean(axis=(1, 2))
    held = BOUND_WEIGHT * (bounds.largest.sum() - bounds.least.sum())
    decay = sum(rate * 0.5 * (weight**2).sum() for rate, weight in zip(decays, networks.weights, strict=True))
    return losses.sum() + held + decay


class ResidualDynamics(NamedTuple):
    """s' = s + f_i(s, a) and r = g_i(s, a, s'), each network with parameters along a leading axis."""

    networks: Perceptron
    reward_networks: Perceptron
    inputs: Scaler  # of (s, a)
    changes: Scaler  # of s' - s
    rewards: Scaler  # of r, one column

    def next_of_all(
        self, observations: Float[Array, "batch observation"], actions: Float[Array, "batch action"]
    ) -> Float[Array, "members batch observation"]:
        """Every network's s' for the same (s, a)."""
        outputs = self.networks.members(self.inputs(jnp.concatenate([observations, actions], axis=-1)))
        return observations[None] + self.changes.back(outputs)

    def rewards_of_each(
        self,
        observations: Float[Array, "members batch observation"],
        actions: Float[Array, "members batch action"],
        next_observations: Float[Array, "members batch observation"],
    ) -> Float[Array, "members batch"]:
        """Every network's r for an (s, a, s') of its own; s' is scaled as s is."""
        width = observations.shape[-1]
        like_s = Scaler(self.inputs.mean[:width], self.inputs.scale[:width])
        inputs = self.inputs(jnp.concatenate([observations, actions], axis=-1))
        outputs = on_own(self.reward_networks, jnp.concatenate([inputs, like_s(next_observations)], axis=-1))
        return self.rewards.back(outputs)[..., 0]


def disagreement(predictions: Float[Array, "members batch observation"]) -> Float[Array, " batch"]:
    """max_{i,j} ‖f_i(s, a) - f_j(s, a)‖, all networks asked about the same (s, a)."""
    members = predictions.shape[0]
    first, second = jnp.triu_indices(members, k=1)
    # The root of 0 has no gradient, and none is ever taken here.
    return jnp.sqrt(((predictions[first] - predictions[second]) ** 2).sum(axis=-1)).max(axis=0)
