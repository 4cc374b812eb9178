"""Offline proximal optimisation (OPO), Theo-SCORE, and the theorem's rate.

OPO maximises ⟨Q_k - λ_k log(π/π_0), π⟩ - η_k KL(π ‖ π_k) state by state. The objective is strictly concave in π
whenever η = η_k + λ_k > 0, also for η_k < 0, and its maximiser is

    π_{k+1} ∝ exp{ (Q_k + η_k f_k + λ_k f_0) / (η_k + λ_k) },        f_k = log π_k up to a constant per state.

For F_k = log(π_k/π_0), up to constants per state, this is F_{k+1} = Q_k/η + (1 - λ_k/η) F_k, hence

    F_k = Σ_{i<k} (Q_i/η) Π_{i<j<k} (1 - λ_j/η),

which replaces the paper's equations "re1" and "chara-log". Theo-SCORE's objective is OPO's without the proximal
term: η_k = 0, π_{k+1} ∝ π_0 exp(Q_k/λ_k).

Lemma "Policy Improvement", exactly. Write G_k = Q_k - λ_k F_k. Since log(π_{k+1}/π_k) = G_k/η + const,

    (1/η) ⟨G_k, π - π_k⟩ = KL(π ‖ π_k) - KL(π ‖ π_{k+1}) + KL(π_k ‖ π_{k+1})      for every π, exactly, and
    KL(π_k ‖ π_{k+1}) ≤ span(G_k)² / 8η²                                          (Hoeffding's lemma).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.data import EmpiricalModel
from score_rl.paper.theory.mdp import (
    FiniteMDP,
    Model,
    action_value,
    check_policy,
    optimal,
    policy_value,
)
from score_rl.paper.theory.precision import namespace, solve
from score_rl.paper.theory.regularised import (
    kl_from_logs,
    log_softmax,
    regularised_optimum,
    regularised_value,
)


def opo_step(
    q_k: Float[Any, "S A"], f_k: Float[Any, "S A"], f_0: Float[Any, "S A"], eta_k: Any, lambda_k: Any
) -> Float[Any, "S A"]:
    """f_{k+1} = (Q_k + η_k f_k + λ_k f_0) / (η_k + λ_k), the energy of π_{k+1}, for η_k + λ_k > 0."""
    return (q_k + eta_k * f_k + lambda_k * f_0) / (eta_k + lambda_k)


class LemmaTerms(NamedTuple):
    """The two sides of Lemma "Policy Improvement" at every state, divided by η as the paper writes it."""

    left: Any  # (1/η) ⟨Q_k - λ_k log(π_k/π_0), π* - π_k⟩
    telescope: Any  # KL(π* ‖ π_k) - KL(π* ‖ π_{k+1})
    remainder: Any  # KL(π_k ‖ π_{k+1}): left = telescope + remainder, exactly
    bound: Any  # span(G_k)² / 8η², which the remainder never exceeds
    paper: Any  # the paper's (1 + λ_k α⁴(1-α)^{-4})² (1-γ)^{-2} / η²


def policy_improvement(
    q_k: Float[Any, "S A"],
    log_k: Float[Any, "S A"],
    log_next: Float[Any, "S A"],
    pi_star: Float[Any, "S A"],
    log_0: Float[Any, "S A"],
    eta: float,
    lambda_k: float,
    alpha: float,
    gamma: float,
) -> LemmaTerms:
    """Lemma "Policy Improvement" for one step π_k → π_{k+1} with η = η_k + λ_k; policies as log-probabilities,
    since probabilities underflow where η_k < 0 lets the energies grow."""
    pi_k = namespace(log_k).exp(log_k)
    advantage = q_k - lambda_k * (log_k - log_0)
    span = advantage.max(-1) - advantage.min(-1)
    return LemmaTerms(
        (advantage * (pi_star - pi_k)).sum(-1) / eta,
        (pi_star * (log_next - log_k)).sum(-1),
        (pi_k * (log_k - log_next)).sum(-1),
        span**2 / (8.0 * eta**2),
        paper_improvement_constant(alpha, lambda_k, gamma) / eta**2,
    )


def paper_improvement_constant(alpha: float, lambda_k: float, gamma: float) -> float:
    """(1 + λ_k α⁴(1-α)^{-4})² (1-γ)^{-2}, as printed."""
    return (1.0 + lambda_k * alpha**4 / (1.0 - alpha) ** 4) ** 2 / (1.0 - gamma) ** 2


def clipped_evaluation(
    model: Model, pi: Any, penalty: Any, state_reward: Any, floor: Any, limit: int = 60
) -> tuple[Any, Any]:
    """(Q, V) with Q = max{r + γ P V - U, floor} and V(s) = ⟨Q(s, ·), π(·|s)⟩ + state_reward(s).

    Newton's method on a convex piecewise linear equation: given which pairs are clipped it is one linear
    solve, and the set of clipped pairs settles after a few.
    """
    xp = namespace(model.P, pi, penalty)
    reward = model.R - penalty

    def evaluate(clipped: Any) -> Any:
        free = xp.where(clipped, 0.0, pi)
        gain = (free * reward).sum(-1) + (pi - free).sum(-1) * floor + state_reward
        follow = xp.einsum("sa,sax->sx", free, model.P)
        return solve(xp.eye(gain.shape[0]) - model.gamma * follow, gain)

    def lookahead(value: Any) -> Any:
        return reward + model.gamma * (model.P @ value)

    clipped = xp.zeros(reward.shape, dtype=bool)
    if xp is np:
        for _ in range(limit):
            new = lookahead(evaluate(clipped)) < floor
            if (new == clipped).all():
                break
            clipped = new
    else:
        import jax

        def refine(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            new = lookahead(evaluate(state[0])) < floor
            return new, (new != state[0]).any(), state[2] + 1

        clipped, _, _ = jax.lax.while_loop(
            lambda state: state[1] & (state[2] < limit), refine, (clipped, xp.asarray(True), 0)
        )
    value = evaluate(clipped)
    return xp.maximum(lookahead(value), floor), value


@dataclass(frozen=True, eq=False)
class Trajectory:
    """OPO's iterates over k = 0 … K-1."""

    gaps: np.ndarray  # V_k^*(s_0) - V_k^{π_k}(s_0), the theorem's gap
    plain_gaps: np.ndarray  # V^*(s_0) - V^{π_k}(s_0), without regularisation
    q: np.ndarray  # Q_k
    log_policies: np.ndarray  # log π_k, one more than Q_k
    lambdas: np.ndarray
    eta: float  # η_k + λ_k

    @property
    def policies(self) -> np.ndarray:
        """π_k, k = 0 … K."""
        return np.exp(self.log_policies)

    @property
    def average_gap(self) -> float:
        """AveSubOptGap(K), the mean over k."""
        return float(self.gaps.mean())


