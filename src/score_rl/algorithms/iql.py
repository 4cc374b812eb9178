r"""IQL: implicit Q-learning (Kostrikov, Nair and Levine, 2021).

No action outside the data is ever evaluated. V(s) is an upper expectile of Q over the data's own actions, fitted by an
asymmetric square with expectile τ_e. Q is regressed on V. The policy clones the data's actions, weighted by advantage:

    L(V) = E[|τ_e - 1(δ < 0)|·δ²],    δ = min_i Q'_i(s, a) - V(s)
    L(π) = -E[min(exp(β·A), 100)·log π(a|s)],    A = min_i Q'_i(s, a) - V(s)
    L(Q_i) = E[(Q_i(s, a) - r - γ·(1 - terminal)·V(s'))²]

In each update V moves first. π and Q then use the new V, and the target critics Q' follow Q last. π is a Gaussian. Its
mean passes through tanh. Its log-standard deviations are parameters, the same in every state. The actor's learning rate
falls to 0 along half a cosine over `schedule_steps` updates.
"""

import math
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import Schedule, config, setting
from score_rl.nets.actor_critic import deterministic, values
from score_rl.nets.initialisation import orthogonal_start
from score_rl.nets.layer_norm import Critics, make_critics
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron

LOG_STD_RANGE = (-5.0, 2.0)  # published code


@config
class Config:
    expectile: float = setting(0.7, "τ_e, the expectile (paper, locomotion)", above=0, below=1, group="paper")
    temperature: float = setting(3.0, "β, factor on the advantage (paper, locomotion)", group="paper")
    constant_std: bool = setting(False, "the actor's deviation stays 1 (published code: learned; usual on OGBench)")
    largest_weight: float = setting(100.0, "bound of the advantage's weight (published code)")
    discount: float = setting(0.99, "γ (paper)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (paper)", above=0, maximum=1, group="paper")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (paper)")
    value_learning_rate: float = setting(3e-4, "Adam's learning rate for the value (paper)")
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor at the start (paper)")
    schedule_steps: int = setting(
        1_000_000,
        "updates until the actor's rate is 0; 0 keeps it (published code: all)",
        schedule=Schedule("the actor's learning rate will not have fallen to 0", "the actor stands still after them"),
    )
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of all networks (paper)", minimum=1)
    critic_norm: bool = setting(
        False, "layer normalisation in critics and value (published code: no; usual on OGBench)"
    )
    batch_size: int = setting(256, "transitions per update (paper)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: no)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting(
        "return-range", "divide rewards by (best - worst return)/1000 (published code, locomotion)"
    )


class Actor(NamedTuple):
    """A Gaussian around tanh(net(s))."""

    net: Perceptron
    log_std: Float[Array, " action"]

    def bounded_log_std(self) -> Float[Array, " action"]:
        return jnp.clip(self.log_std, *LOG_STD_RANGE)


class State(NamedTuple):
    actor: Actor
    critics: Critics  # every array with a leading axis of length 2
    target_critics: Critics
    value: Critics
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    value_optimiser: OptimiserState
    step: Int[Array, ""]


def log_deviation(config: Config, actor: Actor) -> Float[Array, " action"]:
    return jnp.zeros_like(actor.log_std) if config.constant_std else actor.bounded_log_std()


def value_loss(
    value: Critics, config: Config, batch: Batch, q: Float[Array, " batch"]
) -> tuple[Float[Array, ""], Metrics]:
    v = value(batch.observations)[:, 0]
    ahead = q - v
    weight = jnp.where(ahead > 0, config.expectile, 1 - config.expectile)
    loss = (weight * ahead**2).mean()
    return loss, {"value_loss": loss, "v": v.mean()}


def actor_loss(
    actor: Actor, config: Config, batch: Batch, advantages: Float[Array, " batch"]
) -> tuple[Float[Array, ""], Metrics]:
    weights = jnp.minimum(jnp.exp(config.temperature * advantages), config.largest_weight)
    log_std = log_deviation(config, actor)[None]
    distances = (batch.actions - deterministic(actor.net, batch.observations)) * jnp.exp(-log_std)
    log_prob = (-0.5 * distances**2 - log_std - 0.5 * math.log(2 * math.pi)).sum(axis=1)
    loss = -(weights * log_prob).mean()
    return loss, {"actor_loss": loss, "advantage": advantages.mean(), "advantage_weight": weights.mean()}


