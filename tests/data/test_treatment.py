"""How observations are scaled."""

import jax.numpy as jnp
import numpy as np

from score_rl.data.dataset import make_dataset
from score_rl.data.treatment import STATE_EPSILON, fit_treatment

from .recordings import plant


def test_what_never_changes_is_not_magnified() -> None:
    rows = plant()
    rows["observations"][:, 1] = 50.0
    dataset = make_dataset("plant", **rows)
    treatment = fit_treatment(dataset, normalise_states=True, reward_scaling="minmax")
    scale = dataset.observations.astype(np.float64).std(axis=0) + STATE_EPSILON
    scale[1] = 1.0
    np.testing.assert_allclose(treatment.observation_scale, scale, rtol=1e-6)
    other = jnp.asarray(dataset.observations[:1]).at[0, 1].set(51.0)
    np.testing.assert_allclose(treatment.observe(other)[0, 1], 1.0)
