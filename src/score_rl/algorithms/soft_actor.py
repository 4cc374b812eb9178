r"""The actor of SAC (Haarnoja et al., 2018), shared by CQL, SAC-N, EDAC, PBRL and MOPO.

A tanh-squashed Gaussian policy π, and a temperature α that is tuned so that the entropy meets a target H:

    L(π) = E[α·log π(a|s) - Q(s, a)],    a ~ π(·|s) reparameterised
    L(log α) = -log α·E[log π(a|s) + H],    H = -(number of action dimensions)

Each method says what Q is, and in which order actor, temperature and critics move.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.algorithms.algorithm import Metrics, Shapes
from score_rl.nets.initialisation import rlkit_start
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.squashed_gaussian import SquashedGaussian

LOG_STD_RANGE = (-5.0, 2.0)  # published code of CQL, EDAC and PBRL, where SAC has (-20, 2)

Value = Callable[[Float[Array, "batch action"]], Float[Array, " batch"]]  # Q(s, ·) at the batch's states


class SoftActor(NamedTuple):
    """Policy and temperature, each with its optimiser."""

    network: Perceptron
    log_temperature: Float[Array, ""]
    network_optimiser: OptimiserState
    temperature_optimiser: OptimiserState

    @property
    def temperature(self) -> Float[Array, ""]:
        """α."""
        return jnp.exp(self.log_temperature)


def init_soft_actor(key: PRNGKeyArray, shapes: Shapes, hidden: tuple[int, ...]) -> SoftActor:
    """Near-zero means and log-stds, α = 1, as in the published code of CQL, SAC-N, EDAC and PBRL."""
    network = rlkit_start(key, (shapes.observation, *hidden, 2 * shapes.action), last=1e-3)
    log_temperature = jnp.zeros(())
    return SoftActor(network, log_temperature, adam_init(network), adam_init(log_temperature))


def policy(network: Perceptron, observations: Float[Array, "batch observation"]) -> SquashedGaussian:
    """π(·|s)."""
    return SquashedGaussian.from_output(network(observations), LOG_STD_RANGE)


def actor_loss(
    network: Perceptron,
    temperature: Float[Array, ""],
    value: Value,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "batch action"],
) -> tuple[Float[Array, ""], Metrics]:
    """L(π). `noise` is standard normal."""
    actions, log_prob = policy(network, observations).sample_and_log_prob(noise)
    q = value(actions)
    loss = (temperature * log_prob - q).mean()
    return loss, {"actor_loss": loss, "q_policy": q.mean(), "entropy": -log_prob.mean()}


def improve(
    soft: SoftActor,
    temperature: Float[Array, ""],
    value: Value,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "batch action"],
    learning_rate: Float[Array, ""] | float,
    loss: Callable[..., tuple[Float[Array, ""], Metrics]] = actor_loss,
) -> tuple[SoftActor, Metrics]:
    """One step of the policy down L(π), at a given temperature."""
    gradients, metrics = jax.grad(loss, has_aux=True)(soft.network, temperature, value, observations, noise)
    network, optimiser = adam_step(soft.network, gradients, soft.network_optimiser, learning_rate)
    return soft._replace(network=network, network_optimiser=optimiser), metrics | {"temperature": temperature}


def tune_temperature(
    soft: SoftActor,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "batch action"],
    learning_rate: Float[Array, ""] | float,
) -> SoftActor:
    """One step of the temperature down L(log α). The policy stays as it is."""
    _, log_prob = policy(soft.network, observations).sample_and_log_prob(noise)
    target_entropy = -noise.shape[-1]
    gradient = -(log_prob.mean() + target_entropy)
    log_temperature, optimiser = adam_step(soft.log_temperature, gradient, soft.temperature_optimiser, learning_rate)
    return soft._replace(log_temperature=log_temperature, temperature_optimiser=optimiser)


def act(
    config: Any,
    network: Perceptron,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """tanh(μ(s)), or with a key a draw from π(·|s)."""
    distribution = policy(network, observations)
    if key is None:
        return distribution.mode()
    return distribution.sample(jax.random.normal(key, distribution.mean.shape, observations.dtype))
