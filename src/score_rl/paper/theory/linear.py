"""Linear MDPs and the ridge form of the ξ-uncertainty quantifier.

P(s'|s, a) = φ(s, a)ᵀ μ(s') and R(s, a) = φ(s, a)ᵀ ρ with φ(s, a) in the d-simplex, each μ_j a distribution and
ρ ∈ [0, 1]^d: states and actions mix d anchors. For a value function V the target BQ is linear in φ with
w_V = ρ + γ ∫ μ V, and ridge regression on N samples estimates it:

    Λ = Σ_i φ_i φ_iᵀ + κ I,    ŵ = Λ^{-1} Σ_i φ_i (r_i + γ V(s'_i)),
    B̂Q(s, a) = φ(s, a)ᵀ ŵ,    U(s, a) = b ‖φ(s, a)‖_{Λ^{-1}}.

The width b, derived. Given the pairs (s_i, a_i), Λ is fixed and ε_i = γ(V(s'_i) - E V(s'_i)) is independent noise
in an interval of length γ V_max, hence γ V_max/2-sub-Gaussian, for a V that does not depend on the s'_i.

  bias     κ |φᵀ Λ^{-1} w_V| ≤ √κ ‖w_V‖_2 ‖φ‖_{Λ^{-1}} and ‖w_V‖_2 ≤ √d V_max.
  noise    ‖Σ φ_i ε_i‖_{Λ^{-1}} ≤ (γ V_max/2) √(2 log(1/ξ') + log(det Λ/κ^d)) with probability 1-ξ' (the self-normalised
           bound), for all φ at once; and det Λ ≤ (κ + N/d)^d since ‖φ_i‖_2 ≤ 1.
  same V̂   the iterates are V_w(s) = max_a clip(φᵀw - b‖φ‖_{Λ^{-1}}, 0, V_max) with Λ and b fixed by the pairs, so w
           alone varies, ‖w‖_2 ≤ W = V_max √(N/κ). ‖φ‖_2 ≤ 1 makes w ↦ V_w 1-Lipschitz; a net of (1 + 2W/ε)^d points
           takes ξ' = ξ (1 + 2W/ε)^{-d} and costs 2γε√N for the distance to it. ε = V_max/N.

    b = (γ V_max/2) √(2 log(1/ξ) + 2d log(1 + 2N√(N/κ)) + d log(1 + N/κd)) + 2γ V_max/√N + √(κ d) V_max.

This covers every iterate of pessimistic value iteration on the same data with confidence 1-ξ. Unlike the count-based
operator, the ridge operator need not be a contraction, so the iteration may fail to settle: the residual it ends with
is part of the result.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.data import check_counts
from score_rl.paper.theory.decomposition import decompose
from score_rl.paper.theory.mdp import (
    FiniteMDP,
    bellman_optimality,
    check_discount,
    check_distributions,
    greedy,
    optimal,
    visitation,
)
from score_rl.paper.theory.precision import map_over_sets, namespace, solve
from score_rl.paper.theory.uncertainty import check_confidence, event_holds


class LinearMDP(NamedTuple):
    """A linear MDP on finitely many states: features φ[s, a, d], anchors μ[d, s'], rewards ρ[d]."""

    features: Any
    anchors: Any
    rewards: Any
    mdp: FiniteMDP

    @property
    def dimension(self) -> int:
        return self.features.shape[-1]


def linear_mdp(features: Any, anchors: Any, rewards: Any, gamma: float, d0: Any) -> LinearMDP:
    """P = φμ and R = φρ, refused unless φ, μ are stochastic and ρ lies in [0, 1]."""
    shape = np.shape(features)
    if len(shape) != 3:
        raise InputError(f"the features φ have shape {shape}, expected (S, A, d).")
    features = check_distributions("the features φ", features, shape)
    anchors = check_distributions("the anchors μ", anchors, (shape[2], shape[0]))
    rewards = np.asarray(rewards, dtype=np.float64)
    if rewards.shape != (shape[2],):
        raise InputError(f"the anchors' rewards ρ have shape {rewards.shape}, expected ({shape[2]},).")
    P = features @ anchors
    mdp = FiniteMDP(P / P.sum(-1, keepdims=True), features @ rewards, check_discount(gamma), d0, name="linear")
    return LinearMDP(features, anchors, rewards, mdp)


def random_linear_mdp(states: int, actions: int, dimension: int, gamma: float, rng: np.random.Generator) -> LinearMDP:
    """Random features near the corners of the simplex, random anchors and rewards."""
    features = rng.dirichlet(0.3 * np.ones(dimension), size=(states, actions))
    anchors = rng.dirichlet(0.3 * np.ones(states), size=dimension)
    features, anchors = (x / x.sum(-1, keepdims=True) for x in (features, anchors))
    return linear_mdp(features, anchors, rng.random(dimension), gamma, np.eye(states)[0])


def ridge_width(size: int, dimension: int, gamma: float, xi: float, kappa: float = 1.0) -> float:
    """b of U = b ‖φ‖_{Λ^{-1}}, as derived above, for N = size samples."""
    if size < 1 or not kappa > 0.0:
        raise InputError(f"the ridge quantifier needs N ≥ 1 and κ > 0, got {size} and {kappa}.")
    v_max = 1.0 / (1.0 - gamma)
    net = 2.0 * dimension * math.log(1.0 + 2.0 * size * math.sqrt(size / kappa))
    volume = dimension * math.log(1.0 + size / (kappa * dimension))
    noise = 0.5 * gamma * v_max * math.sqrt(2.0 * math.log(1.0 / check_confidence(xi)) + net + volume)
    return noise + 2.0 * gamma * v_max / math.sqrt(size) + math.sqrt(kappa * dimension) * v_max


class RidgeFit(NamedTuple):
    """Pessimistic value iteration with the ridge operator on one data set."""

    q: Any  # Q̂
    estimate: Any  # B̂Q̂ at the end
    width: Any  # U
    residual: Any  # ‖Q̂ - clip(B̂Q̂ - U)‖_∞


def ridge_value_iteration(
    linear: LinearMDP,
    counts: Float[Any, "S A S"],
    multiple: Any,
    kappa: float = 1.0,
    scale: float = 1.0,
    iterations: int = 300,
) -> RidgeFit:
    """Q ← clip(φᵀŵ - scale·U, 0, V_max) from zero, with U = multiple·‖φ‖_{Λ^{-1}}, for a data set given as counts.

    multiple = b of `ridge_width` and scale = 1 is pessimism with the derived quantifier, scale = 0 is greedy.
    """
    xp = namespace(counts)
    phi, gamma = linear.features, linear.mdp.gamma
    pairs = counts.sum(-1)
    gram = xp.einsum("sa,sad,sae->de", pairs, phi, phi) + kappa * xp.eye(linear.dimension)
    inverse = solve(gram, xp.eye(linear.dimension))
    norm = xp.sqrt(xp.einsum("sad,de,sae->sa", phi, inverse, phi))
    width = multiple * norm
    reward_sum = xp.einsum("sa,sad,sa->d", pairs, phi, linear.mdp.R)
    next_sum = xp.einsum("sax,sad->dx", counts, phi)

    def estimate(q: Any) -> Any:
        return phi @ (inverse @ (reward_sum + gamma * (next_sum @ q.max(-1))))

    def step(q: Any) -> Any:
        return xp.clip(estimate(q) - scale * width, 0.0, linear.mdp.v_max)

    q = xp.zeros(phi.shape[:2])
    if xp is np:
        for _ in range(iterations):
            q = step(q)
    else:
        import jax

        q = jax.lax.fori_loop(0, iterations, lambda _, q: step(q), q)
    return RidgeFit(q, estimate(q), width, abs(step(q) - q).max())


class RidgeJudged(NamedTuple):
    """What one data set led to; over many data sets each field gains a leading axis."""

    event: Any  # |B̂Q̂ - BQ̂| ≤ U everywhere, at scale 1
    ratio: Any  # max |B̂Q̂ - BQ̂| / U
    smallest_iota: Any  # min ι under pessimism, ≥ 0 on the event
    largest_excess: Any  # max (ι - 2U), ≤ 0 on the event
    residual: Any  # how far Q̂ is from a fixed point
    largest_value: Any  # max Q̂ under pessimism: zero where U exceeds every value
    bound: Any  # Σ_t 2γ^t E_{π*}[U]
    pessimistic: Any  # Decomposition at the derived width
    greedy: Any  # Decomposition without a penalty


def judge_linear_data_sets(
    linear: LinearMDP, counts: Float[np.ndarray, "sets S A S"], xi: float, kappa: float = 1.0
) -> RidgeJudged:
    """Pessimistic and greedy ridge value iteration on many data sets, each with the width of its own N."""
    mdp = linear.mdp
    _, pi_star = optimal(mdp)
    along_star = visitation(mdp, pi_star, mdp.d0)

    sizes = [int(check_counts(mdp, c).sum()) for c in counts]
    multiples = np.array([ridge_width(n, linear.dimension, mdp.gamma, xi, kappa) for n in sizes])

    def one(inputs: Any) -> RidgeJudged:
        c, multiple = inputs
        fit = ridge_value_iteration(linear, c, multiple, kappa)
        plain = ridge_value_iteration(linear, c, multiple, kappa, scale=0.0)
        truth = bellman_optimality(mdp, fit.q)
        iota = truth - fit.q
        return RidgeJudged(
            event_holds(truth - fit.estimate, fit.width),
            (abs(truth - fit.estimate) / fit.width).max(),
            iota.min(),
            (iota - 2.0 * fit.width).max(),
            fit.residual,
            fit.q.max(),
            2.0 * (along_star * fit.width).sum(),
            decompose(mdp, fit.q, greedy(fit.q), pi_star),
            decompose(mdp, plain.q, greedy(plain.q), pi_star),
        )

    return map_over_sets(one, (counts, multiples))
