"""The stages of MOReL: the dynamics networks, and the policy that clones the data's actions.

K networks f_i(s, a) are fitted to s' - s by squared error, and K small ones to the reward. Both are fitted together. A
reward network sees the s' that its dynamics network predicts. The disagreement over the data is measured last.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Batch, Data, Shapes
from score_rl.algorithms.model_fitting import Fit, Fitting
from score_rl.envs import TASKS, terminates
from score_rl.nets.dynamics import ResidualDynamics, Scaler, disagreement, on_own
from score_rl.nets.perceptron import Perceptron

Config = Any  # MOReL's
State = Any  # MOReL's
ROWS_AT_ONCE = 4096  # when the disagreement over the whole data set is computed


class Learned(NamedTuple):
    """The result of the first stage."""

    dynamics: ResidualDynamics
    largest: Float[Array, ""]  # disagreement over the data


def scales(config: Config, width: int) -> Float[np.ndarray, " observation"]:
    """The factor of every column of an observation."""
    factors = np.ones(width)
    if config.task != "none":
        factors[TASKS[config.task].positions - 1 :] = config.velocity_scale
    return factors


def scaled(config: Config, observations: Float[Array, "*batch observation"]) -> Float[Array, "*batch observation"]:
    factors = jnp.asarray(scales(config, observations.shape[-1]), observations.dtype)
    return observations * factors.reshape((1,) * (observations.ndim - 1) + factors.shape)


def ended(config: Config, observations: Float[Array, "*batch observation"]) -> Bool[Array, "*batch"]:
    """By the task's rule, from scaled observations."""
    if config.task == "none":
        return jnp.zeros(observations.shape[:-1], bool)
    factors = jnp.asarray(scales(config, observations.shape[-1]), observations.dtype)
    return jnp.asarray(
        terminates(config.task, observations / factors.reshape((1,) * (observations.ndim - 1) + factors.shape))
    )


def init_dynamics(config: Config, shapes: Shapes, key: PRNGKeyArray) -> tuple[tuple[Perceptron, Perceptron], tuple[()]]:
    """Layers start as PyTorch's do."""
    dynamics_key, reward_key = jax.random.split(key)
    width = shapes.observation + shapes.action
    dynamics = Perceptron.init(dynamics_key, (width, *config.dynamics_hidden, shapes.observation), config.models)
    reward = Perceptron.init(reward_key, (width + shapes.observation, *config.reward_hidden, 1), config.models)
    return (dynamics, reward), ()


def model_of(config: Config, networks: tuple[Perceptron, Perceptron], data: Data) -> ResidualDynamics:
    """The model whose units are the data's means and mean absolute deviations."""
    inputs, outcomes = data.statistics
    width = outcomes.mean.shape[0] - 1
    factors = jnp.asarray(scales(config, width), inputs.mean.dtype)
    on_inputs = jnp.concatenate([factors, jnp.ones(inputs.mean.shape[0] - width, factors.dtype)])
    return ResidualDynamics(
        *networks,
        inputs=Scaler.absolute(inputs.mean * on_inputs, inputs.deviation * on_inputs),
        changes=Scaler.absolute(outcomes.mean[1:] * factors, outcomes.deviation[1:] * factors),
        rewards=Scaler.absolute(outcomes.mean[:1], outcomes.deviation[:1]),
    )


def dynamics_loss(
    config: Config, parameters: tuple[tuple[Perceptron, Perceptron], tuple[()]], data: Data, batch: Batch
) -> Float[Array, ""]:
    """Squared errors of changes, in their units, and of rewards. The reward networks see the predicted s'."""
    model = model_of(config, parameters[0], data)
    s, s2 = scaled(config, batch.observations), scaled(config, batch.next_observations)
    outputs = on_own(model.networks, model.inputs(jnp.concatenate([s, batch.actions], axis=-1)))
    changes = ((outputs - model.changes(s2 - s)) ** 2).mean(axis=(1, 2))
    predicted = jax.lax.stop_gradient(s + model.changes.back(outputs))
    rewards = ((model.rewards_of_each(s, batch.actions, predicted) - batch.rewards) ** 2).mean(axis=1)
    return changes.sum() + rewards.sum()


