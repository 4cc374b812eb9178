"""What is exported: a policy with its treatment, its bounds, its uncertainty and the limits of its data."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from score_rl.algorithms.algorithm import Algorithm
from score_rl.data.labels import Labels
from score_rl.data.treatment import Treatment
from score_rl.deploy.limits import QUANTILE, Limits, distance, is_far, is_unknown

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """A policy of a run, and what is known of its data."""

    algorithm: Algorithm
    config: Any
    state: Any
    treatment: Treatment
    labels: Labels
    limits: Limits | None  # None: nothing is flagged
    origin: Mapping[str, Any]  # the run, its data and the code that trained it

    @property
    def has_uncertainty(self) -> bool:
        """Whether the file gives the uncertainty of its actions."""
        return self.algorithm.uncertainty is not None

    def function(self) -> Callable[[Any], dict[str, Array]]:
        """What the file computes for observations as recorded."""
        policy, low, high = self.algorithm.policy(self.state), *self.bounds()

        def answer(observations: Any) -> dict[str, Array]:
            treated = self.treatment.observe(observations)
            chosen = self.algorithm.act(self.config, policy, treated)
            actions = jnp.clip(self.treatment.action_out(chosen), low[None], high[None])
            outputs = {"actions": actions}
            if self.algorithm.uncertainty is not None:
                outputs["uncertainty"] = self.algorithm.uncertainty(self.config, self.state, treated, chosen)
            return outputs | self._flags(observations, outputs)

        return answer

    def _flags(self, observations: Any, outputs: Mapping[str, Array]) -> dict[str, Array]:
        if self.limits is None:
            return {}
        distances = distance(self.limits, observations)
        flags = {"distance": distances, "far": is_far(distances)}
        if "uncertainty" in outputs:
            flags["unknown"] = is_unknown(self.limits, outputs["uncertainty"])
        return flags

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest action, in the units of the data."""
        centre, half = (
            np.asarray(x, np.float64) for x in (self.treatment.action_centre, self.treatment.action_halfwidth)
        )
        return (centre - half).astype(np.float32), (centre + half).astype(np.float32)

    def about(self) -> dict[str, Any]:
        """What the file says of itself."""
        low, high = self.bounds()
        observations = [self._column(name) for name in self.observation_names()]
        if self.limits is not None:
            for column, least, most in zip(observations, self.limits.least, self.limits.most, strict=True):
                column |= {"least": float(least), "most": float(most)}
        actions = [
            self._column(name) | {"low": float(least), "high": float(most)}
            for name, least, most in zip(self.action_names(), low, high, strict=True)
        ]
        return {
            "format": FORMAT,
            "kind": "a policy of score-rl",
            "title": self.algorithm.title,
            "observations": observations,
            "actions": actions,
            "outputs": self._meanings(),
            **self.origin,
        }

    def observation_scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the observations lie, and how wide they are spread, as far as that is known."""
        if self.limits is None:
            return np.asarray(self.treatment.observation_mean), np.asarray(self.treatment.observation_scale)
        return np.asarray(self.limits.mean), np.asarray(self.limits.most - self.limits.least) / 4

    def observation_names(self) -> Sequence[str]:
        """As the data call them, else observation_0 and so on."""
        width = np.shape(self.treatment.observation_mean)[0]
        return self.labels.observations or [f"observation_{number}" for number in range(width)]

    def action_names(self) -> Sequence[str]:
        """As the data call them, else action_0 and so on."""
        width = np.shape(self.treatment.action_centre)[0]
        return self.labels.actions or [f"action_{number}" for number in range(width)]

    def _column(self, name: str) -> dict[str, Any]:
        unit = self.labels.units.get(name)
        return {"name": name} | ({} if unit is None else {"unit": unit})

    def _meanings(self) -> dict[str, str]:
        """What each output is, in words."""
        meanings = {"actions": "the deterministic action of the policy, in the units of the data, within the bounds"}
        if self.has_uncertainty:
            meanings["uncertainty"] = f"{self.algorithm.title}'s uncertainty of the action"
        if self.limits is not None:
            meanings["distance"] = "how far the observation lies outside the data; above 1 is far"
            meanings["far"] = "the observation lies far outside the data: do not trust the action"
        if self.limits is not None and self.limits.uncertainty is not None:
            meanings["unknown"] = (
                f"the uncertainty is above {float(self.limits.uncertainty):.6g}, the {QUANTILE:.0%} quantile of the "
                "recorded pairs"
            )
        return meanings
