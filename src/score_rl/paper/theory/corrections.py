"""Where the paper's statements and their proofs disagree, each decided by a number.

Every function evaluates the printed version and the corrected one on one instance: the same MDP, the same data, the
same iterations k, the same annealing λ_k = α^k. `paper` and `ours` are violations: how far the version is from
holding, zero (up to rounding) if it holds. A statement with a constant in α may fail at one α and hold at another.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from score_rl.paper.theory.data import EmpiricalModel, draw_samples, empirical_model, transition_counts
from score_rl.paper.theory.decomposition import decompose, decompose_regularised
from score_rl.paper.theory.equivalence import LinearProblem, policy, random_problem
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, bellman_optimality, greedy, optimal, optimality_fixed_point, visitation
from score_rl.paper.theory.opo import Trajectory, improvement_along, run_opo
from score_rl.paper.theory.pessimism import pessimistic_value_iteration
from score_rl.paper.theory.rate import (
    divergence_to_behaviour,
    printed_proof_bound,
    total_weight,
    zeta,
)
from score_rl.paper.theory.regularised import kl, kl_from_logs, log_probabilities, regularised_optimum
from score_rl.paper.theory.uncertainty import epistemic_error, leave_one_out

SMALL_ETA = 1.0 / 200.0  # far below λ_0 = 1: what the theorem's own schedule comes to at K = 40,000 ζ


class Correction(NamedTuple):
    """One place of the paper, its version, the corrected one, and how far each is from holding."""

    where: str  # in words
    label: str  # of the equation, lemma or theorem in the paper's source
    printed: str
    corrected: str
    paper: float
    ours: float


class Instance(NamedTuple):
    """The random MDP that all corrections share, its optimal policy, a behaviour policy, and the annealing."""

    mdp: FiniteMDP
    pi_star: np.ndarray
    pi_0: np.ndarray
    alpha: float
    seed: int

    def data(self, size: int, draw: int = 0) -> EmpiricalModel:
        samples = draw_samples(self.mdp, self.pi_0, size, np.random.default_rng(self.seed + draw))
        return empirical_model(transition_counts(samples, self.mdp), self.mdp.R, self.mdp.gamma)

    def opo(self, steps: int, eta: float = 2.0) -> Trajectory:
        return run_opo(self.mdp, self.pi_0, self.alpha, steps, eta)


def instance(seed: int = 0, alpha: float = 0.5) -> Instance:
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(seed + 1), branching=3)
    return Instance(mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3), alpha, seed)


def centred(x: np.ndarray) -> np.ndarray:
    """Without the constant per state, which no policy sees."""
    return x - x.mean(-1, keepdims=True)


def span(x: np.ndarray) -> np.ndarray:
    """The largest minus the smallest over actions."""
    return x.max(-1) - x.min(-1)


def epistemic_error_in_decomposition(here: Instance) -> Correction:
    """ι = BQ̂ - B̂Q̂ makes the decomposition an identity only at a fixed point of B̂; value iteration stopped
    after two steps is not one. Of twenty small data sets the one on which the printed form is worst."""
    worst, ours = 0.0, 0.0
    for draw in range(20):
        estimate = here.data(50, draw)
        q = bellman_optimality(estimate, bellman_optimality(estimate, np.zeros_like(here.mdp.R)))
        pi_hat = greedy(q)
        terms = decompose(here.mdp, q, pi_hat, here.pi_star)
        iota = epistemic_error(here.mdp, estimate, q)
        along_star, along_hat = (visitation(here.mdp, pi, here.mdp.d0) for pi in (here.pi_star, pi_hat))
        printed = ((along_star - along_hat) * iota).sum() + terms.optimisation_error
        if abs(float(printed - terms.suboptimality)) > worst:
            worst = abs(float(printed - terms.suboptimality))
            ours = abs(float(terms.total - terms.suboptimality))
    return Correction(
        "what ι is",
        "eq. epistemic_error, suboptimality",
        "ι = BQ̂ - B̂Q̂ for any Q̂",
        "ι = B^π̂ Q̂ - Q̂ (equal if Q̂ = B̂Q̂, π̂ greedy)",
        worst,
        ours,
    )


def clip_of_the_pessimistic_operator(here: Instance) -> Correction:
    """‖Q_k‖_∞ ≤ 1/(1-γ) fails for B̂Q - U; it holds once the operator is clipped at zero."""
    estimate = here.data(500)
    width = leave_one_out(estimate.visits, here.mdp.gamma, 0.1)
    printed = optimality_fixed_point(estimate, penalty=width)
    clipped, _ = pessimistic_value_iteration(estimate, width)
    return Correction(
        "range of pessimistic values",
        "eq. bellman, q-bound",
        "B̂⁻Q = B̂Q - U, ‖Q_k‖ ≤ 1/(1-γ)",
        "B̂⁻Q = max{B̂Q - U, 0}",
        max(float(np.abs(printed).max()) - here.mdp.v_max, 0.0),
        max(float(np.abs(clipped).max()) - here.mdp.v_max, 0.0),
    )


def sign_of_the_log_partition(here: Instance) -> Correction:
    """log(π_φ/π_0) = (φ - φ_0)ᵀψ - Z_φ + Z_{φ_0}: the paper's first line of "kl1" has the signs of Z reversed."""
    problem: LinearProblem = random_problem(np.random.default_rng(here.seed))
    phi = problem.phi_k
    truth = np.log(policy(problem, phi) / policy(problem, problem.phi_0))
    inner = problem.psi @ (phi - problem.phi_0)
    partition = [np.log(np.exp(problem.psi @ p).sum(-1, keepdims=True)) for p in (phi, problem.phi_0)]
    difference = partition[0] - partition[1]
    return Correction(
        "log of a ratio of policies",
        "eq. kl1",
        "(φ-φ_0)ᵀψ + Z_φ - Z_φ0",
        "(φ-φ_0)ᵀψ - Z_φ + Z_φ0",
        float(np.abs(inner + difference - truth).max()),
        float(np.abs(inner - difference - truth).max()),
    )


