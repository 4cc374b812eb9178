r"""The data's behaviour policy as a VAE, and how BCQ and BEAR stay near it.

BCQ takes candidates â from the VAE. A perturbation network ξ moves each by at most Φ:

    ξ(s, â) = clip(â + Φ·tanh(net(s, â)), ±1)

BEAR has a squashed Gaussian π. Its MMD to the VAE is held below ε by a multiplier α = exp(log α):

    MMD(s) of n actions of each, before their tanh,    L(log α) = -E[α·(MMD(s) - ε)],    log α clipped to [-5, 10]

SCORE's constraints `fix` and `mmd` are made of the same functions (`score_constraints.py`).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.actor_critic import on_many
from score_rl.nets.mmd import Kernel, mmd
from score_rl.nets.optimiser import OptimiserState, adam_step
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.squashed_gaussian import SquashedGaussian
from score_rl.nets.vae import ActionVAE, vae_loss

Number = Float[Array, ""] | float
LOG_STD_RANGE = (-5.0, 2.0)  # BEAR's published code
LOG_ALPHA_RANGE = (-5.0, 10.0)  # BEAR's published code


def fit(
    vae: ActionVAE,
    optimiser: OptimiserState,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
    noise: Float[Array, "batch latent"],
    kl_weight: Number,
    learning_rate: Number,
) -> tuple[ActionVAE, OptimiserState, dict[str, Float[Array, ""]]]:
    """One step of the VAE."""
    gradients, metrics = jax.grad(vae_loss, has_aux=True)(vae, observations, actions, noise, kl_weight)
    vae, optimiser = adam_step(vae, gradients, optimiser, learning_rate)
    return vae, optimiser, metrics


def candidates(
    vae: ActionVAE,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "samples batch latent"],
    perturbation: Number,
) -> Float[Array, "samples batch action"]:
    """ξ(s, â) for proposals â of the VAE; `noise` is standard normal."""
    proposed = jnp.tanh(vae.propose(observations, noise))
    moved = perturbation * jnp.tanh(on_many(actor, observations, proposed))
    return jnp.clip(proposed + moved, -1, 1)


def distribution(actor: Perceptron, observations: Float[Array, "batch observation"]) -> SquashedGaussian:
    """π(s), over actions within ±1."""
    return SquashedGaussian.from_output(actor(observations), LOG_STD_RANGE)


def action_and_mmd(
    vae: ActionVAE,
    actor: Perceptron,
    observations: Float[Array, "batch observation"],
    noise: Float[Array, "n batch action"],
    proposals: Float[Array, "n batch latent"],
    kernel: Kernel,
    sigma: Number,
) -> tuple[Float[Array, "batch action"], Float[Array, " batch"]]:
    """The first of n actions of π, and MMD(s) of all of them before their tanh."""
    latent_actions = distribution(actor, observations).latent(noise)
    proposed = vae.propose(observations, proposals)
    return jnp.tanh(latent_actions[0]), mmd(proposed, latent_actions, kernel, sigma)


def ascend(
    log_alpha: Float[Array, ""],
    optimiser: OptimiserState,
    distance: Float[Array, ""],
    threshold: Number,
    learning_rate: Number,
) -> tuple[Float[Array, ""], OptimiserState]:
    """One step of the multiplier; `distance` is the batch's mean MMD."""
    slope = -jnp.exp(log_alpha) * (distance - threshold)
    log_alpha, optimiser = adam_step(log_alpha, slope, optimiser, learning_rate)
    return jnp.clip(log_alpha, *LOG_ALPHA_RANGE), optimiser


def acting_noise(key: PRNGKeyArray | None, samples: int, rows: int, width: int, dtype: Any) -> Array:
    """Standard normal numbers for acting. Without a key every state gets the same, so that π is a function of s."""
    shape = (samples, 1 if key is None else rows, width)
    noise = jax.random.normal(jax.random.key(0) if key is None else key, shape, dtype)
    return jnp.broadcast_to(noise, (samples, rows, width))
