"""The decomposition of suboptimality, term by term (equation "suboptimality" and Lemma "Suboptimality Decomposition").

For any Q̂ and any policy π̂, with V̂(s) = ⟨Q̂(s, ·), π̂(·|s)⟩ and ι(s, a) = r(s, a) + γ E[V̂(s')] - Q̂(s, a),

    V^{π*}(s_0) - V^{π̂}(s_0) = - Σ_t γ^t E_π̂[ι]  +  Σ_t γ^t E_π*[ι]  +  Σ_t γ^t E_π*⟨Q̂, π* - π̂⟩,
                                 (i) false           (ii) intrinsic        (iii) optimisation
                                 correlation         uncertainty           error

by telescoping V̂ along either policy. This ι equals the paper's BQ̂ - B̂Q̂ exactly when π̂ is greedy (then V̂ is
the maximum in B) and Q̂ is a fixed point of B̂ (then B̂Q̂ = Q̂); stopped iterations and other policies need the
form above. Every expectation is an inner product with a visitation measure, itself one linear solve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float

from score_rl.paper.theory.mdp import FiniteMDP, bellman_evaluation, policy_value, visitation
from score_rl.paper.theory.precision import namespace
from score_rl.paper.theory.regularised import kl_from_logs, log_probabilities, regularised_value


class Decomposition(NamedTuple):
    """The three terms and what they must sum to, all as expectations over s_0 ~ start."""

    false_correlation: Any
    intrinsic_uncertainty: Any
    optimisation_error: Any
    suboptimality: Any

    @property
    def total(self) -> Any:
        return self.false_correlation + self.intrinsic_uncertainty + self.optimisation_error


class RegularisedDecomposition(NamedTuple):
    """As `Decomposition`, with the curvature term that the paper's lemma leaves out."""

    false_correlation: Any
    intrinsic_uncertainty: Any
    optimisation_error: Any
    curvature: Any
    suboptimality: Any

    @property
    def total(self) -> Any:
        return self.false_correlation + self.intrinsic_uncertainty + self.optimisation_error + self.curvature


def model_error(mdp: FiniteMDP, q_hat: Float[Any, "S A"], pi_hat: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """ι(s, a) = (B^π̂ Q̂)(s, a) - Q̂(s, a): what Q̂ misses of one true step."""
    return bellman_evaluation(mdp, q_hat, pi_hat) - q_hat


def decompose(
    mdp: FiniteMDP,
    q_hat: Float[Any, "S A"],
    pi_hat: Float[Any, "S A"],
    pi_star: Float[Any, "S A"],
    start: Float[Any, " S"] | None = None,
) -> Decomposition:
    """The three terms of V^{π*} - V^{π̂} for an estimate (Q̂, π̂); `start` is d_0 unless given."""
    start = mdp.d0 if start is None else start
    iota = model_error(mdp, q_hat, pi_hat)
    along_star = visitation(mdp, pi_star, start)
    along_hat = visitation(mdp, pi_hat, start)
    gap = (q_hat * (pi_star - pi_hat)).sum(-1)
    return Decomposition(
        -(along_hat * iota).sum(),
        (along_star * iota).sum(),
        (along_star.sum(-1) * gap).sum(),
        (start * (policy_value(mdp, pi_star) - policy_value(mdp, pi_hat))).sum(),
    )


def decompose_regularised(
    mdp: FiniteMDP,
    q_k: Float[Any, "S A"],
    log_k: Float[Any, "S A"],
    comparator: Float[Any, "S A"],
    pi_0: Float[Any, "S A"],
    weight: float,
    start: Float[Any, " S"] | None = None,
) -> RegularisedDecomposition:
    """V_λ^{π} - V_λ^{π_k} for a comparator π, in the MDP regularised with λ = weight; π_k as log-probabilities.

    With V_k(s) = ⟨Q_k - λ log(π_k/π_0), π_k⟩ and ι_k = r + γ P V_k - Q_k, telescoping as above leaves

        Σ_t γ^t ( E_π⟨Q_k - λ log(π_k/π_0), π - π_k⟩ + E_π[ι_k] - E_{π_k}[ι_k] - λ E_π[KL(π ‖ π_k)] ).

    The last term, from λ⟨log(π/π_0) - log(π_k/π_0), π⟩ = λ KL(π ‖ π_k), is absent from the paper's lemma;
    it is never positive, so the paper's equality holds as an upper bound.
    """
    start = mdp.d0 if start is None else start
    pi_k = namespace(log_k).exp(log_k)
    advantage = q_k - weight * (log_k - log_probabilities(pi_0))
    value = (advantage * pi_k).sum(-1)
    iota = mdp.R + mdp.gamma * (mdp.P @ value) - q_k
    along_star, along_k = visitation(mdp, comparator, start), visitation(mdp, pi_k, start)
    states = along_star.sum(-1)
    difference = regularised_value(mdp, comparator, pi_0, weight) - regularised_value(mdp, pi_k, pi_0, weight)
    return RegularisedDecomposition(
        -(along_k * iota).sum(),
        (along_star * iota).sum(),
        (states * (advantage * (comparator - pi_k)).sum(-1)).sum(),
        -weight * (states * kl_from_logs(log_probabilities(comparator), log_k)).sum(),
        (start * difference).sum(),
    )
