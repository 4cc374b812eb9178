r"""TD3-BC: TD3 with behaviour cloning in the actor's loss (Fujimoto and Gu, 2021).

Two critics share the smaller of their targets, as in TD3:

    y = r + γ·(1 - terminal)·min_i Q'_i(s', a'),    a' = clip(π'(s') + clip(ε, ±c), ±1),  ε ~ N(0, σ²)
    L(Q_i) = E[(Q_i(s, a) - y)²]

Every d-th update moves the actor, by the first critic alone, and then all target networks:

    L(π) = -(α / E|Q_1|)·E[Q_1(s, π(s))] + E[(π(s) - a)²]

The normaliser α / E|Q_1| carries no gradient. The squared error is averaged over batch and action dimensions. The
published code counts updates from 1, so the actor first moves in the d-th.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.nets.actor_critic import deterministic, member, smoothed, values
from score_rl.nets.layer_norm import Critics, make_critics
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    alpha: float = setting(2.5, "α, weight of the normalised value in the actor's loss (paper)", group="paper")
    discount: float = setting(0.99, "γ (paper)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (paper)", above=0, maximum=1, group="paper")
    target_noise: float = setting(0.2, "σ, deviation of the noise on a' (paper)", group="paper")
    target_noise_clip: float = setting(0.5, "c, bound of that noise (paper)", group="paper")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (paper)")
    actor_learning_rate: float = setting(3e-4, "Adam's learning rate for the actor (paper)")
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics (paper)", minimum=1)
    critic_norm: bool = setting(False, "layer normalisation in the critics (published code: no; usual on OGBench)")
    batch_size: int = setting(256, "transitions per update (paper)", minimum=1)
    actor_delay: int = setting(2, "d, updates per move of actor and targets (paper)", minimum=1, group="paper")
    normalise_states: bool = setting(True, "standardise observations over the data set (paper)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    actor: Perceptron
    critics: Critics  # every array with a leading axis of length 2
    target_actor: Perceptron
    target_critics: Critics
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    step: Int[Array, ""]


def critic_loss(
    critics: Critics, config: Config, state: State, batch: Batch, noise: Float[Array, "batch action"]
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_i) over both critics. `noise` is standard normal."""
    next_actions = deterministic(state.target_actor, batch.next_observations)
    next_actions = smoothed(next_actions, noise, config.target_noise, config.target_noise_clip)
    next_values = values(state.target_critics, batch.next_observations, next_actions).min(axis=0)
    targets = batch.rewards + config.discount * (1 - batch.terminals) * next_values
    q = values(critics, batch.observations, batch.actions)
    losses = ((q - targets[None]) ** 2).mean(axis=1)
    return losses.sum(), {"critic_loss": losses.mean(), "q": q.mean(), "q_target": targets.mean()}


def actor_loss(actor: Perceptron, config: Config, state: State, batch: Batch) -> tuple[Float[Array, ""], Metrics]:
    actions = deterministic(actor, batch.observations)
    q = member(state.critics, 0)(jnp.concatenate([batch.observations, actions], axis=-1))
    scale = config.alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
    cloning = ((actions - batch.actions) ** 2).mean()
    loss = -scale * q.mean() + cloning
    return loss, {"actor_loss": loss, "bc_error": cloning, "q_policy": q.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of both critics and, on the last of d turns, of the actor and the targets."""
    noise = jax.random.normal(key, batch.actions.shape, batch.actions.dtype)
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, noise)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    if turn == config.actor_delay - 1:
        gradients, actor_metrics = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch)
        actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
        state = state._replace(
            actor=actor,
            actor_optimiser=optimiser,
            target_actor=move_towards(state.target_actor, actor, config.tau),
            target_critics=move_towards(state.target_critics, state.critics, config.tau),
        )
        metrics |= actor_metrics
    return state._replace(step=state.step + 1), metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key = jax.random.split(key)
    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics = make_critics(critic_key, sizes, 2, normalised=config.critic_norm)
    actor = Perceptron.init(actor_key, (shapes.observation, *config.hidden, shapes.action))
    return State(
        actor=actor,
        critics=critics,
        target_actor=actor,
        target_critics=critics,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """π(s). It is deterministic, so `key` is not used."""
    return deterministic(actor, observations)


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """Q_1(s, a), by which the actor moves."""
    return values(state.critics, observations, actions)[0]


ALGORITHM = Algorithm(
    name="td3-bc",
    title="TD3-BC",
    summary="TD3 with behaviour cloning of constant weight",
    paper=Paper("Fujimoto and Gu", 2021, "2106.06860"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actor,
    act=act,
    value=value,
    turns=lambda config: config.actor_delay,
    characteristics=("policy-constrained",),
    bfloat16_on=("avx512_bf16",),
    headline=("q", "bc_error"),
)
