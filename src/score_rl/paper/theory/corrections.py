"""Where the paper's statements and their proofs disagree, each decided by a number.

Every function evaluates the paper's version and the corrected one on the same instance. `paper` and `corrected`
are violations: how far the version is from holding, zero (up to rounding) if it holds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from score_rl.paper.theory.data import draw_samples, empirical_model, transition_counts
from score_rl.paper.theory.decomposition import decompose, decompose_regularised
from score_rl.paper.theory.equivalence import LinearProblem, policy, random_problem
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, bellman_optimality, greedy, optimal, optimality_fixed_point, visitation
from score_rl.paper.theory.opo import improvement_along, run_opo
from score_rl.paper.theory.pessimism import pessimistic_value_iteration
from score_rl.paper.theory.rate import divergence_to_behaviour, total_weight, zeta
from score_rl.paper.theory.regularised import kl, log_ratio, regularised_optimum
from score_rl.paper.theory.uncertainty import epistemic_error, leave_one_out


class Correction(NamedTuple):
    """One place of the paper, its version, the corrected one, and how far each is from holding."""

    where: str
    printed: str
    corrected: str
    paper: float
    ours: float


def _instance(seed: int) -> tuple[FiniteMDP, np.ndarray, np.ndarray]:
    """A random MDP, its optimal policy and a behaviour policy."""
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(seed + 1), branching=3)
    return mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3)


def epistemic_error_in_decomposition(seed: int = 0) -> Correction:
    """ι = BQ̂ - B̂Q̂ makes the decomposition an identity only at a fixed point of B̂; value iteration stopped
    after two steps is not one. The worst of twenty small data sets."""
    mdp, pi_star, behaviour = _instance(seed)
    paper, ours = 0.0, 0.0
    for draw in range(20):
        samples = draw_samples(mdp, behaviour, 50, np.random.default_rng(seed + draw))
        estimate = empirical_model(transition_counts(samples, mdp), mdp.R, mdp.gamma)
        q = bellman_optimality(estimate, bellman_optimality(estimate, np.zeros_like(mdp.R)))
        pi_hat = greedy(q)
        terms = decompose(mdp, q, pi_hat, pi_star)
        iota = epistemic_error(mdp, estimate, q)
        along_star, along_hat = visitation(mdp, pi_star, mdp.d0), visitation(mdp, pi_hat, mdp.d0)
        printed = ((along_star - along_hat) * iota).sum() + terms.optimisation_error
        paper = max(paper, abs(float(printed - terms.suboptimality)))
        ours = max(ours, abs(float(terms.total - terms.suboptimality)))
    return Correction(
        "equations epistemic_error, suboptimality",
        "ι = BQ̂ - B̂Q̂ for any Q̂",
        "ι = B^π̂ Q̂ - Q̂ (equal if Q̂ = B̂Q̂, π̂ greedy)",
        paper,
        ours,
    )


def clip_of_the_pessimistic_operator(seed: int = 0) -> Correction:
    """‖Q_k‖_∞ ≤ 1/(1-γ) fails for B̂Q - U; it holds once the operator is clipped at zero."""
    mdp, _, behaviour = _instance(seed)
    samples = draw_samples(mdp, behaviour, 500, np.random.default_rng(seed))
    estimate = empirical_model(transition_counts(samples, mdp), mdp.R, mdp.gamma)
    width = leave_one_out(estimate.visits, mdp.gamma, 0.1)
    printed = optimality_fixed_point(estimate, penalty=width)
    clipped, _ = pessimistic_value_iteration(estimate, width)
    return Correction(
        "equations bellman, q-bound",
        "B̂⁻Q = B̂Q - U, ‖Q_k‖ ≤ 1/(1-γ)",
        "B̂⁻Q = max{B̂Q - U, 0}",
        max(float(np.abs(printed).max()) - mdp.v_max, 0.0),
        max(float(np.abs(clipped).max()) - mdp.v_max, 0.0),
    )


def sign_of_the_log_partition(seed: int = 0) -> Correction:
    """log(π_φ/π_0) = (φ - φ_0)ᵀψ - Z_φ + Z_{φ_0}: the paper's first line of "kl1" has the signs of Z reversed."""
    problem: LinearProblem = random_problem(np.random.default_rng(seed))
    phi = problem.phi_k
    truth = log_ratio(policy(problem, phi), policy(problem, problem.phi_0))
    inner = problem.psi @ (phi - problem.phi_0)
    partition = [np.log(np.exp(problem.psi @ p).sum(-1, keepdims=True)) for p in (phi, problem.phi_0)]
    difference = partition[0] - partition[1]
    return Correction(
        "equation kl1",
        "(φ-φ_0)ᵀψ + Z_φ - Z_φ0",
        "(φ-φ_0)ᵀψ - Z_φ + Z_φ0",
        float(np.abs(inner + difference - truth).max()),
        float(np.abs(inner - difference - truth).max()),
    )


