r"""BCQ: batch-constrained Q-learning (Fujimoto, Meger and Precup, 2019).

A conditional VAE learns which actions the data takes in a state (`behaviour.py`). The VAE proposes candidates â. A
perturbation network ξ moves each by at most Φ, and the critic picks the best:

    ξ(s, â) = clip(â + Φ·tanh(net(s, â)), ±1)
    y = r + γ·(1 - terminal)·max_j [λ·min_i Q'_i(s', ξ'(s', â_j)) + (1 - λ)·max_i Q'_i(s', ξ'(s', â_j))],  j = 1..n
    L(Q_i) = E[(Q_i(s, a) - y)²]
    L(ξ) = -E[Q_1(s, ξ(s, â))]
    π(s) = argmax_j Q_1(s, ξ(s, â_j)),  j = 1..100

The sum of minimum and maximum is the soft clipped double Q. In each update the VAE moves first, then the critics by the
new VAE, then ξ by both, then the targets.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from score_rl.algorithms.algorithm import Algorithm, Batch, Metrics, Paper, Shapes
from score_rl.algorithms.behaviour import acting_noise, candidates, fit
from score_rl.algorithms.settings import config, setting
from score_rl.nets.actor_critic import best_of, member, on_many, soft_clipped, values, values_of_many
from score_rl.nets.noise import standard_normal
from score_rl.nets.optimiser import OptimiserState, adam_init, adam_step, move_towards
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.vae import ActionVAE


@config
class Config:
    perturbation: float = setting(0.05, "Φ, the furthest a candidate is moved (paper)", group="paper")
    soft_clipping: float = setting(0.75, "λ, weight of the smaller critic (paper)", maximum=1, group="paper")
    kl_weight: float = setting(0.5, "weight of the VAE's KL term (published code)")
    discount: float = setting(0.99, "γ (paper)", maximum=1, group="paper")
    tau: float = setting(0.005, "share of each move of the targets (paper)", above=0, maximum=1, group="paper")
    critic_learning_rate: float = setting(1e-3, "Adam's learning rate for the critics (published code)")
    actor_learning_rate: float = setting(1e-3, "Adam's learning rate for the perturbation (published code)")
    vae_learning_rate: float = setting(1e-3, "Adam's learning rate for the VAE (published code)")
    target_samples: int = setting(10, "n, candidates in each next state (paper)", minimum=1, group="paper")
    acting_samples: int = setting(100, "candidates when acting (published code)", minimum=1, group="paper")
    hidden: tuple[int, ...] = setting(
        (400, 300), "widths of the hidden layers of perturbation and critics (paper)", minimum=1
    )
    vae_hidden: tuple[int, ...] = setting((750, 750), "widths of the VAE's hidden layers (paper)", minimum=1)
    latent_per_action: int = setting(2, "latent dimensions per action dimension (published code)", minimum=1)
    batch_size: int = setting(100, "transitions per update (paper)", minimum=1)
    normalise_states: bool = setting(False, "standardise observations over the data set (published code: no)")
    reward_scaling: Literal["minmax", "none", "return-range"] = setting("none", "rewards as recorded (published code)")


class State(NamedTuple):
    actor: Perceptron  # the perturbation
    critics: Perceptron  # every array with a leading axis of length 2
    target_actor: Perceptron
    target_critics: Perceptron
    vae: ActionVAE
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    vae_optimiser: OptimiserState
    step: Int[Array, ""]


class Policy(NamedTuple):
    """What acting needs."""

    actor: Perceptron
    critics: Perceptron
    vae: ActionVAE


def critic_loss(
    critics: Perceptron, config: Config, state: State, batch: Batch, noise: Float[Array, "samples batch latent"]
) -> tuple[Float[Array, ""], Metrics]:
    """The sum of both critics' errors."""
    next_actions = candidates(state.vae, state.target_actor, batch.next_observations, noise, config.perturbation)
    next_values = values_of_many(state.target_critics, batch.next_observations, next_actions)
    best = soft_clipped(next_values, config.soft_clipping).max(axis=0)
    targets = batch.rewards + config.discount * (1 - batch.terminals) * best
    q = values(critics, batch.observations, batch.actions)
    losses = ((q - targets[None]) ** 2).mean(axis=1)
    return losses.sum(), {"critic_loss": losses.mean(), "q": q.mean(), "q_target": targets.mean()}