def critic_loss(
    critics: Critics, config: Config, batch: Batch, next_values: Float[Array, " batch"]
) -> tuple[Float[Array, ""], Metrics]:
    targets = batch.rewards + config.discount * (1 - batch.terminals) * next_values
    q = values(critics, batch.observations, batch.actions)
    losses = ((q - targets[None]) ** 2).mean(axis=1)
    return losses.sum(), {"critic_loss": losses.mean(), "q": q.mean(), "q_target": targets.mean()}


def actor_rate(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """The actor's learning rate in an update counted from 0."""
    if config.schedule_steps == 0:
        return jnp.asarray(config.actor_learning_rate)
    done = jnp.minimum(step / jnp.asarray(float(config.schedule_steps)), 1)
    return config.actor_learning_rate * 0.5 * (1 + jnp.cos(jnp.pi * done))


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """The value, then actor and critics by the new value, then the targets."""
    q = values(state.target_critics, batch.observations, batch.actions).min(axis=0)
    gradients, metrics = jax.grad(value_loss, has_aux=True)(state.value, config, batch, q)
    value, value_optimiser = adam_step(state.value, gradients, state.value_optimiser, config.value_learning_rate)
    advantages = q - value(batch.observations)[:, 0]
    gradients, more = jax.grad(actor_loss, has_aux=True)(state.actor, config, batch, advantages)
    actor, actor_optimiser = adam_step(state.actor, gradients, state.actor_optimiser, actor_rate(config, state.step))
    metrics |= more
    next_values = value(batch.next_observations)[:, 0]
    gradients, more = jax.grad(critic_loss, has_aux=True)(state.critics, config, batch, next_values)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = State(
        actor=actor,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        value=value,
        actor_optimiser=actor_optimiser,
        critic_optimiser=optimiser,
        value_optimiser=value_optimiser,
        step=state.step + 1,
    )
    return state, metrics | more


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    """Orthogonal weights of gain √2 in every layer, as in the published code."""
    critic_key, value_key, actor_key = jax.random.split(key, 3)
    gain = math.sqrt(2)
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    start = partial(orthogonal_start, last_gain=gain)
    critics = make_critics(critic_key, sizes, 2, normalised=config.critic_norm, start=start)
    sizes = (shapes.observation, *config.hidden, 1)
    value = make_critics(value_key, sizes, normalised=config.critic_norm, start=start)
    net = orthogonal_start(actor_key, (shapes.observation, *config.hidden, shapes.action), last_gain=gain)
    actor = Actor(net, jnp.zeros(shapes.action))
    return State(
        actor=actor,
        critics=critics,
        target_critics=critics,
        value=value,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        value_optimiser=adam_init(value),
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config,
    actor: Actor,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The mean, as in the published evaluation. With a key, a sample clipped to ±1."""
    mean = deterministic(actor.net, observations)
    if key is None:
        return mean
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    return jnp.clip(mean + jnp.exp(log_deviation(config, actor))[None] * noise, -1, 1)


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a)."""
    return values(state.critics, observations, actions).min(axis=0)


def state_value(
    config: Config, state: State, observations: Float[Array, "batch observation"]
) -> Float[Array, " batch"]:
    """V(s)."""
    return state.value(observations)[:, 0]


ALGORITHM = Algorithm(
    name="iql",
    title="IQL",
    summary="the value as an upper expectile over the data's actions, the policy by advantage-weighted cloning",
    paper=Paper("Kostrikov, Nair and Levine", 2021, "2110.06169"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actor,
    act=act,
    value=value,
    state_value=state_value,
    characteristics=("policy-constrained",),
    bfloat16_on=("avx512_bf16",),
    headline=("v", "advantage_weight"),
)
