"""The theorem's rate: its schedules of λ_k and η_k, its ζ, and the bound that the algebra supports.

Lemma "Policy Improvement" in the exact form of `opo` reads, with G_k = Q_k - λ_k log(π_k/π_0) and η = η_k + λ_k,

    (1/η) ⟨G_k, π* - π_k⟩ ≤ KL(π* ‖ π_k) - KL(π* ‖ π_{k+1}) + span(G_k)² / 8η².

Sum over k with one fixed comparator π* (the optimal policy of the plain MDP: the per-k optima π_k^* of the paper
do not telescope), weigh by the visitation of π*, drop -λ_k KL(π* ‖ π_k) ≤ 0 and the last KL:

    (1/K) Σ_k (V_k^{π*} - V_k^{π_k}) ≤ η C/K + (1/K) Σ_k span(G_k)² / (8 η (1-γ)) + ε_Pess,
    C = Σ_t γ^t E_π*[KL(π* ‖ π_0)],

and V_k^* ≤ V^* = V_k^{π*} + λ_k C, V^* that of the plain MDP, adds at most C Σ_k λ_k/K ≤ C/((1-α)K) for the paper's
gap to V_k^*. The first two terms balance at η ∝ √K, never at η ∝ 1/√K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import unknown_name
from score_rl.paper.theory.data import EmpiricalModel
from score_rl.paper.theory.mdp import FiniteMDP, optimal, visitation
from score_rl.paper.theory.opo import check_opo, opo_iteration, regularised_optima
from score_rl.paper.theory.precision import double_precision, to_numpy
from score_rl.paper.theory.regularised import kl
from score_rl.paper.theory.uncertainty import uniform


def divergence_to_behaviour(mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray) -> float:
    """C = Σ_t γ^t E_π*[KL(π*(·|s_t) ‖ π_0(·|s_t))]."""
    return float((visitation(mdp, pi_star, mdp.d0).sum(-1) * kl(pi_star, pi_0)).sum())


def zeta(mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray, alpha: float) -> float:
    """The theorem's ζ = (1 + α⁴(1-α)^{-4})² C."""
    return (1.0 + alpha**4 / (1.0 - alpha) ** 4) ** 2 * divergence_to_behaviour(mdp, pi_star, pi_0)


SCHEDULES = ("stated", "inverse", "balanced")


def total_weight(schedule: str, mdp: FiniteMDP, pi_star: Any, pi_0: Any, alpha: float, steps: int) -> float:
    """η = η_k + λ_k for K = steps iterations.

    stated    √(ζ/K), as the theorem prints it: below λ_0 = 1 for K > ζ, so that η_0 < 0.
    inverse   √(K/ζ), its inverse: what the proof's last step needs for the rate √(ζ/K).
    balanced  √(K G/C) with G = 1/(8(1-γ)³): minimises ηC/K + G/η, for the rate (1-γ)^{-3/2} √(C/2K).
    """
    z = zeta(mdp, pi_star, pi_0, alpha)
    if schedule == "stated":
        return math.sqrt(z / steps)
    if schedule == "inverse":
        return math.sqrt(steps / z)
    if schedule == "balanced":
        divergence = divergence_to_behaviour(mdp, pi_star, pi_0)
        return math.sqrt(steps / (8.0 * (1.0 - mdp.gamma) ** 3 * divergence))
    raise unknown_name("schedule", schedule, SCHEDULES)


def rate_bound(mdp: FiniteMDP, pi_star: Any, pi_0: Any, alpha: float, steps: int, eta: float) -> float:
    """The derived bound on AveSubOptGap(K) without ε_Pess, known before the first iteration.

    span(Q_k) ≤ (1 + γ λ_k L_k)/(1-γ) with KL(π_k ‖ π_0) ≤ L_k = min(span F_k, log 1/min π_0), and the recursion
    of F_k gives span F_{k+1} ≤ span(Q_k)/η + |1 - λ_k/η| span F_k; so span(G_k) ≤ span Q_k + λ_k span F_k.
    """
    divergence = divergence_to_behaviour(mdp, pi_star, pi_0)
    support = -math.log(float(np.min(pi_0)))
    span_f, squares = 0.0, 0.0
    for k in range(steps):
        weight = alpha**k
        span_q = (1.0 + mdp.gamma * weight * min(span_f, support)) / (1.0 - mdp.gamma)
        squares += (span_q + weight * span_f) ** 2
        span_f = span_q / eta + abs(1.0 - weight / eta) * span_f
        if not math.isfinite(squares) or span_f > 1e150:
            return math.inf
    annealing = divergence * (1.0 - alpha**steps) / ((1.0 - alpha) * steps)
    return eta * divergence / steps + squares / steps / (8.0 * eta * (1.0 - mdp.gamma)) + annealing


class Gaps(NamedTuple):
    """SubOptGap(K), AveSubOptGap(K) and the plain gap of the last policy, for runs of different lengths K."""

    smallest: np.ndarray
    average: np.ndarray
    last_plain: np.ndarray


def gaps_against_iterations(
    mdp: FiniteMDP,
    pi_0: np.ndarray,
    alpha: float,
    lengths: Sequence[int],
    etas: Sequence[float],
    estimate: EmpiricalModel | None = None,
    widths: np.ndarray | None = None,
) -> Gaps:
    """One run of OPO per pair (K, η), all in one program: each goes to the longest K and is read at its own."""
    steps = max(lengths)
    pi_0 = check_opo(mdp, pi_0, alpha, steps, min(etas))
    lambdas = alpha ** np.arange(steps)
    with double_precision():
        import jax
        import jax.numpy as jnp

        inputs = jnp.asarray(lambdas), jnp.zeros((steps, 1, 1)) if widths is None else jnp.asarray(widths)

        def run(eta: Any) -> Any:
            def step(energy: Any, x: Any) -> Any:
                new, iterate = opo_iteration(mdp, pi_0, energy, x[0], eta, estimate, x[1])
                return new, (iterate.value, iterate.plain)

            return jax.lax.scan(step, jnp.log(pi_0), inputs)[1]

        values, plains = to_numpy(jax.jit(jax.vmap(run))(jnp.asarray(etas, dtype=jnp.float64)))
    best = float(mdp.d0 @ optimal(mdp)[0].max(-1))
    gaps = regularised_optima(mdp, pi_0, alpha, steps)[None] - values
    return Gaps(
        np.array([gap[:k].min() for gap, k in zip(gaps, lengths, strict=True)]),
        np.array([gap[:k].mean() for gap, k in zip(gaps, lengths, strict=True)]),
        np.array([best - plain[k - 1] for plain, k in zip(plains, lengths, strict=True)]),
    )


def pessimistic_widths(
    visits: Float[np.ndarray, "S A"], pi_0: np.ndarray, gamma: float, xi: float, lambdas: np.ndarray
) -> Float[np.ndarray, "K S A"]:
    """U_k: the uniform quantifier for values in an interval of length (1 + λ_k ℓ)/(1-γ), ℓ = log 1/min π_0.

    One event, that of the uniform quantifier, covers all k ∈ [K] at once, as Assumption "Pessimistic Q-Functions"
    asks, although every Q_k is computed from the same data.
    """
    support = -math.log(float(np.min(pi_0)))
    return np.stack([uniform(visits, gamma, xi, (1.0 + weight * support) / (1.0 - gamma)) for weight in lambdas])