def actor_loss(
    actor: Perceptron, config: Config, state: State, batch: Batch, noise: Float[Array, "one batch latent"]
) -> tuple[Float[Array, ""], Metrics]:
    actions = candidates(state.vae, actor, batch.observations, noise, config.perturbation)[0]
    q = member(state.critics, 0)(jnp.concatenate([batch.observations, actions], axis=-1)).mean()
    return -q, {"q_policy": q}


def update(config: Config, state: State, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[State, Metrics]:
    """VAE, critics, perturbation and targets, in this order."""
    shape = (batch.rewards.size, state.vae.latent)
    shapes = (shape, (config.target_samples, *shape), (1, *shape))
    vae_noise, critic_noise, actor_noise = standard_normal(key, shapes, batch.actions.dtype)

    vae, optimiser, metrics = fit(
        state.vae,
        state.vae_optimiser,
        batch.observations,
        batch.actions,
        vae_noise,
        config.kl_weight,
        config.vae_learning_rate,
    )
    state = state._replace(vae=vae, vae_optimiser=optimiser)

    gradients, more = jax.grad(critic_loss, has_aux=True)(state.critics, config, state, batch, critic_noise)
    critics, optimiser = adam_step(state.critics, gradients, state.critic_optimiser, config.critic_learning_rate)
    state = state._replace(critics=critics, critic_optimiser=optimiser)
    metrics |= more

    gradients, more = jax.grad(actor_loss, has_aux=True)(state.actor, config, state, batch, actor_noise)
    actor, optimiser = adam_step(state.actor, gradients, state.actor_optimiser, config.actor_learning_rate)
    state = state._replace(
        actor=actor,
        actor_optimiser=optimiser,
        target_actor=move_towards(state.target_actor, actor, config.tau),
        target_critics=move_towards(state.target_critics, state.critics, config.tau),
        step=state.step + 1,
    )
    return state, metrics | more


def init(config: Config, shapes: Shapes, key: PRNGKeyArray) -> State:
    critic_key, actor_key, vae_key = jax.random.split(key, 3)
    width = shapes.observation + shapes.action
    critics = Perceptron.init(critic_key, (width, *config.hidden, 1), members=2)
    actor = Perceptron.init(actor_key, (width, *config.hidden, shapes.action))
    latent = config.latent_per_action * shapes.action
    vae = ActionVAE.init(vae_key, shapes.observation, shapes.action, latent, config.vae_hidden)
    return State(
        actor=actor,
        critics=critics,
        target_actor=actor,
        target_critics=critics,
        vae=vae,
        actor_optimiser=adam_init(actor),
        critic_optimiser=adam_init(critics),
        vae_optimiser=adam_init(vae),
        step=jnp.zeros((), jnp.int32),
    )


def act(
    config: Config,
    policy: Policy,
    observations: Float[Array, "batch observation"],
    key: PRNGKeyArray | None = None,
) -> Float[Array, "batch action"]:
    """The best of many candidates. Without a key every state gets the same latents, so that π is a function of s."""
    noise = acting_noise(key, config.acting_samples, observations.shape[0], policy.vae.latent, observations.dtype)
    actions = candidates(policy.vae, policy.actor, observations, noise, config.perturbation)
    return best_of(actions, on_many(member(policy.critics, 0), observations, actions)[..., 0])


def value(
    config: Config,
    state: State,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
) -> Float[Array, " batch"]:
    """Q_1(s, a), by which candidates are chosen."""
    return values(state.critics, observations, actions)[0]


ALGORITHM = Algorithm(
    name="bcq",
    title="BCQ",
    summary="the best of candidates that a VAE of the data proposes",
    paper=Paper("Fujimoto, Meger and Precup", 2019, "1812.02900"),
    Config=Config,
    init=init,
    update=update,
    policy=lambda state: Policy(state.actor, state.critics, state.vae),
    act=act,
    value=value,
    characteristics=("policy-constrained",),
    headline=("q", "vae_error"),
)
