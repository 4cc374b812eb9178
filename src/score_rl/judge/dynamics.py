r"""A learned model of what follows an action: the ensemble in which the model-based estimate lets policies act.

Each of N networks gives a Gaussian over the outcome (r, s' - s), every column scaled by its mean and deviation in the
data, and the logit of a terminal. It is fitted as MOPO's (`algorithms/model_fitting.py`), to a bootstrap sample of its
own:

    L = Σ_i E[(μ_i - y)²/σ_i² + log σ_i²] + Σ_i E[cross-entropy of the terminal] + 0.01·Σ(max - min) + decay·½‖W‖²
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Data, Metrics, Shapes
from score_rl.algorithms.model_fitting import Fit, Fitting
from score_rl.algorithms.settings import config, setting
from score_rl.nets.dynamics import Bounds, Scaler, gaussian, on_own, truncated_start
from score_rl.nets.perceptron import Perceptron

BOUND_WEIGHT = 0.01  # of the log-variance's bounds in the loss (published code of PETS and MOPO)


@config
class Config:
    models: int = setting(5, "N, networks", minimum=1)
    hidden: tuple[int, ...] = setting((128, 128), "widths of the hidden layers", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate")
    decay: float = setting(5e-5, "weight decay of every layer")
    epochs: int = setting(100, "epochs at most", minimum=1)
    held_out: int = setting(1_000, "rows held out to end the fitting, at most a fifth", minimum=1)
    patience: int = setting(5, "epochs without improvement that end the fitting", minimum=1)
    batch_size: int = setting(256, "transitions per update", minimum=1)
    normalise_states: bool = setting(True, "standardise observations over the data set")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "outcomes are scaled here")


class Model(NamedTuple):
    """The result: what follows (s, a) in treated units."""

    networks: Perceptron  # every array with a leading axis of length N
    bounds: Bounds
    inputs: Scaler
    outcomes: Scaler


class Prediction(NamedTuple):
    """Of every network, in treated units."""

    mean: Float[Array, "members batch outcome"]  # (r, s' - s)
    deviation: Float[Array, "members batch outcome"]
    terminal: Float[Array, "members batch"]  # the probability of a terminal


class State(NamedTuple):
    model: Model


def predict(
    model: Model, observations: Float[Array, "members batch observation"], actions: Float[Array, "members batch action"]
) -> Prediction:
    """What each network expects of inputs of its own."""
    inputs = model.inputs(jnp.concatenate([observations, actions], axis=-1))
    outputs = on_own(model.networks, inputs, jax.nn.swish)
    mean, log_variance = gaussian(outputs[..., :-1], model.bounds)
    scale = model.outcomes.scale[None, None]
    return Prediction(
        mean=model.outcomes.back(mean),
        deviation=jnp.exp(0.5 * log_variance) * scale,
        terminal=jax.nn.sigmoid(outputs[..., -1]),
    )


def disagreement(
    model: Model, observations: Float[Array, "batch observation"], actions: Float[Array, "batch action"]
) -> Float[Array, " batch"]:
    """How far the networks' means lie apart: the deviation over networks, the root mean square over outcomes."""
    members = model.networks.weights[0].shape[0]
    inputs = model.inputs(jnp.concatenate([observations, actions], axis=-1))
    outputs = on_own(model.networks, jnp.broadcast_to(inputs[None], (members, *inputs.shape)), jax.nn.swish)
    mean, _ = gaussian(outputs[..., :-1], model.bounds)
    return jnp.sqrt((mean.var(axis=0)).mean(axis=-1))


def _scalers(data: Data) -> tuple[Scaler, Scaler]:
    inputs, outcomes = data.statistics
    return Scaler.standard(inputs.mean, inputs.std), Scaler.standard(outcomes.mean, outcomes.std)


def _init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> tuple[Perceptron, Bounds]:
    outcomes = 1 + shapes.observation
    sizes = (shapes.observation + shapes.action, *config.hidden, 2 * outcomes + 1)
    return truncated_start(key, sizes, config.models), Bounds.init(outcomes)


def _outcomes(batch: Batch) -> Float[Array, "*batch outcome"]:
    return jnp.concatenate([batch.rewards[..., None], batch.next_observations - batch.observations], axis=-1)


def _apart(
    parameters: tuple[Perceptron, Bounds], data: Data, batch: Batch
) -> tuple[Float[Array, "members batch outcome"], Float[Array, "members batch outcome"], Float[Array, "members batch"]]:
    """Error of the scaled mean, log-variance, and the cross-entropy of the terminal; a batch for each network."""
    inputs, outcomes = _scalers(data)
    networks, bounds = parameters
    given = inputs(jnp.concatenate([batch.observations, batch.actions], axis=-1))
    outputs = on_own(networks, given, jax.nn.swish)
    mean, log_variance = gaussian(outputs[..., :-1], bounds)
    logit = outputs[..., -1]
    crossed = jax.nn.softplus(logit) - batch.terminals * logit
    return mean - outcomes(_outcomes(batch)), log_variance, crossed


def _loss(config: Config, parameters: tuple[Perceptron, Bounds], data: Data, batch: Batch) -> Float[Array, ""]:
    error, log_variance, crossed = _apart(parameters, data, batch)
    losses = (error**2 * jnp.exp(-log_variance) + log_variance).mean(axis=(1, 2)) + crossed.mean(axis=1)
    networks, bounds = parameters
    held = BOUND_WEIGHT * (bounds.largest.sum() - bounds.least.sum())
    return losses.sum() + held + config.decay * 0.5 * sum((weight**2).sum() for weight in networks.weights)


def _errors(
    config: Config, parameters: tuple[Perceptron, Bounds], data: Data, batch: Batch
) -> Float[Array, "members batch"]:
    each = jax.tree.map(lambda column: jnp.broadcast_to(column[None], (config.models, *column.shape)), batch)
    error, _, crossed = _apart(parameters, data, each)
    return (error**2).mean(axis=-1) + crossed


def _learned(config: Config, fit: Fit, data: Data) -> Model:
    return Model(fit.best, fit.shared, *_scalers(data))


FITTING = Fitting(
    name="judge-dynamics",
    settings=("models", "hidden", "learning_rate", "decay", "epochs"),
    epochs=lambda config: config.epochs,
    members=lambda config: config.models,
    learning_rate=lambda config: config.learning_rate,
    init=_init,
    loss=_loss,
    errors=_errors,
    result=_learned,
    absorb=lambda state, model: State(model),
    counted=lambda config: config.models,
    bootstrap=True,
)


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    networks, bounds = _init(config, shapes, key)
    inputs = shapes.observation + shapes.action
    return State(Model(networks, bounds, Scaler.identity(inputs), Scaler.identity(1 + shapes.observation)))


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """All of it is the stage."""
    return state, {}


def act(
    config: Config, policy: Model, observations: Float[Array, "batch observation"], key: PRNGKeyArray | None = None
) -> Float[Array, "batch action"]:
    raise NotImplementedError("a model of the dynamics does not act")


DYNAMICS = Algorithm(
    name="judge-dynamics",
    title="dynamics ensemble",
    summary="what follows an action, by an ensemble of networks",
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.model,
    act=act,
    stages=(FITTING.stage(),),
)
