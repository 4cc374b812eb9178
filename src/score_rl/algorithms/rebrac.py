r"""ReBRAC: behaviour-regularised actor-critic, revisited (Tarasov et al., 2023).

TD3-BC with cloning in the target too, deeper networks and larger batches. In the critics each hidden layer's ReLU is
followed by layer normalisation. The target's action pays for its distance to the action â' that the data took next:

    y = r + γ·(1 - terminal)·(min_i Q'_i(s', a') - β₂·‖a' - â'‖²),    a' = clip(π'(s') + clip(ε, ±c), ±1),  ε ~ N(0, σ²)
    L(Q_i) = E[(Q_i(s, a) - y)²]
    L(π) = E[β₁·‖π(s) - a‖² - q / E|q|],    q = min_i Q_i(s, π(s))

Distances are summed over the action's dimensions. As in the published code, the actor first moves in update 0, and the
target actor follows the actor as it was before the move.

The critics do not see a row whose next action is not recorded: the last row of a trajectory that does not end in a
terminal. Where a file stores no next observations, the authors do train on it. Both drop the timeout's row there, but
the authors still use its action, as the next action of the row before.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.settings import config, setting
from score_rl.nets.actor_critic import deterministic, smoothed
from score_rl.nets.initialisation import rlkit_start
from score_rl.nets.layer_norm import NormalisedPerceptron
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron


@config
class Config:
    actor_bc_weight: float = setting(1.0, "β₁, cloning in the actor's loss (published code; presets)", group="paper")
    critic_bc_weight: float = setting(1.0, "β₂, cloning in the target (published code; presets)", group="paper")
    discount: float = setting(0.99, "γ (paper)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (paper)", above=0, maximum=1, group="paper")
    target_noise: float = setting(0.2, "σ, deviation of the noise on a' (published code)", group="paper")
    target_noise_clip: float = setting(0.5, "c, bound of that noise (published code)", group="paper")
    critic_learning_rate: float = setting(1e-3, "Adam's learning rate for the critics (paper, locomotion)")
    actor_learning_rate: float = setting(1e-3, "Adam's learning rate for the actor (paper, locomotion)")
    hidden: tuple[int, ...] = setting(
        (256, 256, 256), "widths of the hidden layers of actor and critics (paper)", minimum=1
    )
    batch_size: int = setting(1024, "transitions per update (paper, locomotion)", minimum=1)
    actor_delay: int = setting(2, "d, updates per move of actor and targets (published code)", minimum=1, group="paper")
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: no)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    actor: Perceptron
    critics: NormalisedPerceptron  # every array with a leading axis of length 2
    target_actor: Perceptron
    target_critics: NormalisedPerceptron
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    step: Int[Array, ""]


def values(
    critics: NormalisedPerceptron,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, "members batch"]:
    """Q_i(s, a) of both critics."""
    return critics.members(jnp.concatenate([observations, actions], axis=-1))[..., 0]


def critic_loss(
    critics: NormalisedPerceptron, config: Config, state: State, batch: Batch, noise: Float[Array, "batch action"]
) -> tuple[Float[Array, ""], Metrics]:
    """Sum of L(Q_i) over both critics. `noise` is standard normal."""
    assert batch.next_actions is not None
    assert batch.followed is not None
    next_actions = deterministic(state.target_actor, batch.next_observations)
    next_actions = smoothed(next_actions, noise, config.target_noise, config.target_noise_clip)
    distances = ((next_actions - batch.next_actions) ** 2).sum(axis=1)
    next_values = values(state.target_critics, batch.next_observations, next_actions).min(axis=0)
    penalised = next_values - config.critic_bc_weight * distances
    targets = batch.rewards + config.discount * jnp.where(batch.terminals > 0, 0, penalised)
    seen = jnp.maximum(batch.terminals, batch.followed)
    q = values(critics, batch.observations, batch.actions)
    losses = (seen[None] * (q - targets[None]) ** 2).sum(axis=1) / jnp.maximum(seen.sum(), 1)
    penalty = (seen * distances).sum() / jnp.maximum(seen.sum(), 1)
    metrics = {"critic_loss": losses.mean(), "q": q.mean(), "q_target": targets.mean(), "next_bc_error": penalty}
    return losses.sum(), metrics


def actor_loss(actor: Perceptron, config: Config, state: State, batch: Batch) -> tuple[Float[Array, ""], Metrics]:
    actions = deterministic(actor, batch.observations)
    q = values(state.critics, batch.observations, actions).min(axis=0)
    cloning = ((actions - batch.actions) ** 2).sum(axis=1).mean()
    loss = config.actor_bc_weight * cloning - q.mean() / jax.lax.stop_gradient(jnp.abs(q).mean())
    return loss, {"actor_loss": loss, "bc_error": cloning, "q_policy": q.mean()}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """One step of both critics and, on the first of d turns, of the actor and the targets."""
    noise = jax.random.normal(key, batch.actions.shape, batch.actions.dtype)
    gradients, metrics = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, noise)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    if turn == 0:
        gradients, actor_metrics = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch)
        actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
        state = state._replace(
            actor=actor,
            actor_optimiser=optimiser,
            target_actor=move_towards(state.target_actor, state.actor, config.tau),
            target_critics=move_towards(state.target_critics, state.critics, config.tau),
        )
        metrics |= actor_metrics
    return state._replace(step=state.step + 1), metrics


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    """Hidden weights in ±1/√fan_in, hidden biases 0.1, small last layers, as in the published code."""
    critic_key, actor_key = jax.random.split(key)

    def start(key: PRNGKeyArray, sizes: tuple[int, ...], members: int) -> Perceptron:
        return rlkit_start(key, sizes, members, last=3e-3, bound="fan_in")

    sizes = (shapes.observation + shapes.action, *config.hidden, 1)
    critics = NormalisedPerceptron.init(critic_key, sizes, 2, start)
    sizes = (shapes.observation, *config.hidden, shapes.action)
    actor = rlkit_start(actor_key, sizes, last=1e-3, bound="fan_in")
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
    """min_i Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="rebrac",
    title="ReBRAC",
    summary="TD3-BC with a constraint on actor and critics alike, and layer normalisation",
    paper=Paper("Tarasov et al.", 2023, "2305.09836"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: state.actor,
    act=act,
    value=value,
    turns=lambda config: config.actor_delay,
    characteristics=("policy-constrained", "value-penalised"),
    headline=("q", "bc_error"),
)
