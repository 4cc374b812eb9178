"""What is to be played: a policy, with everything that its episodes depend on."""

import dataclasses
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.algorithm import Algorithm
from score_rl.data.treatment import Treatment
from score_rl.rollout.episodes import episode_seeds

TRAINING_SEED = 0  # of the episodes with which training evaluates; fresh episodes have later seeds


def fresh_seed(seed: int) -> int:
    """The seed of episodes that training did not play."""
    return TRAINING_SEED + 1 + seed


@dataclasses.dataclass(frozen=True)
class PolicyToPlay:
    """One policy of a run, and the episodes it is to play."""

    algorithm: Algorithm
    config: Any
    treatment: Treatment
    policy: Any  # what `algorithm.act` needs of the run's state
    environment: str
    physics: str
    identity: str  # of the run; with `step` and `seed` it decides the random numbers of the episodes
    step: int  # updates after which the policy was taken
    episodes: int
    seed: int = TRAINING_SEED

    @property
    def observation_dim(self) -> int:
        return int(np.shape(self.treatment.observation_mean)[0])

    def acting_inputs(self) -> tuple[Any, Treatment, Any]:
        """Settings, treatment and policy as arrays on the host, in JAX's types.

        A setting may be a number of Python's own, which NumPy would take for float64.
        """
        return jax.tree.map(_as_array, (self.config, self.treatment, self.policy))

    def episode_seeds(self) -> list[list[int]]:
        return episode_seeds(self.identity, self.step, self.episodes, self.seed)


def _as_array(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return np.asarray(array, jax.dtypes.canonicalize_dtype(array.dtype))