def curvature_in_the_lemma(seed: int = 0) -> Correction:
    """Lemma reg-decomp is an equality only with -λ_k Σ_t γ^t E_π*[KL(π* ‖ π_k)] added."""
    mdp, pi_star, pi_0 = _instance(seed)
    trajectory = run_opo(mdp, pi_0, 0.5, 4, 2.0)
    terms = decompose_regularised(mdp, trajectory.q[2], trajectory.policies[2], pi_star, pi_0, 0.25)
    return Correction(
        "lemma reg-decomp",
        "equality without a KL term",
        "… - λ_k Σ γ^t E_π*[KL(π* ‖ π_k)]",
        abs(float(terms.total - terms.curvature - terms.suboptimality)),
        abs(float(terms.total - terms.suboptimality)),
    )


def moving_comparator(seed: int = 0) -> Correction:
    """Σ_k KL(π_k^* ‖ π_k) - KL(π_k^* ‖ π_{k+1}) exceeds KL(π_0^* ‖ π_0): π_k^* moves with k.

    With one fixed π* it telescopes to at most KL(π* ‖ π_0); the price is C Σ_k λ_k/K.
    """
    mdp, pi_star, pi_0 = _instance(seed)
    steps, alpha = 20, 0.5
    trajectory = run_opo(mdp, pi_0, alpha, steps, 2.0)
    optima = [regularised_optimum(mdp, pi_0, alpha**k)[1] for k in range(steps)]
    pairs = list(zip(trajectory.policies[:-1], trajectory.policies[1:], strict=True))
    moving = sum(kl(best, a) - kl(best, b) for best, (a, b) in zip(optima, pairs, strict=True))
    fixed = sum(kl(pi_star, a) - kl(pi_star, b) for a, b in pairs)
    return Correction(
        "equations jjj1 to jjj2",
        "π* of V_k^* is π_k^*, yet KLs telescope",
        "one fixed π*, plus C Σ λ_k / K",
        max(float((moving - kl(optima[0], pi_0)).max()), 0.0),
        max(float((fixed - kl(pi_star, pi_0)).max()), 0.0),
    )


def recursion_of_the_log_ratio(seed: int = 0) -> Correction:
    """Equation "re1" has +λ_i and no (η_i + λ_i)^{-1}; the update gives F_{i+1} - F_i = (Q_i - λ_i F_i)/(η_i + λ_i)."""
    mdp, _, pi_0 = _instance(seed)
    steps, eta = 8, 2.0
    trajectory = run_opo(mdp, pi_0, 0.5, steps, eta)

    def centred(x: np.ndarray) -> np.ndarray:
        return x - x.mean(-1, keepdims=True)

    ratios = [log_ratio(p, pi_0) for p in trajectory.policies]
    terms = list(zip(trajectory.q, trajectory.lambdas, ratios[:-1], strict=True))
    printed = sum(centred(q + weight * f) for q, weight, f in terms)
    right = sum(centred(q - weight * f) for q, weight, f in terms) / eta
    truth = centred(ratios[-1])
    return Correction(
        "equation re1",
        "Σ (Q_i + λ_i log π_i/π_0)",
        "Σ (Q_i - λ_i log π_i/π_0) / (η_i + λ_i)",
        float(np.abs(printed - truth).max()),
        float(np.abs(right - truth).max()),
    )


def closed_form_of_the_log_ratio(seed: int = 0) -> Correction:
    """Equation "chara-log" gives λ_1 Q_0 at k = 1, where the update gives Q_0/(η_0 + λ_0)."""
    mdp, _, pi_0 = _instance(seed)
    steps, eta, alpha = 6, 3.0, 0.5
    trajectory = run_opo(mdp, pi_0, alpha, steps, eta)

    def centred(x: np.ndarray) -> np.ndarray:
        return x - x.mean(-1, keepdims=True)

    weights = [math.prod(1.0 - alpha**j / eta for j in range(i + 1, steps)) / eta for i in range(steps)]
    right = centred(np.einsum("k,ksa->sa", np.array(weights), trajectory.q))
    first = centred(log_ratio(trajectory.policies[1], pi_0))
    return Correction(
        "equation chara-log",
        "Σ_i Q_i Σ_j λ_j (1 + …), λ_1 Q_0 at k = 1",
        "Σ_i (Q_i/η) Π_{i<j<k} (1 - λ_j/η)",
        float(np.abs(alpha * centred(trajectory.q[0]) - first).max()),
        float(np.abs(right - centred(log_ratio(trajectory.policies[steps], pi_0))).max()),
    )


