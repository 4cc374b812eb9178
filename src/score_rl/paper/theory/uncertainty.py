"""ξ-uncertainty quantifiers for finite MDPs (Definition "ξ-Uncertainty Quantifier").

U is a ξ-uncertainty quantifier if, with probability at least 1-ξ over the draw of D,
|B̂Q̂(s, a) - BQ̂(s, a)| ≤ U(s, a) for all (s, a). Since rewards are deterministic, a visited pair has
B̂Q̂ - BQ̂ = γ (P̂ - P)(·|s, a) V̂ with V̂ ∈ [0, V_max], and an unvisited one has |B̂Q̂ - BQ̂| ≤ V_max.

Given the visited pairs (s_i, a_i), the successors s'_i are independent draws of P(·|s_i, a_i). Every width
below is a function of the visits n(s, a) alone, and every bound holds given the visits, hence without
conditioning. What differs is how V̂, which is computed from the same data, may depend on them:

`fixed_value`       one value function V that does not depend on D. Hoeffding for V(s'_i) ∈ [0, V_max], both
                    sides, union over S·A pairs: γ V_max √(log(2SA/ξ) / 2n). For V̂ of the same data this is
                    a proof only if V̂(s') is independent of the row P̂(·|s, a), e.g. in a layered MDP, where
                    V̂ of later layers uses later rows only. In an MDP with cycles it is not.
`leave_one_out`     the fixed point V̂ of value iteration on the same data, greedy or with a penalty that
                    depends on the visits alone. Pin the value of state s to a number v and solve for the other
                    states: the solution V^{s,v} never sees the rows of s, grows with v and is 1-Lipschitz in it
                    (the operator is monotone and a contraction), and V^{s,V̂(s)} = V̂. Put m points on
                    [0, V_max] so that one of them is within V_max/2m of V̂(s), apply Hoeffding at each, and pay
                    γ V_max/2m for the distance (V̂ - V^{s,v} lies between 0 and that distance, so its
                    deviation does too): γ V_max (√(log(2SAm/ξ) / 2n) + 1/2m), with m = N here.
`uniform`           every V ∈ [0, V_max]^S at once, so any number of iterations and any policy (OPO, all k ∈ [K]).
                    (P̂ - P)V is convex in V, so largest at a corner V = V_max·1_B; Hoeffding for each set B of
                    states (complements give the other sign), union over 2^S sets and S·A pairs:
                    γ V_max √((log(SA/ξ) + S log 2) / 2n).

A width never exceeds what needs no data: γ V_max where n ≥ 1 and V_max where n = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float

from score_rl.errors import InputError, unknown_name
from score_rl.paper.theory.mdp import Model, bellman_optimality
from score_rl.paper.theory.precision import namespace


def check_confidence(xi: float) -> float:
    """ξ strictly between 0 and 1."""
    if not 0.0 < float(xi) < 1.0:
        raise InputError(f"the confidence parameter ξ is {xi}, expected strictly between 0 and 1.")
    return float(xi)


def _capped(width: Any, visits: Any, gamma: float, value_range: Any) -> Any:
    """The width, or the range of values where that is smaller (γ times it if visited: the reward is known)."""
    xp = namespace(visits, value_range)
    return xp.where(visits > 0, xp.minimum(width, gamma * value_range), value_range)


def fixed_value(visits: Float[Any, "S A"], gamma: float, xi: float) -> Float[Any, "S A"]:
    """γ V_max √(log(2SA/ξ) / 2n): confidence 1-ξ for one value function chosen without looking at D."""
    xp = namespace(visits)
    v_max, pairs = 1.0 / (1.0 - gamma), visits.shape[0] * visits.shape[1]
    rate = xp.sqrt(math.log(2.0 * pairs / check_confidence(xi)) / (2.0 * xp.maximum(visits, 1.0)))
    return _capped(gamma * v_max * rate, visits, gamma, v_max)


def leave_one_out(visits: Float[Any, "S A"], gamma: float, xi: float) -> Float[Any, "S A"]:
    """γ V_max (√(log(2SAN/ξ) / 2n) + 1/2N): confidence 1-ξ for the fixed point computed from D itself."""
    xp = namespace(visits)
    v_max, pairs = 1.0 / (1.0 - gamma), visits.shape[0] * visits.shape[1]
    points = xp.maximum(visits.sum(), 1.0)
    log = math.log(2.0 * pairs / check_confidence(xi)) + xp.log(points)
    rate = xp.sqrt(log / (2.0 * xp.maximum(visits, 1.0))) + 0.5 / points
    return _capped(gamma * v_max * rate, visits, gamma, v_max)


def uniform(visits: Float[Any, "S A"], gamma: float, xi: float, value_range: float | None = None) -> Float[Any, "S A"]:
    """γ V_max √((log(SA/ξ) + S log 2) / 2n): confidence 1-ξ for all value functions at once.

    `value_range` replaces V_max where values span another interval (the regularised MDP's reach below zero).
    """
    xp = namespace(visits)
    span = 1.0 / (1.0 - gamma) if value_range is None else value_range
    n_states, n_actions = visits.shape
    log = math.log(n_states * n_actions / check_confidence(xi)) + n_states * math.log(2.0)
    rate = xp.sqrt(log / (2.0 * xp.maximum(visits, 1.0)))
    return _capped(gamma * span * rate, visits, gamma, span)


QUANTIFIERS: dict[str, Callable[..., Any]] = {
    "fixed_value": fixed_value,
    "leave_one_out": leave_one_out,
    "uniform": uniform,
}


def quantifier(name: str) -> Callable[..., Any]:
    """The quantifier of that name: (visits, γ, ξ) -> U."""
    if name not in QUANTIFIERS:
        raise unknown_name("uncertainty quantifier", name, QUANTIFIERS)
    return QUANTIFIERS[name]


def epistemic_error(truth: Model, estimate: Model, q: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """ι(s, a) = BQ(s, a) - B̂Q(s, a), equation "epistemic error", for any Q."""
    return bellman_optimality(truth, q) - bellman_optimality(estimate, q)


def event_holds(error: Float[Any, "S A"], width: Float[Any, "S A"]) -> Bool[Any, ""]:
    """Whether |B̂Q̂ - BQ̂| ≤ U at every pair: the event E, up to rounding."""
    return (abs(error) <= width + 1e-10).all()
