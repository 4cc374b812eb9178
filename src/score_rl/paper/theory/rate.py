"""The theorem's rate: its schedules of λ_k and η_k, its ζ, and the bound that the algebra supports.

Lemma "Policy Improvement" in the exact form of `opo` reads, with G_k = Q_k - λ_k log(π_k/π_0) and η = η_k + λ_k,

    (1/η) ⟨G_k, π* - π_k⟩ ≤ KL(π* ‖ π_k) - KL(π* ‖ π_{k+1}) + span(G_k)² / 8η².

Sum over k with one fixed comparator π* (the optimal policy of the plain MDP: the per-k optima π_k^* of the paper
do not telescope), weigh by the visitation of π*, drop -λ_k KL(π* ‖ π_k) ≤ 0 and the last KL:

    (1/K) Σ_k (V_k^{π*} - V_k^{π_k}) ≤ η C/K + (1/K) Σ_k span(G_k)² / (8 η (1-γ)) + ε_Pess,
    C = Σ_t γ^t E_π*[KL(π* ‖ π_0)],

and V_k^* ≤ V^* = V_k^{π*} + λ_k C, V^* that of the plain MDP, adds at most C Σ_k λ_k/K ≤ C/((1-α)K) for the paper's
gap to V_k^*. The first two terms balance at η ∝ √K, never at η ∝ 1/√K.

How far Q_k(s, ·) spans. Values are at most 1/(1-γ). They reach below zero by the KL penalty alone:

    exact Q_k        V_k^{π_k} ≥ -λ_k L_k/(1-γ) where KL(π_k ‖ π_0) ≤ L_k = min(span F_k, ℓ) in every state,
    Q_k from data    clipped at -γ λ_k ℓ/(1-γ), whatever π_k is, with ℓ = log 1/min π_0.

So span(Q_k) ≤ (1 + γ λ_k L)/(1-γ) with L = L_k for exact Q_k, and with L = ℓ for Q_k from data: there a width U can
press a value down to the floor while π_k is still π_0 and L_k = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import unknown_name
from score_rl.paper.theory.data import EmpiricalModel
from score_rl.paper.theory.mdp import FiniteMDP, optimal, visitation
from score_rl.paper.theory.opo import check_annealing, check_opo, opo_iteration, overflow, regularised_optima
from score_rl.paper.theory.precision import double_precision, to_numpy
from score_rl.paper.theory.regularised import kl
from score_rl.paper.theory.uncertainty import uniform


def divergence_to_behaviour(mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray) -> float:
    """C = Σ_t γ^t E_π*[KL(π*(·|s_t) ‖ π_0(·|s_t))]."""
    return float((visitation(mdp, pi_star, mdp.d0).sum(-1) * kl(pi_star, pi_0)).sum())


def annealing_constant(alpha: float) -> float:
    """c² = (1 + α⁴(1-α)^{-4})², the factor of the theorem's ζ: 4 at α = 0.5, and 1e11 at α = 0.96."""
    alpha = check_annealing(alpha)
    return (1.0 + alpha**4 / (1.0 - alpha) ** 4) ** 2


def zeta(mdp: FiniteMDP, pi_star: np.ndarray, pi_0: np.ndarray, alpha: float) -> float:
    """The theorem's ζ = c² C."""
    return annealing_constant(alpha) * divergence_to_behaviour(mdp, pi_star, pi_0)


SCHEDULES = ("stated", "inverse", "corrected", "balanced")


