"""What can be asked of a trained run in Python: actions, how far to trust them, uncertainties. Inputs are checked."""

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.data.columns import BOUND_TOLERANCE
from score_rl.data.treatment import Treatment
from score_rl.deploy.limits import Limits, distance, is_far, is_unknown
from score_rl.errors import InputError
from score_rl.rollout.acting import acting, host_device


class CheckedActions(NamedTuple):
    """Actions, and which of them not to trust: what an exported policy answers too."""

    actions: np.ndarray
    distance: np.ndarray  # how far each observation lies outside the data; above 1 is far
    far: np.ndarray  # which observations lie far outside the data
    uncertainty: np.ndarray | None  # of the actions; None where the method has none
    unknown: np.ndarray | None  # whose uncertainty is above the 99 % quantile of recorded pairs


@dataclasses.dataclass(frozen=True, eq=False)
class AskedRun:
    """One run's functions on the host, compiled when they are first asked."""

    algorithm: Algorithm
    config: Any
    state: Any
    treatment: Treatment

    @cached_property
    def _on_host(self) -> tuple[Any, Any, Treatment]:
        placed: tuple[Any, Any, Treatment] = jax.device_put((self.config, self.state, self.treatment), host_device())
        return placed

    @cached_property
    def _act(self) -> Callable[[np.ndarray], np.ndarray]:
        policy = self.algorithm.policy(self.state)
        config, policy, treatment = jax.device_put((self.config, policy, self.treatment), host_device())
        act = jax.jit(acting(self.algorithm))
        return lambda observations: np.asarray(act(config, treatment, policy, observations))

    @cached_property
    def _uncertainty(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        measure = self.algorithm.uncertainty
        if measure is None:
            able = [name for name in algorithm_names() if get_algorithm(name).uncertainty is not None]
            raise InputError(f"{self.algorithm.title} estimates no uncertainty; these do: {', '.join(able)}.")
        return self._of_pairs(measure)

    def _of_pairs(self, function: Callable[..., Any]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """A function of pairs in treated units, for pairs as recorded."""
        compiled = jax.jit(lambda c, s, t, o, a: function(c, s, t.observe(o), t.action_in(a)))
        config, state, treatment = self._on_host
        return lambda observations, actions: np.asarray(compiled(config, state, treatment, observations, actions))

    def actions(self, observation: Any) -> np.ndarray:
        """For one observation or a batch of them."""
        batch, single = self._batch("observation", observation, self.treatment.observation_mean)
        actions = self._act(batch)
        return actions[0] if single else actions

    def checked(self, observation: Any, limits: Limits) -> CheckedActions:
        """The same with what the limits of the data say of them."""
        batch, single = self._batch("observation", observation, self.treatment.observation_mean)
        actions = self._act(batch)
        distances = distance(limits, jnp.asarray(batch))
        uncertainty = unknown = None
        if self.algorithm.uncertainty is not None:
            uncertainty = self._uncertainty(batch, actions)
            unknown = np.asarray(is_unknown(limits, jnp.asarray(uncertainty)))
        found = CheckedActions(actions, np.asarray(distances), np.asarray(is_far(distances)), uncertainty, unknown)
        if not single:
            return found
        return CheckedActions(*(None if x is None else x[0] for x in found))  # type: ignore[arg-type]

    def uncertainty(self, observation: Any, action: Any) -> np.ndarray:
        """u(s, a), for one pair or a batch of them."""
        observations, actions, single = self._pairs(observation, action)
        values = self._uncertainty(observations, actions)
        return values[0] if single else values

    def value(self, observation: Any, action: Any | None) -> np.ndarray:
        """Q(s, a) or V(s), for one observation or a batch of them."""
        if action is not None:
            observations, actions, single = self._pairs(observation, action)
            values = self._value(observations, actions)
        else:
            observations, single = self._batch("observation", observation, self.treatment.observation_mean)
            values = self._state_value(observations)
        return values[0] if single else values

    @cached_property
    def _value(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        value = self.algorithm.value
        if value is None:
            able = [name for name in algorithm_names() if get_algorithm(name).value is not None]
            raise InputError(f"{self.algorithm.title} learns no values of actions; these do: {', '.join(able)}.")
        return self._of_pairs(value)

    @cached_property
    def _state_value(self) -> Callable[[np.ndarray], np.ndarray]:
        """V(s) where the method learns it, else Q(s, π(s))."""
        value = self.algorithm.state_value
        if value is None:
            return lambda observations: self._value(observations, self._act(observations))
        compiled = jax.jit(lambda c, s, t, o: value(c, s, t.observe(o)))
        config, state, treatment = self._on_host
        return lambda observations: np.asarray(compiled(config, state, treatment, observations))

    def raw_uncertainty(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """u(s, a) of recorded pairs."""
        return self._uncertainty(observations, actions)

    def _pairs(self, observation: Any, action: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        observations, single = self._batch("observation", observation, self.treatment.observation_mean)
        actions, _ = self._batch("action", action, self.treatment.action_centre)
        if len(observations) != len(actions):
            raise InputError(f"{len(observations)} observations and {len(actions)} actions: give as many of each.")
        self._refuse_impossible(actions)
        return observations, actions, single

    def _refuse_impossible(self, actions: np.ndarray) -> None:
        outside = np.abs(np.asarray(self.treatment.action_in(jnp.asarray(actions)))) > 1 + BOUND_TOLERANCE
        if outside.any():
            row, place = np.argwhere(outside)[0]
            centre, half = (
                np.asarray(x)[place] for x in (self.treatment.action_centre, self.treatment.action_halfwidth)
            )
            raise InputError(
                f"action {place} is {actions[row, place]:g}, but lies between {centre - half:g} and {centre + half:g}: "
                "nothing is known of an action that cannot be taken."
            )

    @staticmethod
    def _batch(what: str, values: Any, beside: Any) -> tuple[np.ndarray, bool]:
        width = np.shape(beside)[0]
        array = np.asarray(values, dtype=np.float32)
        single = array.ndim == 1
        batch = array[None] if single else array
        if batch.ndim != 2 or batch.shape[1] != width:
            raise InputError(f"{what} has shape {array.shape}; expected ({width},) or (batch, {width}).")
        broken = ~np.isfinite(batch)
        if broken.any():
            row, place = np.argwhere(broken)[0]
            where = f"{what} {place}" if single else f"{what} {place} in row {row}"
            raise InputError(
                f"{where} is {batch[row, place]}; give a finite number, such as the last one that was measured."
            )
        return batch, single
