r"""The behaviour's density: how likely each action was where the data were recorded.

    μ(a|s) = N(a; m(s), diag σ(s)²),    L = -E[log μ(a|s)],    log σ within [-4, 1]

Actions are within ±1. Importance sampling weighs by this density, and distance from the data is measured in its
deviations. It is fitted to trajectories that estimates are not computed from.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step
from score_rl.nets.perceptron import Perceptron

LOG_STD_RANGE = (-4.0, 1.0)


@config
class Config:
    learning_rate: float = setting(1e-3, "Adam's learning rate")
    hidden: tuple[int, ...] = setting((64, 64), "widths of the hidden layers", minimum=1)
    batch_size: int = setting(256, "transitions per update", minimum=1)
    normalise_states: bool = setting(True, "standardise observations over the data set")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards are not used")


class State(NamedTuple):
    network: Perceptron
    optimiser: OptimiserState
    step: Int[Array, ""]


class Gaussian(NamedTuple):
    """μ(·|s), over actions within ±1."""

    mean: Float[Array, "batch action"]
    deviation: Float[Array, "batch action"]

    def log_density(self, actions: Float[Array, "batch action"]) -> Float[Array, " batch"]:
        """log μ(a|s) without its constant."""
        error = (actions - self.mean) / self.deviation
        return (-0.5 * error**2 - jnp.log(self.deviation)).sum(axis=-1)


def density(network: Perceptron, observations: Float[Array, "batch observation"]) -> Gaussian:
    mean, log_std = jnp.split(network(observations), 2, axis=-1)
    return Gaussian(mean, jnp.exp(jnp.clip(log_std, *LOG_STD_RANGE)))


def loss(network: Perceptron, batch: Batch) -> Float[Array, ""]:
    """L."""
    return -density(network, batch.observations).log_density(batch.actions).mean()


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    error, gradients = jax.value_and_grad(loss)(state.network, batch)
    network, optimiser = adam_step(state.network, gradients, state.optimiser, config.learning_rate)
    return State(network, optimiser, state.step + 1), {"loss": error}


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    network = Perceptron.init(key, (shapes.observation, *config.hidden, 2 * shapes.action))
    return State(network, adam_init(network), jnp.zeros((), jnp.int32))


def act(
    config: Config, policy: Perceptron, observations: Float[Array, "batch observation"], key: PRNGKeyArray | None = None
) -> Float[Array, "batch action"]:
    """The behaviour's mean action; a sample of its actions with a key."""
    found = density(policy, observations)
    noise = 0.0 if key is None else found.deviation * jax.random.normal(key, found.mean.shape, found.mean.dtype)
    return jnp.clip(found.mean + noise, -1, 1)


DENSITY = Algorithm(
    name="behaviour-density",
    title="behaviour density",
    summary="how likely each recorded action was",
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.network,
    act=act,
)