def total_weight(schedule: str, mdp: FiniteMDP, pi_star: Any, pi_0: Any, alpha: float, steps: int) -> float:
    """η = η_k + λ_k for K = steps iterations. The lemma as printed needs η_k ≥ 0 for all k, that is η ≥ λ_0 = 1.

    stated     √(ζ/K), as the theorem prints it: η ≥ 1 only for K ≤ ζ.
    inverse    √(K/ζ), its inverse, with the right power of K: η ≥ 1 for K ≥ ζ.
    corrected  c²√(K/ζ), which minimises the proof's own ηC/K + c²/η and gives it the rate √(ζ/K): η ≥ 1 for K ≥ C/c².
    balanced   √(K G/C) with G = 1/(8(1-γ)³): minimises ηC/K + G/η, for the rate (1-γ)^{-3/2} √(C/2K); η ≥ 1 for
               K ≥ 8(1-γ)³C.
    """
    z, divergence = zeta(mdp, pi_star, pi_0, alpha), divergence_to_behaviour(mdp, pi_star, pi_0)
    if schedule == "stated":
        return math.sqrt(z / steps)
    if schedule == "inverse":
        return math.sqrt(steps / z)
    if schedule == "corrected":
        return annealing_constant(alpha) * math.sqrt(steps / z)
    if schedule == "balanced":
        return math.sqrt(steps / (8.0 * (1.0 - mdp.gamma) ** 3 * divergence))
    raise unknown_name("schedule", schedule, SCHEDULES)


def steps_with_weight_one(schedule: str, mdp: FiniteMDP, pi_star: Any, pi_0: Any, alpha: float) -> float:
    """The K at which η = 1: η_k ≥ 0 for all larger K, and for all smaller ones with the schedule as stated."""
    at_one = total_weight(schedule, mdp, pi_star, pi_0, alpha, 1)
    return at_one**2 if schedule == "stated" else at_one**-2


def printed_proof_bound(divergence: float, alpha: float, gamma: float, steps: int, eta: float) -> float:
    """ηC/K + η^{-1} c² (1-γ)^{-3}: what the paper's proof has before it chooses η (equation "jjj2")."""
    return eta * divergence / steps + annealing_constant(alpha) / (eta * (1.0 - gamma) ** 3)


