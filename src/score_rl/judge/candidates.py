"""What is judged: several policies at once, asked for their actions in the units of the data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from score_rl.algorithms.algorithm import Algorithm
from score_rl.data.treatment import Treatment
from score_rl.errors import InputError
from score_rl.rollout.acting import batched_act

ROWS_AT_ONCE = 100_000  # over all policies of one call, so that hidden layers fit into memory

Act = Callable[[Float[np.ndarray, "batch observation"]], Float[np.ndarray, "batch action"]]


class TrainedPolicy(NamedTuple):
    """The policy of a run, and all that acting needs."""

    algorithm: Algorithm
    config: Any
    treatment: Treatment
    policy: Any

    def same_program(self) -> tuple[Any, ...]:
        """Policies that agree in this act in one call."""
        leaves, structure = jax.tree.flatten((self.config, self.treatment, self.policy))
        return (self.algorithm.name, structure, *(np.shape(leaf) for leaf in leaves))


class Candidates:
    """Policies under their names. Those of the same shape act together, whatever their settings."""

    def __init__(self, policies: Mapping[str, TrainedPolicy | Act], action_low: Any, action_high: Any) -> None:
        self.names = list(policies)
        self._low, self._high = np.asarray(action_low), np.asarray(action_high)
        self._functions: list[tuple[int, Act]] = []
        stacks: dict[Any, list[tuple[int, TrainedPolicy]]] = {}
        for number, policy in enumerate(policies.values()):
            if isinstance(policy, TrainedPolicy):
                stacks.setdefault(policy.same_program(), []).append((number, policy))
            else:
                self._functions.append((number, policy))
        self._stacks = [_Stack([n for n, _ in stack], [policy for _, policy in stack]) for stack in stacks.values()]

    def __len__(self) -> int:
        return len(self.names)

    def act(self, observations: Float[np.ndarray, "policies batch observation"]) -> np.ndarray:
        """Each policy on observations of its own: (policies, batch, action), within the bounds."""
        actions = np.empty((*observations.shape[:2], len(self._low)), np.float32)
        for number, function in self._functions:
            given = np.asarray(function(observations[number]))
            if given.shape != actions[number].shape:
                raise InputError(
                    f"the policy {self.names[number]} gave actions of shape {given.shape} for {observations.shape[1]} "
                    f"observations; it must be {actions[number].shape}."
                )
            actions[number] = given
        for stack in self._stacks:
            actions[stack.numbers] = stack.act(observations[stack.numbers])
        return np.clip(actions, self._low, self._high)

    def act_on(self, observations: Float[np.ndarray, "batch observation"]) -> np.ndarray:
        """All policies on the same observations."""
        return self.act(np.broadcast_to(observations, (len(self), *observations.shape)))


class _Stack:
    """Policies of one shape, side by side."""

    def __init__(self, numbers: Sequence[int], policies: Sequence[TrainedPolicy]) -> None:
        self.numbers = np.array(numbers)
        inputs = [(policy.config, policy.treatment, policy.policy) for policy in policies]
        self._inputs = jax.device_put(jax.tree.map(lambda *leaves: np.stack([_array(x) for x in leaves]), *inputs))
        self._act = batched_act(policies[0].algorithm)

    def act(self, observations: np.ndarray) -> np.ndarray:
        rows = observations.shape[1]
        width = max(1, ROWS_AT_ONCE // len(self.numbers))
        if rows <= width:
            return np.asarray(self._act(*self._inputs, np.asarray(observations, np.float32)))
        parts = []
        for first in range(0, rows, width):  # the last part is filled up, so that nothing is compiled again
            part = np.asarray(observations[:, first : first + width], np.float32)
            filled = np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)), mode="edge")
            parts.append(np.asarray(self._act(*self._inputs, filled))[:, : part.shape[1]])
        return np.concatenate(parts, axis=1)


def _array(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return np.asarray(array, jax.dtypes.canonicalize_dtype(array.dtype))
