r"""BEAR: bootstrapping error accumulation reduction (Kumar et al., 2019).

A stochastic policy may leave the data's density, but not its support. The MMD between its actions and those of a VAE of
the data (`behaviour.py`) is held below ε by a multiplier α = exp(log α), which moves by dual ascent.

    y = r + γ·(1 - terminal)·max_j [λ·min_i Q'_i(s', a'_j) + (1 - λ)·max_i Q'_i(s', a'_j)],    a'_j ~ π(s')
    L(Q_i) = E[(Q_i(s, a) - y)²]
    L(π) = E[-min_i Q_i(s, a_1) + α·(MMD(s) - ε)],    a_1, ..., a_n ~ π(s)
    L(log α) = -E[α·(MMD(s) - ε)],    log α clipped to [-5, 10]
    π(s) = argmax_j Q_1(s, a_j),    a_j ~ π(s)

MMD compares n actions of each, before their tanh. During the warm-up L(π) has no value in it, so the policy only moves
onto the data's support. The VAE moves first. All other gradients are taken before anything else moves.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.behaviour import acting_noise, action_and_mmd, ascend, distribution, fit
from score_rl.algorithms.settings import Schedule, config, setting
from score_rl.nets.actor_critic import best_of, member, on_many, soft_clipped, values, values_of_many
from score_rl.nets.initialisation import rlkit_start
from score_rl.nets.noise import standard_normal
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.vae import ActionVAE


@config
class Config:
    mmd_threshold: float = setting(0.05, "ε (published code)", group="paper")
    mmd_sigma: float = setting(20.0, "σ of the kernel (published readme for D4RL)", above=0, group="paper")
    mmd_kernel: Literal["laplacian", "gaussian"] = setting(
        "laplacian", "kernel (published readme for hopper, walker2d; preset for halfcheetah)", group="paper"
    )
    mmd_samples: int = setting(
        4, "n, actions of policy and VAE that MMD compares (published code)", minimum=1, group="paper"
    )
    warmup_steps: int = setting(
        40_000,
        "updates before the value enters the actor's loss (published code)",
        schedule=Schedule("the policy stays near the data and never learns from the values"),
        group="paper",
    )
    soft_clipping: float = setting(0.75, "λ, weight of the smaller critic (published code)", maximum=1, group="paper")
    kl_weight: float = setting(0.5, "weight of the VAE's KL term (published code)")
    discount: float = setting(0.99, "γ (published code)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (published code)", above=0, maximum=1, group="paper")
    critic_learning_rate: float = setting(3e-4, "Adam's learning rate for the critics (published code)")
    actor_learning_rate: float = setting(1e-4, "Adam's learning rate for the actor (published code)")
    vae_learning_rate: float = setting(3e-4, "Adam's learning rate for the VAE (published code)")
    alpha_learning_rate: float = setting(1e-3, "Adam's learning rate for log α (published code)")
    target_samples: int = setting(10, "actions in each next state (published code)", minimum=1, group="paper")
    acting_samples: int = setting(100, "candidates when acting (published code)", minimum=1, group="paper")
    hidden: tuple[int, ...] = setting(
        (256, 256), "widths of the hidden layers of actor and critics (published code)", minimum=1
    )
    vae_hidden: tuple[int, ...] = setting((750, 750), "widths of the VAE's hidden layers (published code)", minimum=1)
    latent_per_action: int = setting(2, "latent dimensions per action dimension (published code)", minimum=1)
    batch_size: int = setting(256, "transitions per update (published code)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: no)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    actor: Perceptron
    critics: Perceptron  # every array with a leading axis of length 2
    target_critics: Perceptron
    vae: ActionVAE
    log_alpha: Float[Array, ""]
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    vae_optimiser: OptimiserState
    alpha_optimiser: OptimiserState
    step: Int[Array, ""]


class Policy(NamedTuple):
    """What acting needs."""

    actor: Perceptron
    critics: Perceptron


class Noise(NamedTuple):
    """All standard normal numbers of an update."""

    vae: Float[Array, "batch latent"]
    next_actions: Float[Array, "samples batch action"]
    actions: Float[Array, "n batch action"]
    proposals: Float[Array, "n batch latent"]


def draw_noise(config: Config, state: State, batch: Batch, key: PRNGKeyArray) -> Noise:
    (size, action), latent = batch.actions.shape, state.vae.latent
    shapes = (
        (size, latent),
        (config.target_samples, size, action),
        (config.mmd_samples, size, action),
        (config.mmd_samples, size, latent),
    )
    return Noise(*standard_normal(key, shapes, batch.actions.dtype))


def clone_behaviour(config: Config, state: State, batch: Batch, noise: Noise) -> tuple[State, Metrics]:
    """One step of the VAE."""
    vae, optimiser, metrics = fit(
        state.vae,
        state.vae_optimiser,
        batch.observations,
        batch.actions,
        noise.vae,
        config.kl_weight,
        config.vae_learning_rate,
    )
    return state._replace(vae=vae, vae_optimiser=optimiser), metrics


def targets_from(
    config: Config, batch: Batch, next_values: Float[Array, "members samples batch"]
) -> Float[Array, " batch"]:
    best = soft_clipped(next_values, config.soft_clipping).max(axis=0)
    return batch.rewards + config.discount * (1 - batch.terminals) * best


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    """The sum of both critics' errors."""
    next_actions = distribution(state.actor, batch.next_observations).sample(noise.next_actions)
    targets = targets_from(config, batch, values_of_many(state.target_critics, batch.next_observations, next_actions))
    q = values(critics, batch.observations, batch.actions)
    losses = ((q - targets[None]) ** 2).mean(axis=1)
    return losses.sum(), {"critic_loss": losses.mean(), "q": q.mean(), "q_target": targets.mean()}


