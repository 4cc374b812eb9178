"""The dynamics networks of MOPO and the stage that fits them.

N networks give a Gaussian p_i(r, s' - s | s, a) each. They are fitted by likelihood, each to a bootstrap sample of its
own. The elites are the networks with the least error on held-out rows. `nets/dynamics.py` has the loss.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Batch, Data, Shapes
from score_rl.algorithms.model_fitting import Fit, Fitting
from score_rl.nets.dynamics import Bounds, GaussianDynamics, Scaler, likelihood_loss, truncated_start
from score_rl.nets.perceptron import Perceptron

Config = Any  # MOPO's


class Learned(NamedTuple):
    """The result of the stage."""

    dynamics: GaussianDynamics
    elites: Int[Array, " elites"]


def init_dynamics(config: Config, shapes: Shapes, key: PRNGKeyArray) -> tuple[Perceptron, Bounds]:
    outcomes = 1 + shapes.observation
    sizes = (shapes.observation + shapes.action, *config.dynamics_hidden, 2 * outcomes)
    return truncated_start(key, sizes, config.models), Bounds.init(outcomes)


def scaler_of(data: Data) -> Scaler:
    return Scaler.standard(data.statistics.inputs.mean, data.statistics.inputs.std)


def outcomes_of(batch: Batch) -> Float[Array, "*batch outcome"]:
    """(r, s' - s)."""
    return jnp.concatenate([batch.rewards[..., None], batch.next_observations - batch.observations], axis=-1)


def dynamics_loss(config: Config, parameters: tuple[Perceptron, Bounds], data: Data, batch: Batch) -> Float[Array, ""]:
    """`batch` has transitions for each network."""
    inputs = scaler_of(data)(jnp.concatenate([batch.observations, batch.actions], axis=-1))
    return likelihood_loss(*parameters, inputs, outcomes_of(batch), config.dynamics_decay)


def dynamics_errors(
    config: Config, parameters: tuple[Perceptron, Bounds], data: Data, batch: Batch
) -> Float[Array, "members batch"]:
    """Squared errors of the means."""
    mean, _ = GaussianDynamics(*parameters, scaler_of(data))(batch.observations, batch.actions)
    return ((mean - outcomes_of(batch)[None]) ** 2).mean(axis=-1)


def uncertainty_of(log_variance: Float[Array, "members batch outcome"]) -> Float[Array, " batch"]:
    """max_i ‖σ_i(s, a)‖, over all networks."""
    return jnp.sqrt(jnp.exp(log_variance).sum(axis=-1)).max(axis=0)


def learn_dynamics(config: Config, fit: Fit, data: Data) -> Learned:
    """Every network at its best, and the numbers of the elites."""
    elites = jnp.argsort(fit.errors)[: config.elites].astype(jnp.int32)
    return Learned(GaussianDynamics(fit.best, fit.shared, scaler_of(data)), elites)


DYNAMICS = Fitting(
    name="dynamics",
    settings=("models", "elites", "dynamics_hidden", "dynamics_learning_rate", "dynamics_decay", "dynamics_epochs"),
    epochs=lambda config: config.dynamics_epochs,
    members=lambda config: config.models,
    learning_rate=lambda config: config.dynamics_learning_rate,
    init=init_dynamics,
    loss=dynamics_loss,
    errors=dynamics_errors,
    result=learn_dynamics,
    absorb=lambda state, learned: state._replace(learned=learned),
    counted=lambda config: config.elites,
    bootstrap=True,
).stage()