def curvature_in_the_lemma(here: Instance) -> Correction:
    """Lemma reg-decomp is an equality only with -λ_k Σ_t γ^t E_π*[KL(π* ‖ π_k)] added."""
    k = 2
    trajectory = here.opo(k + 1)
    terms = decompose_regularised(
        here.mdp, trajectory.q[k], trajectory.log_policies[k], here.pi_star, here.pi_0, here.alpha**k
    )
    return Correction(
        "regularised decomposition",
        "lemma reg-decomp",
        "equality without a KL term",
        "… - λ_k Σ γ^t E_π*[KL(π* ‖ π_k)]",
        abs(float(terms.total - terms.curvature - terms.suboptimality)),
        abs(float(terms.total - terms.suboptimality)),
    )


def pessimism_lemma_operator(here: Instance) -> Correction:
    """Lemma pess writes ι_k = BQ_k - B̂Q_k, which is negative as often as not; 0 ≤ ι_k needs B̂⁻ in place of B̂."""
    estimate = here.data(20_000)
    width = leave_one_out(estimate.visits, here.mdp.gamma, 0.1)
    q, _ = pessimistic_value_iteration(estimate, width)
    printed = epistemic_error(here.mdp, estimate, q)
    iota = bellman_optimality(here.mdp, q) - q
    return Correction(
        "sign of ι under pessimism",
        "lemma pess",
        "0 ≤ BQ_k - B̂Q_k",
        "0 ≤ BQ_k - B̂⁻Q_k",
        max(-float(printed.min()), 0.0),
        max(-float(iota.min()), 0.0),
    )


