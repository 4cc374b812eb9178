r"""The conditional variational auto-encoder of actions that BCQ proposes from and that BEAR stays close to.

    z ~ N(μ(s, a), σ(s, a)²),    â = tanh(decoder(s, z))
    L = E[(â - a)²] + w·E[KL],    KL = -½·(1 + log σ² - μ² - σ²)

Both means are over batch and dimensions alike, as in BCQ's published code, so the KL term is smaller by the number
of latent dimensions than the textbook's.
"""

from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from score_rl.nets.actor_critic import on_many
from score_rl.nets.perceptron import Perceptron, aligned

LOG_STD_RANGE = (-4.0, 15.0)  # "for numerical stability" (BCQ's published code)
LATENT_BOUND = 0.5  # latents drawn for a decoding are clipped to ±0.5 (BCQ's published code)


class ActionVAE(eqx.Module):
    encoder: Perceptron  # (s, a) -> mean and log-standard deviation of z, side by side
    decoder: Perceptron  # (s, z) -> the action before its tanh

    @classmethod
    def init(cls, key: PRNGKeyArray, observation: int, action: int, latent: int, hidden: Sequence[int]) -> Self:
        encoder_key, decoder_key = jax.random.split(key)
        return cls(
            Perceptron.init(encoder_key, (observation + action, *hidden, 2 * latent)),
            Perceptron.init(decoder_key, (observation + latent, *hidden, action)),
        )

    @property
    def latent(self) -> int:
        return self.encoder.biases[-1].shape[-1] // 2

    def decode(
        self, observations: Float[Array, "batch observation"], latents: Float[Array, "samples batch latent"]
    ) -> Float[Array, "samples batch action"]:
        """Actions before their tanh, many in each state."""
        return on_many(aligned(self.decoder), observations, latents)

    def propose(
        self, observations: Float[Array, "batch observation"], noise: Float[Array, "samples batch latent"]
    ) -> Float[Array, "samples batch action"]:
        """Actions before their tanh that the data might have taken; `noise` is standard normal."""
        return self.decode(observations, jnp.clip(noise, -LATENT_BOUND, LATENT_BOUND))


def vae_loss(
    vae: ActionVAE,
    observations: Float[Array, "batch observation"],
    actions: Float[Array, "batch action"],
    noise: Float[Array, "batch latent"],
    kl_weight: Float[Array, ""] | float,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """`noise` is standard normal."""
    mean, log_std = jnp.split(aligned(vae.encoder)(jnp.concatenate([observations, actions], axis=-1)), 2, axis=-1)
    log_std = jnp.clip(log_std, *LOG_STD_RANGE)
    std = jnp.exp(log_std)
    decoded = jnp.tanh(vae.decode(observations, (mean + std * noise)[None])[0])
    reconstruction = ((decoded - actions) ** 2).mean()
    divergence = -0.5 * (1 + 2 * log_std - mean**2 - std**2).mean()
    return reconstruction + kl_weight * divergence, {"vae_error": reconstruction, "vae_kl": divergence}