def check_annealing(alpha: float) -> float:
    """α strictly between 0 and 1."""
    if not 0.0 < float(alpha) < 1.0:
        raise InputError(f"the annealing factor α is {alpha}, expected strictly between 0 and 1.")
    return float(alpha)


def regularised_optima(mdp: FiniteMDP, pi_0: np.ndarray, alpha: float, steps: int) -> np.ndarray:
    """V_k^*(s_0) for λ_k = α^k; λ_k below 1e-12 changes nothing that float64 can see and is taken as 0."""
    values, plain = np.empty(steps), None
    for k in range(steps):
        weight = alpha**k
        if weight < 1e-12:
            plain = float(mdp.d0 @ regularised_optimum(mdp, pi_0, 0.0)[0]) if plain is None else plain
            values[k] = plain
        else:
            values[k] = mdp.d0 @ regularised_optimum(mdp, pi_0, weight)[0]
    return values


class Iterate(NamedTuple):
    """What one iteration k of OPO knows."""

    value: Any  # V_k^{π_k}(s_0)
    plain: Any  # V^{π_k}(s_0)
    q: Any  # Q_k
    log_policy: Any  # log π_k


def opo_iteration(
    mdp: FiniteMDP,
    pi_0: Float[Any, "S A"],
    energy: Float[Any, "S A"],
    weight: Any,
    eta: Any,
    estimate: EmpiricalModel | None = None,
    width: Any = 0.0,
) -> tuple[Float[Any, "S A"], Iterate]:
    """(f_{k+1}, what iteration k knows) from f_k, with λ_k = weight and η_k = η - λ_k.

    Without an estimate, Q_k = Q_{λ_k}^{π_k} exactly (U = 0). With an empirical model and width = U_k, Q_k is the
    pessimistic estimator: the fixed point of the empirical regularised evaluation operator minus U_k, clipped
    at -γ λ_k ℓ/(1-γ), ℓ = log 1/min π_0, below which no regularised Q-function of π_k lies.
    """
    log_policy = log_softmax(energy)
    pi = namespace(energy).exp(log_policy)
    true_value = regularised_value(mdp, pi, pi_0, weight)
    if estimate is None:
        q = action_value(mdp, true_value)
    else:
        floor = mdp.gamma * weight * math.log(float(np.min(pi_0))) / (1.0 - mdp.gamma)
        q, _ = clipped_evaluation(estimate, pi, width, -weight * kl_from_logs(log_policy, np.log(pi_0)), floor)
    new = opo_step(q, energy, np.log(pi_0), eta - weight, weight)
    new = new - new.max(-1, keepdims=True)  # constants per state do not matter; keeps energies finite
    plain = (mdp.d0 * policy_value(mdp, pi)).sum()
    return new, Iterate((mdp.d0 * true_value).sum(), plain, q, log_policy)