def moving_comparator(here: Instance) -> Correction:
    """Σ_k KL(π_k^* ‖ π_k) - KL(π_k^* ‖ π_{k+1}) exceeds KL(π_0^* ‖ π_0): π_k^* moves with k.

    With one fixed π* it telescopes to at most KL(π* ‖ π_0); the price is C Σ_k λ_k/K.
    """
    steps = 20
    logs = here.opo(steps).log_policies
    optima = [regularised_optimum(here.mdp, here.pi_0, here.alpha**k)[1] for k in range(steps)]
    moving = sum(
        kl_from_logs(log_probabilities(best), a) - kl_from_logs(log_probabilities(best), b)
        for best, (a, b) in zip(optima, itertools.pairwise(logs), strict=True)
    )
    star = log_probabilities(here.pi_star)
    fixed = sum(kl_from_logs(star, a) - kl_from_logs(star, b) for a, b in itertools.pairwise(logs))
    return Correction(
        "telescoping in the theorem's proof",
        "eq. jjj1, jjj2",
        "π* of V_k^* is π_k^*, yet KLs telescope",
        "one fixed π*, plus C Σ λ_k / K",
        max(float((moving - kl(optima[0], here.pi_0)).max()), 0.0),
        max(float((fixed - kl(here.pi_star, here.pi_0)).max()), 0.0),
    )


def recursion_of_the_log_ratio(here: Instance) -> Correction:
    """Equation "re1" has +λ_i and no (η_i + λ_i)^{-1}; the update gives F_{i+1} - F_i = (Q_i - λ_i F_i)/(η_i + λ_i)."""
    steps, eta = 8, 2.0
    trajectory = here.opo(steps, eta)
    ratios = trajectory.log_policies - trajectory.log_policies[0]
    terms = list(zip(trajectory.q, trajectory.lambdas, ratios[:-1], strict=True))
    printed = sum(centred(q + weight * f) for q, weight, f in terms)
    right = sum(centred(q - weight * f) for q, weight, f in terms) / eta
    truth = centred(ratios[-1])
    return Correction(
        "recursion of log π_k/π_0",
        "eq. re1",
        "Σ (Q_i + λ_i log π_i/π_0)",
        "Σ (Q_i - λ_i log π_i/π_0) / (η_i + λ_i)",
        float(np.abs(printed - truth).max()),
        float(np.abs(right - truth).max()),
    )


def closed_form_of_the_log_ratio(here: Instance) -> Correction:
    """Equation "chara-log" at k = 1 and k = 2, with the sign ε_0 in it chosen as well as it can be.

    It gives λ_1 Q_0 at k = 1 and (λ_1(1 + ε_0 λ_2) + λ_2) Q_0 + λ_2 Q_1 at k = 2. The update gives Q_0/η and
    (1 - λ_1/η) Q_0/η + Q_1/η.
    """
    eta = 3.0
    trajectory = here.opo(2, eta)
    q = [centred(each) for each in trajectory.q]
    truth = [centred(each - trajectory.log_policies[0]) for each in trajectory.log_policies[1:]]
    one, two = here.alpha, here.alpha**2
    printed = [
        max(
            float(np.abs(one * q[0] - truth[0]).max()),
            float(np.abs((one * (1 + sign * two) + two) * q[0] + two * q[1] - truth[1]).max()),
        )
        for sign in (1, -1)
    ]
    right = [q[0] / eta, (1 - one / eta) * q[0] / eta + q[1] / eta]
    return Correction(
        "closed form of log π_k/π_0",
        "eq. chara-log",
        "Σ_i Q_i Σ_j λ_j (1 + …), λ_1 Q_0 at k = 1",
        "Σ_i (Q_i/η) Π_{i<j<k} (1 - λ_j/η)",
        min(printed),
        max(float(np.abs(a - b).max()) for a, b in zip(right, truth, strict=True)),
    )


def log_ratio_bound(spans: np.ndarray, eta: float) -> np.ndarray:
    """k max_{i<k} span(Q_i)/η for k = 1 … K, which span(log π_k/π_0) never exceeds if λ_j ≤ η; equal at k = 1."""
    return np.arange(1, len(spans) + 1) * np.maximum.accumulate(spans) / eta


