"""Theo-SCORE over K iterations, beside OPO (the paper's section 3.3).

Theo-SCORE maximises L_SCORE^k(π) = ⟨Q_k, π⟩ - λ_k KL(π ‖ π_0). The paper does so by a policy gradient, and calls OPO an
implicit natural gradient step of it (Lemma dpg=ppo). With F_k = log(π_k/π_0), up to constants per state, over all
policies:

    maximised   the maximiser itself:                                   F_{k+1} = Q_k/λ_k,
    stepped     one explicit natural gradient step of length 1/η_k:     F_{k+1} = F_k + (Q_k - λ_k F_k)/η_k,
    opo         the implicit one, evaluated at π_{k+1}:                 F_{k+1} = F_k + (Q_k - λ_k F_k)/(η_k + λ_k).

So all three are OPO's step with another total weight: λ_k, η_k, and η_k + λ_k. The implicit step of length 1/η_k is the
explicit one of length 1/(η_k + λ_k).

How fast the maximised form is, with exact Q_k. Let g_k = max_s (V_k^* - V_k^{π_k})(s) and ℓ = log 1/min π_0. Policy
improvement takes the gap in M_{λ_k} down to γ g_k. Then λ falls: V^{π} can only rise, and V^* rises by at most
(λ_k - λ_{k+1}) ℓ/(1-γ), since no policy's KL exceeds ℓ. Hence

    g_0 ≤ 1/(1-γ),    g_{k+1} ≤ γ g_k + (λ_k - λ_{k+1}) ℓ/(1-γ):

the gap falls geometrically, like max(γ, α)^k, and its average over k < K like 1/K.
"""

from __future__ import annotations

import numpy as np

from score_rl.errors import InputError, unknown_name
from score_rl.paper.theory.opo import check_annealing

FORMS = ("maximised", "stepped", "opo")
SMALLEST = 1e-12  # a λ_k below it changes nothing that float64 can see, and dividing by it would overflow


def total_weights(form: str, alpha: float, steps: int, eta: float) -> np.ndarray:
    """The total weight of OPO's step at every k < K for each form, with λ_k = α^k and η_k = η - λ_k."""
    lambdas = check_annealing(alpha) ** np.arange(steps)
    if form == "maximised":
        return np.maximum(lambdas, SMALLEST)
    if form == "stepped":
        if eta <= 1.0:
            raise InputError(f"a step of length 1/η_k needs η_k > 0, so η > λ_0 = 1; η is {eta:.3g}.")
        return eta - lambdas
    if form == "opo":
        return np.full(steps, float(eta))
    raise unknown_name("form of Theo-SCORE", form, FORMS)


def maximised_bound(gamma: float, alpha: float, support: float, steps: int) -> np.ndarray:
    """The bound on g_k for k < K; `support` is ℓ."""
    gaps, gap = np.empty(steps), 1.0 / (1.0 - gamma)
    for k in range(steps):
        gaps[k] = gap
        gap = gamma * gap + alpha**k * (1.0 - check_annealing(alpha)) * support / (1.0 - gamma)
    return gaps
