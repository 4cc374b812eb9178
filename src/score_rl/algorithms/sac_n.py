r"""SAC-N: soft actor-critic with the least of N critics (An et al., 2021).

    y      = r + γ·(1 - terminal)·[min_j Q'_j(s', a') - α·log π(a'|s')],    a' ~ π(·|s')
    L(Q_i) = E[(Q_i(s, a) - y)²]
    L(π)   = E[α·log π(a|s) - min_j Q_j(s, a)],    a ~ π(·|s)
    L(log α) = -log α·E[log π(a|s) + H],    H = -(number of action dimensions)

One target serves all critics. Where the critics disagree, their minimum lies further below their mean the more critics
there are: pessimism grows with N. `soft_actor.py` has L(π) and L(log α), which other methods share: `actor_loss` and
`tune_temperature`. All gradients are taken before anything moves (published code).
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.algorithms.soft_actor import SoftActor, act, improve, init_soft_actor, policy, tune_temperature
from score_rl.nets.actor_critic import least_value, values
from score_rl.nets.initialisation import rlkit_start
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    discount: float = setting(0.99, "γ (published code)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (published code)", above=0, maximum=1, group="paper")
    actor_learning_rate: float = setting(3e-4, "Adam's for actor and temperature (published code)")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (published code)")
    critics: int = setting(10, "N, number of critics (published code; presets: 20 to 500)", minimum=2, group="paper")
    hidden: tuple[int, ...] = setting((256, 256, 256), "widths of the hidden layers (published code)", minimum=1)
    batch_size: int = setting(256, "transitions per update (published code)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: off)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    soft: SoftActor
    critics: Perceptron  # every array with a leading axis of length N
    target_critics: Perceptron
    critic_optimiser: OptimiserState
    step: Int[Array, ""]


class Draws(NamedTuple):
    """The random numbers of one update, standard normal."""

    here: Float[Array, "batch action"]  # for π(·|s) in the actor's loss
    there: Float[Array, "batch action"]  # for a' in the target


def draw(config: Config, batch: Batch, key: PRNGKeyArray) -> Draws:
    shape, dtype = batch.actions.shape, batch.actions.dtype
    return Draws(*(jax.random.normal(k, shape, dtype) for k in jax.random.split(key)))


def target(config: Config, state: State, batch: Batch, draws: Draws) -> Float[Array, " batch"]:
    """y."""
    next_actions, log_prob = policy(state.soft.network, batch.next_observations).sample_and_log_prob(draws.there)
    next_values = values(state.target_critics, batch.next_observations, next_actions).min(axis=0)
    soft_values = next_values - state.soft.temperature * log_prob
    return batch.rewards + config.discount * (1 - batch.terminals) * soft_values


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, draws: Draws
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_i) over the critics."""
    y = jax.lax.stop_gradient(target(config, state, batch, draws))
    q = values(critics, batch.observations, batch.actions)
    return squared_error(q, y)


def squared_error(q: Float[Array, "members batch"], y: Float[Array, " batch"]) -> tuple[Float[Array, ""], Metrics]:
    losses = ((q - y[None]) ** 2).mean(axis=1)
    metrics = {
        "critic_loss": losses.mean(),
        "q": q.mean(),
        "q_target": y.mean(),
        "uncertainty": jax.lax.stop_gradient(q).std(axis=0).mean(),
    }
    return losses.sum(), metrics


def update(
    config: Config,
    state: State,
    batch: Batch,
    key: PRNGKeyArray,
    turn: int,
    critic_loss: Callable[..., Any] = critic_loss,
) -> tuple[State, Metrics]:
    """One step of the actor, the temperature, every critic and the targets."""
    draws = draw(config, batch, key)
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, draws)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    tuned = tune_temperature(state.soft, batch.observations, draws.here, config.actor_learning_rate)
    soft, actor_metrics = improve(
        tuned,
        state.soft.temperature,
        lambda actions: least_value(state.critics, batch.observations, actions),
        batch.observations,
        draws.here,
        config.actor_learning_rate,
    )
    state = State(
        soft=soft,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        critic_optimiser=optimiser,
        step=state.step + 1,
    )
    return state, metrics | actor_metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key = jax.random.split(key)
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics = rlkit_start(critic_key, sizes, members=config.critics, bound="fan_in")
    return State(
        soft=init_soft_actor(actor_key, shapes, config.hidden),
        critics=critics,
        target_critics=critics,
        critic_optimiser=adam_init(critics),
        step=jnp.zeros((), jnp.int32),
    )


def uncertainty(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """The standard deviation of the critics, in units of the reward."""
    return values(state.critics, observations, actions).std(axis=0)


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="sac-n",
    title="SAC-N",
    summary="SAC whose target and actor take the least of many critics",
    paper=Paper("An et al.", 2021, "2110.01548"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.soft.network,
    act=act,
    value=value,
    uncertainty=uncertainty,
    characteristics=("value-penalised", "uncertainty-aware"),
    bfloat16_on=("avx512_bf16",),
    headline=("uncertainty", "q"),
)