def actions_and_mmd(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, " batch"]]:
    """a_1, and MMD(s) of all n actions before their tanh."""
    return action_and_mmd(
        state.vae, actor, batch.observations, noise.actions, noise.proposals, config.mmd_kernel, config.mmd_sigma
    )


def lagrangian(
    config: Config, state: State, q: Float[Array, " batch"], distance: Float[Array, " batch"]
) -> tuple[Float[Array, ""], Metrics]:
    """L(π). Its value is 0 during the warm-up."""
    alpha = jnp.exp(state.log_alpha)
    value = jnp.where(state.step >= config.warmup_steps, q.mean(), 0)
    loss = -value + alpha * (distance - config.mmd_threshold).mean()
    return loss, {"actor_loss": loss, "q_policy": q.mean(), "mmd": distance.mean(), "alpha": alpha}


def actor_loss(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: Noise
) -> tuple[Float[Array, ""], Metrics]:
    actions, distance = actions_and_mmd(actor, config, state, batch, noise)
    q = values(state.critics, batch.observations, actions).min(axis=0)
    return lagrangian(config, state, q, distance)


def move(
    config: Config, state: State, critic_gradients: Perceptron, actor_gradients: Perceptron, mmd: Float[Array, ""]
) -> State:
    """One step of critics, actor, multiplier and targets. `mmd` is the batch's mean."""
    critics, critic_optimiser = adam_step(
        state.critics, critic_gradients, state.critic_optimiser, config.critic_learning_rate
    )
    actor, actor_optimiser = adam_step(state.actor, actor_gradients, state.actor_optimiser, config.actor_learning_rate)
    log_alpha, alpha_optimiser = ascend(
        state.log_alpha, state.alpha_optimiser, mmd, config.mmd_threshold, config.alpha_learning_rate
    )
    return state._replace(
        actor=actor,
        critics=critics,
        target_critics=move_towards(state.target_critics, critics, config.tau),
        log_alpha=log_alpha,
        actor_optimiser=actor_optimiser,
        critic_optimiser=critic_optimiser,
        alpha_optimiser=alpha_optimiser,
        step=state.step + 1,
    )


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """The VAE, then everything else at once."""
    noise = draw_noise(config, state, batch, key)
    state, metrics = clone_behaviour(config, state, batch, noise)
    critic_gradients, more = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, noise)
    metrics |= more
    actor_gradients, more = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch, noise)
    return move(config, state, critic_gradients, actor_gradients, more["mmd"]), metrics | more


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    """Actor and critics as rlkit draws them, on which the published code is built."""
    critic_key, actor_key, vae_key = jax.random.split(key, 3)
    critics = rlkit_start(critic_key, (shapes.observation + shapes.action, *config.hidden, 1), members=2, last=3e-3)
    actor = rlkit_start(actor_key, (shapes.observation, *config.hidden, 2 * shapes.action), last=1e-3)
    latent = config.latent_per_action * shapes.action
    vae = ActionVAE.init(vae_key, shapes.observation, shapes.action, latent, config.vae_hidden)
    log_alpha = jnp.zeros(())
    return State(
        actor=actor,
        critics=critics,
        target_critics=critics,
        vae=vae,
        log_alpha=log_alpha,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        vae_optimiser=adam_init(vae),
        alpha_optimiser=adam_init(log_alpha),
        step=jnp.zeros((), jnp.int32),
    )


def sampled_actions(
    config: Config, actor: Perceptron, observations: Float[Array, "batch observation"], key: PRNGKeyArray | None
) -> Float[Array, "samples batch action"]:
    """Candidates for an action. Without a key every state gets the same noise, so that π is a function of s."""
    policy = distribution(actor, observations)
    rows, width = policy.mean.shape
    return policy.sample(acting_noise(key, config.acting_samples, rows, width, observations.dtype))


def act(
    config: Config,
    policy: Policy,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The best of many samples of the policy, by the first critic."""
    actions = sampled_actions(config, policy.actor, observations, key)
    return best_of(actions, on_many(member(policy.critics, 0), observations, actions)[..., 0])


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """min_i Q_i(s, a), by which the actor moves."""
    return values(state.critics, observations, actions).min(axis=0)


ALGORITHM = Algorithm(
    name="bear",
    title="BEAR",
    summary="a policy held to the data's support by its MMD to a VAE",
    paper=Paper("Kumar et al.", 2019, "1906.00949"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: Policy(state.actor, state.critics),
    act=act,
    value=value,
    characteristics=("policy-constrained",),
    headline=("mmd", "alpha"),
)