def exponent_of_the_log_bound(alpha: float = 0.2) -> Correction:
    """The left side of "log-bound" is at least λ_1 ‖Q_0‖ = α V_max at k = 1; α⁴(1-α)^{-4} V_max is less for α < 0.45.

    For the corrected F_k the constant is k/η: span(F_k) ≤ k V/η if span(Q_i) ≤ V and λ_j ≤ η. Unlike the printed
    constant it grows with k, and λ_k F_k stays small only because k α^k does.
    """
    printed_left, printed_right = alpha, alpha**4 / (1.0 - alpha) ** 4
    eta, excess = 2.0, 0.0
    for k in range(1, 60):
        factors = [math.prod(1.0 - alpha**j / eta for j in range(i + 1, k)) / eta for i in range(k)]
        excess = max(excess, sum(factors) - k / eta)
    return Correction(
        "equation log-bound",
        "≤ α⁴(1-α)^{-4} / (1-γ)",
        "span log(π_k/π_0) ≤ k span(Q)/η",
        max(printed_left - printed_right, 0.0),
        max(excess, 0.0),
    )


def improvement_with_negative_eta(seed: int = 0, steps: int = 1_000_000) -> Correction:
    """With η_k + λ_k = √(ζ/K) as printed, K > ζ makes η_0 < 0 and Lemma pi fails; span(G_k)²/8η² holds always.

    Only the first iterations of the K are run: that is where λ_k > η_k + λ_k.
    """
    mdp, pi_star, pi_0 = _instance(seed)
    alpha = 0.5
    eta = total_weight("stated", mdp, pi_star, pi_0, alpha, steps)
    lemma = improvement_along(run_opo(mdp, pi_0, alpha, 20, eta), pi_star, alpha, mdp.gamma)
    return Correction(
        "lemma pi under the theorem's η_k",
        "(1 + λ_k α⁴(1-α)^{-4})² (1-γ)^{-2} / η²",
        "span(Q_k - λ_k log π_k/π_0)² / 8η²",
        max(float((lemma.remainder - lemma.paper[:, None]).max()), 0.0),
        max(float((lemma.remainder - lemma.bound).max()), 0.0),
    )


def weight_against_its_inverse(seed: int = 0, steps: int = 4096) -> Correction:
    """ηC/K + η^{-1}(1 + α⁴(1-α)^{-4})²(1-γ)^{-3} is not O((1-γ)^{-3} √(ζ/K)) at η = √(ζ/K): it grows like √K.

    Measured as the growth of the proof's own bound from K to 4K, against the factor 1/2 that the rate promises.
    """
    mdp, pi_star, pi_0 = _instance(seed)
    alpha = 0.5
    constant = (1.0 + alpha**4 / (1.0 - alpha) ** 4) ** 2 / (1.0 - mdp.gamma) ** 3
    divergence = divergence_to_behaviour(mdp, pi_star, pi_0)
    z = zeta(mdp, pi_star, pi_0, alpha)

    def bound(k: int, eta: float) -> float:
        return eta * divergence / k + constant / eta

    printed = bound(4 * steps, math.sqrt(z / (4 * steps))) / bound(steps, math.sqrt(z / steps))
    right = bound(4 * steps, math.sqrt(4 * steps / z)) / bound(steps, math.sqrt(steps / z))
    return Correction(
        "theorem main, last step of its proof",
        "η_k + λ_k = √(ζ/K)",
        "η_k + λ_k = √(K/ζ)",
        max(printed - 0.5, 0.0),
        max(right - 0.5, 0.0) if right > 0.5 + 1e-9 else 0.0,
    )


def pessimism_lemma_operator(seed: int = 0) -> Correction:
    """Lemma pess writes ι_k = BQ_k - B̂Q_k, which is negative as often as not; 0 ≤ ι_k needs B̂⁻ in place of B̂."""
    mdp, _, behaviour = _instance(seed)
    samples = draw_samples(mdp, behaviour, 20_000, np.random.default_rng(seed))
    estimate = empirical_model(transition_counts(samples, mdp), mdp.R, mdp.gamma)
    width = leave_one_out(estimate.visits, mdp.gamma, 0.1)
    q, _ = pessimistic_value_iteration(estimate, width)
    printed = epistemic_error(mdp, estimate, q)
    iota = bellman_optimality(mdp, q) - q
    return Correction(
        "lemma pess",
        "0 ≤ BQ_k - B̂Q_k",
        "0 ≤ BQ_k - B̂⁻Q_k",
        max(-float(printed.min()), 0.0),
        max(-float(iota.min()), 0.0),
    )


def all_corrections(seed: int = 0) -> list[Correction]:
    """Every correction, in the paper's order."""
    return [
        epistemic_error_in_decomposition(seed),
        clip_of_the_pessimistic_operator(seed),
        sign_of_the_log_partition(seed),
        curvature_in_the_lemma(seed),
        pessimism_lemma_operator(seed),
        moving_comparator(seed),
        recursion_of_the_log_ratio(seed),
        closed_form_of_the_log_ratio(seed),
        exponent_of_the_log_bound(),
        improvement_with_negative_eta(seed),
        weight_against_its_inverse(seed),
    ]