def dynamics_errors(
    config: Config, parameters: tuple[tuple[Perceptron, Perceptron], tuple[()]], data: Data, batch: Batch
) -> Float[Array, "members batch"]:
    """Squared errors of changes, in their units."""
    model, s = model_of(config, parameters[0], data), scaled(config, batch.observations)
    predicted = model.next_of_all(s, batch.actions)
    return (((predicted - scaled(config, batch.next_observations)[None]) / model.changes.scale[None, None]) ** 2).mean(
        axis=-1
    )


def learn_dynamics(config: Config, fit: Fit, data: Data) -> Learned:
    """The model, and the largest disagreement of its networks over all rows."""
    model = model_of(config, fit.best, data)

    def most(chunk: Int[Array, ""], largest: Float[Array, ""]) -> Float[Array, ""]:
        rows = jnp.minimum(chunk * ROWS_AT_ONCE + jnp.arange(ROWS_AT_ONCE), data.length - 1)
        batch = data.take(rows)
        apart = disagreement(model.next_of_all(scaled(config, batch.observations), batch.actions))
        return jnp.maximum(largest, apart.max())

    chunks = -(-data.length // ROWS_AT_ONCE)
    largest = jax.lax.fori_loop(0, chunks, most, jnp.zeros((), model.changes.mean.dtype))
    return Learned(model, largest)


def init_policy(config: Config, shapes: Shapes, key: PRNGKeyArray) -> tuple[Perceptron, tuple[()]]:
    """An ensemble of one. Layers start as PyTorch's do, the last one at a hundredth of that."""
    network = Perceptron.init(key, (shapes.observation, *config.hidden, shapes.action), 1)
    *weights, last_weight = network.weights
    *biases, last_bias = network.biases
    return Perceptron((*weights, 0.01 * last_weight), (*biases, 0.01 * last_bias)), ()


def cloning_loss(
    config: Config, parameters: tuple[Perceptron, tuple[()]], data: Data, batch: Batch
) -> Float[Array, ""]:
    means = on_own(parameters[0], scaled(config, batch.observations), jnp.tanh)
    return ((means - batch.actions) ** 2).mean()


def cloning_errors(
    config: Config, parameters: tuple[Perceptron, tuple[()]], data: Data, batch: Batch
) -> Float[Array, "members batch"]:
    means = parameters[0].members(scaled(config, batch.observations), jnp.tanh)
    return ((means - batch.actions[None]) ** 2).mean(axis=-1)


def absorb_policy(state: State, network: Perceptron) -> State:
    return state._replace(policy=state.policy._replace(network=network))


DYNAMICS = Fitting(
    name="dynamics",
    settings=(
        "models", "dynamics_hidden", "reward_hidden", "dynamics_learning_rate", "dynamics_epochs",
        "task", "velocity_scale",
    ),
    epochs=lambda config: config.dynamics_epochs,
    members=lambda config: config.models,
    learning_rate=lambda config: config.dynamics_learning_rate,
    init=init_dynamics,
    loss=dynamics_loss,
    errors=dynamics_errors,
    result=learn_dynamics,
    absorb=lambda state, learned: state._replace(learned=learned),
    counted=lambda config: config.models,
).stage()  # fmt: skip

CLONING = Fitting(
    name="cloning",
    settings=("hidden", "cloning_learning_rate", "cloning_epochs", "task", "velocity_scale"),
    epochs=lambda config: config.cloning_epochs,
    members=lambda config: 1,
    learning_rate=lambda config: config.cloning_learning_rate,
    init=init_policy,
    loss=cloning_loss,
    errors=cloning_errors,
    result=lambda config, fit, data: jax.tree.map(lambda leaf: leaf[0], fit.best),
    absorb=absorb_policy,
).stage()
