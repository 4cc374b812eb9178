"""Regularised MDPs M_λ: the behaviour cloning term as a KL penalty against π_0 (the paper's section 3.3).

    V_λ^π(s) = E_π[ Σ_t γ^t (r(s_t, a_t) - λ log(π(a_t|s_t)/π_0(a_t|s_t))) | s_0 = s ],
    Q_λ^π    = r + γ P V_λ^π,      V_λ^π(s) = ⟨Q_λ^π(s, ·), π(·|s)⟩ - λ KL(π(·|s) ‖ π_0(·|s)).

The penalty is a reward that depends on the policy, so V_λ^π is one linear solve like V^π.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.mdp import FiniteMDP, Model, action_value, greedy, optimality_fixed_point, state_transitions
from score_rl.paper.theory.precision import namespace, solve


def log_probabilities(p: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """log p, -∞ where p is zero."""
    xp = namespace(p)
    return xp.where(p > 0, xp.log(xp.where(p > 0, p, 1.0)), -xp.inf)


def kl_from_logs(log_p: Float[Any, "S A"], log_q: Float[Any, "S A"]) -> Float[Any, " S"]:
    """KL(p(·|s) ‖ q(·|s)) per state, of two policies given as log-probabilities.

    A policy that comes from energies must be given like this. As probabilities it underflows to zero where its
    logarithm is below -745, and its divergence cannot be computed any more. Actions with p = 0 add nothing.
    """
    xp = namespace(log_p, log_q)
    p = xp.exp(log_p)
    return xp.where(p > 0, p * (xp.where(p > 0, log_p, 0.0) - xp.where(p > 0, log_q, 0.0)), 0.0).sum(-1)


def kl(p: Float[Any, "S A"], q: Float[Any, "S A"]) -> Float[Any, " S"]:
    """KL(p(·|s) ‖ q(·|s)) per state, of two policies whose zeros are meant: infinite where p > 0 = q."""
    return kl_from_logs(log_probabilities(p), log_probabilities(q))


def check_weight(weight: float) -> float:
    """λ ≥ 0 and finite."""
    if not 0.0 <= float(weight) < float("inf"):
        raise InputError(f"the regularisation parameter λ is {weight}, expected a finite number ≥ 0.")
    return float(weight)


def regularised_value(model: Model, pi: Float[Any, "S A"], pi_0: Float[Any, "S A"], weight: Any) -> Float[Any, " S"]:
    """V_λ^π = (I - γ P_π)^{-1} (r_π - λ KL(π ‖ π_0))."""
    xp = namespace(model.P, pi, weight)
    reward = (pi * model.R).sum(-1) - weight * kl(pi, pi_0)
    return solve(xp.eye(reward.shape[0]) - model.gamma * state_transitions(model, pi), reward)


def log_softmax(energy: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """log π(a|s) of π ∝ exp(f), shifted so that nothing overflows."""
    xp = namespace(energy)
    shifted = energy - energy.max(-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))


def softmax_policy(energy: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """π(a|s) ∝ exp(f(s, a))."""
    return namespace(energy).exp(log_softmax(energy))


def regularised_greedy(q: Float[Any, "S A"], pi_0: Float[Any, "S A"], weight: Any) -> Float[Any, "S A"]:
    """argmax_π ⟨Q, π⟩ - λ KL(π ‖ π_0) = π_0 exp(Q/λ) / normaliser, for λ > 0."""
    return softmax_policy(q / weight + log_probabilities(pi_0))


def regularised_optimum(
    mdp: FiniteMDP, pi_0: np.ndarray, weight: float, tolerance: float = 1e-13, limit: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """(V_λ^*, π_λ^*), the best value and policy of M_λ; λ = 0 gives the plain optimum.

    Policy iteration with exact evaluation. It is Newton's method on the regularised optimality equation
    V(s) = λ log Σ_a π_0(a|s) exp(Q(s, a)/λ), hence monotone, and quadratic near its end. It starts from the
    plain optimal policy's values, which is where λ → 0 ends.
    """
    weight = check_weight(weight)
    q = optimality_fixed_point(mdp)
    if weight == 0.0:
        return q.max(-1), greedy(q)
    value = np.full(mdp.states, -np.inf)
    for _ in range(limit):
        pi = regularised_greedy(q, pi_0, weight)
        new = regularised_value(mdp, pi, pi_0, weight)
        gain = float(np.abs(new - value).max()) if np.isfinite(value).all() else np.inf
        value, q = new, action_value(mdp, new)
        if gain <= tolerance * mdp.v_max:
            break
    return value, regularised_greedy(q, pi_0, weight)
