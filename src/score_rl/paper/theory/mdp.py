"""Finite MDPs M = (S, A, P, R, γ, d_0), solved by linear algebra (the paper's section 2.1).

Arrays: P[s, a, s'], R[s, a], π[s, a], Q[s, a], V[s], d_0[s]. Rewards lie in [0, 1], so that every value lies
in [0, V_max] with V_max = 1/(1-γ); the paper uses this range in its proofs without stating it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.precision import namespace, solve

SUM_TOLERANCE = 1e-9  # how far a distribution may be from summing to one
SWITCH_TOLERANCE = 1e-12  # policy iteration changes an action only for a gain above rounding


@runtime_checkable
class Model(Protocol):
    """What the Bellman operators need: the true MDP has it, and so has the empirical model."""

    @property
    def P(self) -> Any: ...  # noqa: N802

    @property
    def R(self) -> Any: ...  # noqa: N802

    @property
    def gamma(self) -> Any: ...


def check_discount(gamma: float) -> float:
    """γ as a float strictly between 0 and 1."""
    if not 0.0 < float(gamma) < 1.0:
        raise InputError(f"the discount γ is {gamma}, expected strictly between 0 and 1.")
    return float(gamma)


def check_distributions(name: str, rows: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`rows` as float64 of `shape`, each last axis a probability distribution."""
    rows = np.array(rows, dtype=np.float64)
    if rows.shape != shape:
        raise InputError(f"{name} has shape {rows.shape}, expected {shape}.")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} holds NaN or infinite entries; give finite probabilities.")
    worst = float(np.abs(rows.sum(-1) - 1.0).max())
    if rows.min() < 0.0 or worst > SUM_TOLERANCE:
        raise InputError(
            f"{name} is not stochastic: smallest entry {rows.min():.3g}, a row misses the sum 1 by {worst:.3g}; "
            "expected non-negative rows that sum to 1."
        )
    return rows


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A finite MDP with deterministic rewards R(s, a) ∈ [0, 1]; refused when it is not one."""

    P: np.ndarray
    R: np.ndarray
    gamma: float
    d0: np.ndarray
    name: str = "mdp"

    def __post_init__(self) -> None:
        shape = np.shape(self.P)
        if len(shape) != 3 or shape[0] != shape[2] or 0 in shape:
            raise InputError(f"the transitions P have shape {shape}, expected (S, A, S) with S, A ≥ 1.")
        reward = np.array(self.R, dtype=np.float64)
        if reward.shape != shape[:2]:
            raise InputError(f"the rewards R have shape {reward.shape}, expected {shape[:2]}.")
        if not np.isfinite(reward).all() or reward.min() < 0.0 or reward.max() > 1.0:
            raise InputError(
                f"the rewards R span [{reward.min():.3g}, {reward.max():.3g}], expected finite and within [0, 1]: "
                "scale them first."
            )
        object.__setattr__(self, "P", check_distributions("the transition matrix P", self.P, shape))
        object.__setattr__(self, "R", reward)
        object.__setattr__(self, "gamma", check_discount(self.gamma))
        object.__setattr__(self, "d0", check_distributions("the initial distribution d_0", self.d0, shape[:1]))

    @property
    def states(self) -> int:
        return self.R.shape[0]

    @property
    def actions(self) -> int:
        return self.R.shape[1]

    @property
    def v_max(self) -> float:
        """The largest value a policy can have, 1/(1-γ)."""
        return 1.0 / (1.0 - self.gamma)


def check_policy(mdp: FiniteMDP, policy: Any, name: str = "the policy π") -> np.ndarray:
    """`policy` as float64, one distribution over actions per state."""
    return check_distributions(name, policy, (mdp.states, mdp.actions))


def state_transitions(model: Model, policy: Float[Any, "S A"]) -> Float[Any, "S S"]:
    """P_π(s, s') = Σ_a π(a|s) P(s'|s, a)."""
    return namespace(model.P, policy).einsum("sa,sax->sx", policy, model.P)


def policy_value(model: Model, policy: Float[Any, "S A"]) -> Float[Any, " S"]:
    """V^π = (I - γ P_π)^{-1} r_π, by one linear solve."""
    xp = namespace(model.P, policy)
    reward = (policy * model.R).sum(-1)
    return solve(xp.eye(reward.shape[0]) - model.gamma * state_transitions(model, policy), reward)


def action_value(model: Model, value: Float[Any, " S"]) -> Float[Any, "S A"]:
    """r(s, a) + γ Σ_{s'} P(s'|s, a) V(s'), one step of looking ahead."""
    return model.R + model.gamma * (model.P @ value)


def visitation(model: Model, policy: Float[Any, "S A"], start: Float[Any, " S"]) -> Float[Any, "S A"]:
    """Σ_t γ^t Pr_π(s_t = s, a_t = a | s_0 ~ start), so that Σ_t γ^t E_π[g(s_t, a_t)] is a plain inner product."""
    xp = namespace(model.P, policy, start)
    system = xp.eye(start.shape[0]) - model.gamma * state_transitions(model, policy).T
    return solve(system, start)[:, None] * policy


def occupancy(model: Model, policy: Float[Any, "S A"], start: Float[Any, " S"]) -> Float[Any, "S A"]:
    """The discounted state-action distribution d^π(s, a) = (1-γ) Σ_t γ^t Pr_π(s_t = s, a_t = a)."""
    return (1.0 - model.gamma) * visitation(model, policy, start)


def bellman_evaluation(model: Model, q: Float[Any, "S A"], policy: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """(B^π Q)(s, a) = r(s, a) + γ E_{s'}⟨Q(s', ·), π(·|s')⟩."""
    return action_value(model, (q * policy).sum(-1))


def bellman_optimality(model: Model, q: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """(B Q)(s, a) = r(s, a) + γ E_{s'} max_{a'} Q(s', a')."""
    return action_value(model, q.max(-1))


def greedy(q: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """The deterministic policy of the largest Q(s, ·), ties to the first action."""
    xp = namespace(q)
    return (xp.argmax(q, -1)[:, None] == xp.arange(q.shape[1])[None, :]) * xp.ones_like(q)


def optimality_fixed_point(
    model: Model, penalty: Float[Any, "S A"] | float = 0.0, floor: float | None = None, limit: int = 500
) -> Float[Any, "S A"]:
    """The fixed point Q = max{B Q - U, floor} of the (penalised, clipped) optimality operator of `model`.

    Found by policy iteration, each evaluation one linear solve, so it is exact up to rounding and takes a
    handful of steps. Clipping from below is an option to stop with the value `floor`: it is treated as one
    more action, which keeps the problem an MDP and the iteration finite.
    """
    xp = namespace(model.P, model.R, penalty)
    reward = model.R - penalty
    n_states, n_actions = reward.shape
    rows = xp.arange(n_states)
    stop_value = -1e300 if floor is None else floor

    def candidates(value: Any) -> Any:
        stop = xp.full((n_states, 1), stop_value)
        return xp.concatenate([reward + model.gamma * (model.P @ value), stop], axis=1)

    def evaluate(choice: Any) -> Any:
        stopped = choice == n_actions
        action = xp.minimum(choice, n_actions - 1)
        gain = xp.where(stopped, stop_value, reward[rows, action])
        follow = xp.where(stopped[:, None], 0.0, model.P[rows, action])
        return solve(xp.eye(n_states) - model.gamma * follow, gain)

    def improve(choice: Any) -> tuple[Any, Any]:
        options = candidates(evaluate(choice))
        best = xp.argmax(options, axis=1)
        better = options[rows, best] > options[rows, choice] + SWITCH_TOLERANCE
        return xp.where(better, best, choice), better.any()

    choice = xp.argmax(reward, axis=1)
    if xp is np:
        changed, steps = True, 0
        while changed and steps < limit:
            choice, changed = improve(choice)
            steps += 1
    else:
        import jax

        choice, _, _ = jax.lax.while_loop(
            lambda state: state[1] & (state[2] < limit),
            lambda state: (*improve(state[0]), state[2] + 1),
            (choice, xp.asarray(True), 0),
        )
    q = candidates(evaluate(choice))[:, :n_actions]
    return q if floor is None else xp.maximum(q, floor)


def optimal(model: Model) -> tuple[Float[Any, "S A"], Float[Any, "S A"]]:
    """(Q*, π*) of a model, by policy iteration."""
    q = optimality_fixed_point(model)
    return q, greedy(q)