def span_bounds(
    gamma: float, alpha: float, steps: int, eta: float, support: float, *, from_data: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on (span Q_k, span G_k) over k < K; `support` is ℓ = log 1/min π_0.

    The recursion of F_k gives span F_{k+1} ≤ span(Q_k)/η + |1 - λ_k/η| span F_k, and span G_k ≤ span Q_k + λ_k span F_k
    is immediate. Infinite where η < 1 lets the energies grow beyond what float64 can hold the square of.
    """
    spans_q, spans_g = np.full(steps, np.inf), np.full(steps, np.inf)
    span_f = 0.0
    for k in range(steps):
        weight = alpha**k
        divergence = support if from_data else min(span_f, support)
        spans_q[k] = (1.0 + gamma * weight * divergence) / (1.0 - gamma)
        spans_g[k] = spans_q[k] + weight * span_f
        span_f = spans_q[k] / eta + abs(1.0 - weight / eta) * span_f
        if span_f > 1e150:
            spans_g[k:] = np.inf
            break
    return spans_q, spans_g


def rate_bound(
    mdp: FiniteMDP, pi_star: Any, pi_0: Any, alpha: float, steps: int, eta: float, *, from_data: bool = False
) -> float:
    """The derived bound on AveSubOptGap(K) without ε_Pess, known before the first iteration.

    `from_data` says that Q_k is the pessimistic estimator of `opo_iteration`, which reaches further down.
    """
    divergence = divergence_to_behaviour(mdp, pi_star, pi_0)
    support = -math.log(float(np.min(pi_0)))
    _, spans = span_bounds(mdp.gamma, alpha, steps, eta, support, from_data=from_data)
    annealing = divergence * (1.0 - alpha**steps) / ((1.0 - alpha) * steps)
    squares = float((spans**2).mean()) if np.isfinite(spans).all() else math.inf
    return eta * divergence / steps + squares / (8.0 * eta * (1.0 - mdp.gamma)) + annealing


class Gaps(NamedTuple):
    """SubOptGap(K), AveSubOptGap(K) and the plain gap of the last policy, for runs of different lengths K.

    NaN in a run whose energies left float64, which an η far below 1 brings about.
    """

    smallest: np.ndarray
    average: np.ndarray
    last_plain: np.ndarray

    @property
    def overflowed(self) -> np.ndarray:
        return np.isnan(self.average)


@lru_cache(maxsize=4)
def _program(mdp: FiniteMDP, behaviour: bytes) -> Any:
    """OPO for many rows of total weights at once: compiled once for a problem, whatever its data and α are."""
    import jax

    pi_0 = np.frombuffer(behaviour).reshape(mdp.R.shape)

    def run(total: Any, lambdas: Any, widths: Any, estimate: EmpiricalModel | None) -> Any:
        def step(energy: Any, x: Any) -> Any:
            new, iterate = opo_iteration(mdp, pi_0, energy, x[0], x[2], estimate, x[1])
            return new, (iterate.value, iterate.plain)

        return jax.lax.scan(step, jax.numpy.log(pi_0), (lambdas, widths, total))[1]

    return jax.jit(jax.vmap(run, in_axes=(0, None, None, None)))


def gaps_against_iterations(
    mdp: FiniteMDP,
    pi_0: np.ndarray,
    alpha: float,
    lengths: Sequence[int],
    etas: Sequence[float] | Float[np.ndarray, "runs K"],
    estimate: EmpiricalModel | None = None,
    widths: np.ndarray | None = None,
    *,
    allow_overflow: bool = False,
) -> Gaps:
    """One run of OPO per pair (K, η), all in one program: each goes to the longest K and is read at its own.

    η may also differ by iteration, as rows of an array. A run that overflows is refused unless it is allowed to.
    """
    steps = max(lengths)
    totals = np.asarray(etas, dtype=np.float64)
    totals = np.repeat(totals[:, None], steps, axis=1) if totals.ndim == 1 else totals
    pi_0 = check_opo(mdp, pi_0, alpha, steps, float(totals.min()))
    widths = np.zeros((steps, 1, 1)) if widths is None else widths
    with double_precision():
        program = _program(mdp, pi_0.tobytes())
        values, plains = to_numpy(program(totals, alpha ** np.arange(steps), widths, estimate))
    best = float(mdp.d0 @ optimal(mdp)[0].max(-1))
    gaps = regularised_optima(mdp, pi_0, alpha, steps)[None] - values
    found = Gaps(
        np.array([gap[:k].min() for gap, k in zip(gaps, lengths, strict=True)]),
        np.array([gap[:k].mean() for gap, k in zip(gaps, lengths, strict=True)]),
        np.array([best - plain[k - 1] for plain, k in zip(plains, lengths, strict=True)]),
    )
    if found.overflowed.any() and not allow_overflow:
        run_of = int(np.argmax(found.overflowed))
        raise overflow(float(totals[run_of, 0]), lengths[run_of])
    return found


def pessimistic_widths(
    visits: Float[np.ndarray, "S A"], pi_0: np.ndarray, gamma: float, xi: float, lambdas: np.ndarray
) -> Float[np.ndarray, "K S A"]:
    """U_k: the uniform quantifier for values in an interval of length (1 + λ_k ℓ)/(1-γ), ℓ = log 1/min π_0.

    One event, that of the uniform quantifier, covers all k ∈ [K] at once, as Assumption "Pessimistic Q-Functions"
    asks, although every Q_k is computed from the same data.
    """
    support = -math.log(float(np.min(pi_0)))
    return np.stack([uniform(visits, gamma, xi, (1.0 + weight * support) / (1.0 - gamma)) for weight in lambdas])


def pessimistic_errors(
    mdp: FiniteMDP, pi_star: np.ndarray, widths: Float[np.ndarray, "K S A"]
) -> Float[np.ndarray, " K"]:
    """Σ_t 2γ^t E_{π*}[U_k(s_t, a_t)] for every k; ε_Pess is their mean over k < K."""
    return np.array(2.0 * np.einsum("sa,ksa->k", visitation(mdp, pi_star, mdp.d0), widths))
