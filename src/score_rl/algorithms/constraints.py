"""SCORE's constraints `fix` and `mmd`: the paper's alternatives to behaviour cloning, which model the behaviour first.

fix: the VAE proposes, as in BCQ. π moves a proposal by at most Φ, a' and the action taken are the best of many
candidates by min_i Q_i, and the actor's loss has no other term.
mmd: π is a squashed Gaussian, as in BEAR. a' is drawn from it, α·(MMD(s) - ε) takes the place of λ·‖π(s) - a‖², and
the action taken is the best of many samples by min_i Q_i.

Everything else stays SCORE's: every critic its own target at the one a', no soft clipping, the penalty, the
normalised value in the actor's loss.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.algorithms.algorithm import Batch, Metrics, Shapes
from score_rl.algorithms.behaviour import acting_noise, action_and_mmd, ascend, candidates, distribution, fit
from score_rl.nets.actor_critic import best_of, values_of_many
from score_rl.nets.noise import standard_normal
from score_rl.nets.optimiser import OptimiserState, adam_init
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.vae import ActionVAE

if TYPE_CHECKING:
    from score_rl.algorithms.score import Config

KL_WEIGHT, VAE_LEARNING_RATE, LATENT_PER_ACTION = 0.5, 1e-3, 2  # BCQ's published code
MULTIPLIER_LEARNING_RATE, MMD_SAMPLES = 1e-3, 4  # BEAR's published code


class Behaviour(NamedTuple):
    """The data's policy as it is known so far, and the multiplier of the distance to it."""

    vae: ActionVAE
    optimiser: OptimiserState
    log_multiplier: Float[Array, ""]  # stays 0 with fix
    multiplier_optimiser: OptimiserState


class Noise(NamedTuple):
    """All standard normal numbers of an update."""

    vae: Float[Array, "batch latent"]
    next_actions: Float[Array, "*any"]  # fix: latents of candidates; mmd: one for each action
    actions: Float[Array, "*any"]  # fix: the latent of one candidate; mmd: of n actions
    proposals: Float[Array, "n batch latent"]  # none with fix


class Policy(NamedTuple):
    """What acting by the best of many needs."""

    actor: Perceptron
    critics: Perceptron
    vae: ActionVAE


def draw_noise(config: "Config", known: Behaviour, batch: Batch, key: PRNGKeyArray) -> Noise:
    (size, action), latent = batch.actions.shape, known.vae.latent
    shapes: tuple[tuple[int, ...], ...]
    if config.constraint == "fix":
        shapes = ((size, latent), (config.target_samples, size, latent), (1, size, latent), (0, size, latent))
    else:
        shapes = ((size, latent), (size, action), (MMD_SAMPLES, size, action), (MMD_SAMPLES, size, latent))
    return Noise(*standard_normal(key, shapes, batch.actions.dtype))


def actor_sizes(config: "Config", shapes: Shapes) -> tuple[int, ...]:
    """fix sees the proposal that it moves, mmd says a mean and a deviation."""
    if config.constraint == "fix":
        return (shapes.observation + shapes.action, *config.hidden, shapes.action)
    return (shapes.observation, *config.hidden, 2 * shapes.action)


def init(config: "Config", shapes: Shapes, key: PRNGKeyArray) -> Behaviour:
    latent = LATENT_PER_ACTION * shapes.action
    vae = ActionVAE.init(key, shapes.observation, shapes.action, latent, config.vae_hidden)
    multiplier = jnp.zeros(())
    return Behaviour(vae, adam_init(vae), multiplier, adam_init(multiplier))


def learn(known: Behaviour, batch: Batch, noise: Noise) -> tuple[Behaviour, Metrics]:
    """One step of the VAE."""
    vae, optimiser, metrics = fit(
        known.vae, known.optimiser, batch.observations, batch.actions, noise.vae, KL_WEIGHT, VAE_LEARNING_RATE
    )
    return known._replace(vae=vae, optimiser=optimiser), metrics


def next_actions(
    config: "Config", known: Behaviour, actor: Perceptron, critics: Perceptron, batch: Batch, noise: Noise
) -> Float[Array, "batch action"]:
    """a', by the target networks."""
    if config.constraint == "mmd":
        return distribution(actor, batch.next_observations).sample(noise.next_actions)
    actions = candidates(known.vae, actor, batch.next_observations, noise.next_actions, config.perturbation)
    return best_of(actions, values_of_many(critics, batch.next_observations, actions).min(axis=0))


def actions_and_term(
    config: "Config", known: Behaviour, actor: Perceptron, batch: Batch, noise: Noise
) -> tuple[Float[Array, "batch action"], Float[Array, ""] | float, Metrics]:
    """π(s), and the term that keeps it near the data."""
    if config.constraint == "fix":  # it can only move what the VAE proposes: nothing else is needed
        return candidates(known.vae, actor, batch.observations, noise.actions, config.perturbation)[0], 0.0, {}
    actions, distance = action_and_mmd(
        known.vae, actor, batch.observations, noise.actions, noise.proposals, config.mmd_kernel, config.mmd_sigma
    )
    multiplier = jnp.exp(known.log_multiplier)
    term = multiplier * (distance - config.mmd_threshold).mean()
    return actions, term, {"mmd": distance.mean(), "multiplier": multiplier}


def tighten(config: "Config", known: Behaviour, distance: Float[Array, ""]) -> Behaviour:
    """One step of the multiplier that holds the MMD below its threshold."""
    multiplier, optimiser = ascend(
        known.log_multiplier, known.multiplier_optimiser, distance, config.mmd_threshold, MULTIPLIER_LEARNING_RATE
    )
    return known._replace(log_multiplier=multiplier, multiplier_optimiser=optimiser)


def act(
    config: "Config", policy: Policy, observations: Float[Array, "batch observation"], key: PRNGKeyArray | None
) -> Float[Array, "batch action"]:
    """The best of many candidates by min_i Q_i. Without a key every state gets the same noise."""
    samples, rows, dtype = config.acting_samples, len(observations), observations.dtype
    if config.constraint == "fix":
        noise = acting_noise(key, samples, rows, policy.vae.latent, dtype)
        actions = candidates(policy.vae, policy.actor, observations, noise, config.perturbation)
    else:
        gaussian = distribution(policy.actor, observations)
        actions = gaussian.sample(acting_noise(key, samples, rows, gaussian.mean.shape[-1], dtype))
    return best_of(actions, values_of_many(policy.critics, observations, actions).min(axis=0))
