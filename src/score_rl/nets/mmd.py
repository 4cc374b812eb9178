r"""Maximum mean discrepancy between two sets of samples, the distance that BEAR bounds.

    MMD²(x, y) = E k(x, x') - 2·E k(x, y) + E k(y, y'),    a sample paired with itself included
    laplacian: k(x, y) = exp(-‖x - y‖₁ / 2σ),    gaussian: k(x, y) = exp(-‖x - y‖₂² / 2σ)

Under the root stands 1e-6 more. σ, not σ², divides in the gaussian kernel too: so it is in BEAR's published code,
and its σ = 20 is meant for that.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

Kernel = Literal["laplacian", "gaussian"]


def mmd(
    x: Float[Array, "n batch dimension"],
    y: Float[Array, "m batch dimension"],
    kernel: Kernel,
    sigma: Float[Array, ""] | float,
) -> Float[Array, " batch"]:
    """One distance for each row of the batch."""

    def mean_kernel(a: Array, b: Array) -> Float[Array, " batch"]:
        gaps = a[:, None] - b[None]
        distances = (jnp.abs(gaps) if kernel == "laplacian" else gaps**2).sum(axis=-1)
        return jnp.exp(-distances / (2 * sigma)).mean(axis=(0, 1))

    return jnp.sqrt(mean_kernel(x, x) - 2 * mean_kernel(x, y) + mean_kernel(y, y) + 1e-6)