def check_opo(mdp: FiniteMDP, pi_0: np.ndarray, alpha: float, steps: int, eta: float) -> np.ndarray:
    """π_0 with full support, α ∈ (0, 1), K ≥ 1 and η > 0."""
    check_annealing(alpha)
    pi_0 = check_policy(mdp, pi_0, "the behaviour policy π_0")
    if pi_0.min() <= 0.0:
        raise InputError("the behaviour policy π_0 gives an action probability 0; the KL penalty needs all positive.")
    if steps < 1 or not eta > 0.0:
        raise InputError(f"OPO needs K ≥ 1 and η_k + λ_k > 0, got {steps} and {eta}.")
    return pi_0


def overflow(eta: float, steps: int) -> InputError:
    """The refusal of a run whose energies left float64."""
    return InputError(
        f"OPO with η_k + λ_k = {eta:.3g} leaves the range of float64 within {steps} iterations: below λ_0 = 1 the "
        "energies grow by a factor λ_k/η at every step. Give η ≥ 1, such as the schedules corrected or balanced."
    )


def run_opo(
    mdp: FiniteMDP,
    pi_0: np.ndarray,
    alpha: float,
    steps: int,
    eta: float,
    estimate: EmpiricalModel | None = None,
    widths: np.ndarray | None = None,
) -> Trajectory:
    """K = steps iterations of OPO with λ_k = α^k and η_k = η - λ_k; `estimate` and widths[k] as in `opo_iteration`."""
    pi_0 = check_opo(mdp, pi_0, alpha, steps, eta)
    lambdas = alpha ** np.arange(steps)
    energy, iterates = np.log(pi_0), []
    for k, weight in enumerate(lambdas.tolist()):
        width = 0.0 if widths is None else widths[k]
        with np.errstate(over="ignore", invalid="ignore"):
            energy, iterate = opo_iteration(mdp, pi_0, energy, weight, eta, estimate, width)
        if not np.isfinite(energy).all():
            raise overflow(eta, steps)
        iterates.append(iterate)
    values, plains, q, logs = (np.array(column) for column in zip(*iterates, strict=True))
    best = float(mdp.d0 @ optimal(mdp)[0].max(-1))
    gaps = regularised_optima(mdp, pi_0, alpha, steps) - values
    return Trajectory(gaps, best - plains, q, np.concatenate([logs, log_softmax(energy)[None]]), lambdas, eta)


def improvement_along(trajectory: Trajectory, pi_star: np.ndarray, alpha: float, gamma: float) -> LemmaTerms:
    """Lemma "Policy Improvement" at every k and state of a trajectory; leaves have axes (K, S), `paper` (K,)."""
    terms = [
        policy_improvement(q, before, after, pi_star, trajectory.log_policies[0], trajectory.eta, weight, alpha, gamma)
        for q, before, after, weight in zip(
            trajectory.q,
            trajectory.log_policies[:-1],
            trajectory.log_policies[1:],
            trajectory.lambdas.tolist(),
            strict=True,
        )
    ]
    return LemmaTerms(*(np.array(column) for column in zip(*terms, strict=True)))