def constant_of_the_log_bound(here: Instance, steps: int = 400) -> Correction:
    """The printed bound on ‖log π_k/π_0‖, up to constants per state, does not grow with k. The log-ratio does.

    The norm of the best constant per state is half the span. λ_k log(π_k/π_0) stays small only because k α^k does.
    """
    eta = 2.0
    trajectory = here.opo(steps, eta)
    spans = span(trajectory.log_policies[1:] - trajectory.log_policies[0]).max(-1)
    printed = here.alpha**4 / (1.0 - here.alpha) ** 4 * here.mdp.v_max
    bound = log_ratio_bound(span(trajectory.q).max(-1), eta)
    return Correction(
        "bound on log π_k/π_0",
        "eq. log-bound",
        "≤ α⁴(1-α)^{-4} / (1-γ)",
        "span log(π_k/π_0) ≤ k span(Q)/η",
        max(float(spans.max()) / 2.0 - printed, 0.0),
        max(float((spans - bound).max()), 0.0),
    )


def improvement_with_negative_eta(here: Instance) -> Correction:
    """With η_k + λ_k = √(ζ/K) as printed, K > ζ makes η_0 < 0 and Lemma pi fails; span(G_k)²/8η² holds always.

    Only the first iterations of the K are run: that is where λ_k > η_k + λ_k.
    """
    steps = round(zeta(here.mdp, here.pi_star, here.pi_0, here.alpha) / SMALL_ETA**2)
    eta = total_weight("stated", here.mdp, here.pi_star, here.pi_0, here.alpha, steps)
    lemma = improvement_along(here.opo(20, eta), here.pi_star, here.alpha, here.mdp.gamma)
    return Correction(
        "policy improvement under the theorem's η_k",
        "lemma pi",
        "(1 + λ_k α⁴(1-α)^{-4})² (1-γ)^{-2} / η²",
        "span(Q_k - λ_k log π_k/π_0)² / 8η²",
        max(float((lemma.remainder - lemma.paper[:, None]).max()), 0.0),
        max(float((lemma.remainder - lemma.bound).max()), 0.0),
    )


def step_size_of_the_theorem(here: Instance, steps: int = 4096) -> Correction:
    """The proof's bound ηC/K + c²/(η(1-γ)³) against the rate it promises, (1 + (1-γ)^{-3}) √(ζ/K), as an excess ratio.

    At η = c²√(K/ζ) the two are equal. At η = √(ζ/K) the bound grows like √K.
    """
    divergence = divergence_to_behaviour(here.mdp, here.pi_star, here.pi_0)
    promised = (1.0 + here.mdp.v_max**3) * math.sqrt(zeta(here.mdp, here.pi_star, here.pi_0, here.alpha) / steps)

    def excess(schedule: str) -> float:
        eta = total_weight(schedule, here.mdp, here.pi_star, here.pi_0, here.alpha, steps)
        return printed_proof_bound(divergence, here.alpha, here.mdp.gamma, steps, eta) / promised - 1.0

    return Correction(
        "step size of the theorem",
        "theorem main, end of its proof",
        "η_k + λ_k = √(ζ/K)",
        "η_k + λ_k = c²√(K/ζ), c = 1 + α⁴(1-α)^{-4}",
        abs(excess("stated")),
        abs(excess("corrected")),
    )


def all_corrections(seed: int = 0, alpha: float = 0.5) -> list[Correction]:
    """Every correction, in the paper's order."""
    here = instance(seed, alpha)
    return [
        epistemic_error_in_decomposition(here),
        clip_of_the_pessimistic_operator(here),
        sign_of_the_log_partition(here),
        curvature_in_the_lemma(here),
        pessimism_lemma_operator(here),
        moving_comparator(here),
        recursion_of_the_log_ratio(here),
        closed_form_of_the_log_ratio(here),
        constant_of_the_log_bound(here),
        improvement_with_negative_eta(here),
        step_size_of_the_theorem(here),
    ]
