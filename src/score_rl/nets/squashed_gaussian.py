r"""The tanh-squashed diagonal Gaussian: the stochastic policy of SAC and of what is built on it.

    a = tanh(x),    x = μ + σ·ε,    ε ~ N(0, 1)
    log π(a) = Σ_d [log N(x_d; μ_d, σ_d²) - log(1 - tanh²(x_d))]
    log(1 - tanh²(x)) = 2·(log 2 - x - softplus(-2x))

The last line is exact at every x, where the difference itself would be the logarithm of 0.
"""

import math
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

LOG_STD_RANGE = (-20.0, 2.0)  # of SAC's published code and of most that came after


class SquashedGaussian(NamedTuple):
    """A distribution over actions within ±1, one for each row of a batch.

    Noise is given, never drawn here. It may carry axes before those of the batch: as many samples of each row.
    """

    mean: Float[Array, "*batch action"]  # before the squashing
    log_std: Float[Array, "*batch action"]

    @classmethod
    def from_output(
        cls,
        output: Float[Array, "*batch twice_action"],
        log_std_range: tuple[float, float] = LOG_STD_RANGE,
    ) -> Self:
        """From a network's output, mean and log-std side by side; outside its range a log-std has no gradient."""
        mean, log_std = jnp.split(output, 2, axis=-1)
        return cls(mean, jnp.clip(log_std, *log_std_range))

    def mode(self) -> Float[Array, "*batch action"]:
        """tanh(μ), the action of an evaluation without noise."""
        return jnp.tanh(self.mean)

    def latent(self, noise: Float[Array, "*samples action"]) -> Float[Array, "*samples action"]:
        """x, an action before the squashing, from standard normal noise."""
        mean, log_std = self._beside(noise)
        return mean + jnp.exp(log_std) * noise

    def sample(self, noise: Float[Array, "*samples action"]) -> Float[Array, "*samples action"]:
        """a, reparameterised: its gradient reaches μ and σ."""
        return jnp.tanh(self.latent(noise))

    def sample_and_log_prob(
        self, noise: Float[Array, "*samples action"]
    ) -> tuple[Float[Array, "*samples action"], Float[Array, "*samples"]]:
        """a and log π(a), both reparameterised."""
        latent = self.latent(noise)
        return jnp.tanh(latent), _log_density(noise, self._beside(noise)[1], latent)

    def log_prob_of_latent(self, latent: Float[Array, "*samples action"]) -> Float[Array, "*samples"]:
        """log π(tanh(x)) at a given x."""
        mean, log_std = self._beside(latent)
        return _log_density((latent - mean) * jnp.exp(-log_std), log_std, latent)

    def log_prob(self, actions: Float[Array, "*samples action"], margin: float = 1e-6) -> Float[Array, "*samples"]:
        """log π(a) of actions not drawn here, such as the data's; those at ±1 are moved inwards by `margin`."""
        return self.log_prob_of_latent(jnp.arctanh(jnp.clip(actions, -1 + margin, 1 - margin)))

    def _beside(self, samples: Array) -> tuple[Array, Array]:
        """Mean and log-std with as many axes as their partner: ranks are never promoted silently."""
        lead = (1,) * (samples.ndim - self.mean.ndim)
        return self.mean.reshape(lead + self.mean.shape), self.log_std.reshape(lead + self.log_std.shape)


def log_squash_slope(latent: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """log(d tanh(x)/dx)."""
    return 2 * (math.log(2) - latent - jax.nn.softplus(-2 * latent))


def _log_density(
    noise: Float[Array, "*samples action"],
    log_std: Float[Array, "*#samples action"],
    latent: Float[Array, "*samples action"],
) -> Float[Array, "*samples"]:
    """log π(tanh(x)), where `noise` is (x - μ)/σ."""
    normal = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    return (normal - log_squash_slope(latent)).sum(axis=-1)
