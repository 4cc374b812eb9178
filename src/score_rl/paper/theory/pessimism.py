"""Pessimistic and greedy value iteration, for one data set and for thousands (the paper's section 2.3).

The pessimistic operator (equation "bellman") is B̂⁻Q = B̂Q - U. Here it is also clipped from below,

    B̂⁻Q = max{B̂Q - U, 0},

as in the finite-horizon algorithm it comes from: without the clip Q̂ may fall to -‖U‖/(1-γ), outside the range
for which U was derived. The clip costs nothing. On the event E, BQ̂ ≥ 0 and BQ̂ ≥ B̂Q̂ - U give
ι = BQ̂ - B̂⁻Q̂ ≥ 0, and B̂⁻Q̂ ≥ B̂Q̂ - U gives ι ≤ 2U: equation "suboptimality bound" as the paper states it.
Term (i) is then at most zero, term (iii) is at most zero for the greedy policy, and

    SubOpt(π̂; s_0) ≤ Σ_t 2γ^t E_{π*}[U(s_t, a_t) | s_0].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.paper.theory.data import EmpiricalModel, check_counts, empirical_model
from score_rl.paper.theory.decomposition import decompose
from score_rl.paper.theory.mdp import (
    FiniteMDP,
    Model,
    bellman_optimality,
    greedy,
    optimal,
    optimality_fixed_point,
    visitation,
)
from score_rl.paper.theory.precision import map_over_sets, namespace
from score_rl.paper.theory.uncertainty import epistemic_error, event_holds, quantifier


def pessimistic_operator(estimate: Model, q: Float[Any, "S A"], width: Float[Any, "S A"]) -> Float[Any, "S A"]:
    """B̂⁻Q = max{B̂Q - U, 0}."""
    return namespace(q, width).maximum(bellman_optimality(estimate, q) - width, 0.0)


def greedy_value_iteration(estimate: EmpiricalModel) -> tuple[Float[Any, "S A"], Float[Any, "S A"]]:
    """(Q̂, π̂) with Q̂ = B̂Q̂: where value iteration ends if the data are taken at their word."""
    q = optimality_fixed_point(estimate, floor=0.0)
    return q, greedy(q)


def pessimistic_value_iteration(
    estimate: EmpiricalModel, width: Float[Any, "S A"]
) -> tuple[Float[Any, "S A"], Float[Any, "S A"]]:
    """(Q̂, π̂) with Q̂ = B̂⁻Q̂: where pessimistic value iteration ends."""
    q = optimality_fixed_point(estimate, penalty=width, floor=0.0)
    return q, greedy(q)


def suboptimality_bound(mdp: FiniteMDP, width: Float[Any, "S A"], pi_star: Float[Any, "S A"]) -> Float[Any, ""]:
    """Σ_t 2γ^t E_{π*}[U(s_t, a_t)], the right-hand side under pessimism (and ε_Pess in the theorem)."""
    return 2.0 * (visitation(mdp, pi_star, mdp.d0) * width).sum()


class Judged(NamedTuple):
    """What one drawn data set led to; over many data sets each field gains a leading axis."""

    event: Any  # E for the pessimistic Q̂
    event_greedy: Any  # E for the greedy Q̂
    ratio: Any  # max |B̂Q̂ - BQ̂| / U over visited pairs, pessimistic Q̂: E holds for cU iff c ≥ ratio
    ratio_optimal: Any  # the same for Q*, a value function that does not depend on the data
    smallest_iota: Any  # min ι, ≥ 0 on E
    largest_excess: Any  # max (ι - 2U), ≤ 0 on E
    bound: Any  # Σ_t 2γ^t E_{π*}[U]
    greedy: Any  # Decomposition of the greedy policy
    pessimistic: Any  # Decomposition of the pessimistic policy
    first_action: Any  # (greedy, pessimistic) action in the likeliest first state


def _worst_ratio(error: Any, width: Any, visits: Any) -> Any:
    """max |error| / U over visited pairs; unvisited ones hold by the range of values alone."""
    xp = namespace(error)
    return xp.where(visits > 0, abs(error) / width, 0.0).max()


def judge_data_set(
    mdp: FiniteMDP,
    counts: Float[Any, "S A S"],
    xi: float,
    name: str = "leave_one_out",
    scale: Any = 1.0,
    optimum: tuple[Any, Any] | None = None,
) -> Judged:
    """Greedy and pessimistic value iteration on one data set, each checked against the truth.

    The penalty is scale·U, U being the quantifier called `name` at confidence 1-ξ. With scale < 1 nothing is
    proven any more; the event and the bound are still those of scale·U, measured.
    """
    xp = namespace(counts)
    q_star, pi_star = optimal(mdp) if optimum is None else optimum
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    width = quantifier(name)(estimate.visits, mdp.gamma, xi)
    width = xp.where(estimate.visits > 0, scale * width, width)  # an unvisited pair's range needs no calibration
    q_greedy, pi_greedy = greedy_value_iteration(estimate)
    q_hat, pi_hat = pessimistic_value_iteration(estimate, width)
    error = epistemic_error(mdp, estimate, q_hat)
    iota = bellman_optimality(mdp, q_hat) - pessimistic_operator(estimate, q_hat, width)
    first = int(np.argmax(mdp.d0))
    return Judged(
        event_holds(error, width),
        event_holds(epistemic_error(mdp, estimate, q_greedy), width),
        _worst_ratio(error, width, estimate.visits),
        _worst_ratio(epistemic_error(mdp, estimate, q_star), width, estimate.visits),
        iota.min(),
        (iota - 2.0 * width).max(),
        suboptimality_bound(mdp, width, pi_star),
        decompose(mdp, q_greedy, pi_greedy, pi_star),
        decompose(mdp, q_hat, pi_hat, pi_star),
        xp.stack([xp.argmax(pi_greedy[first]), xp.argmax(pi_hat[first])]),
    )


def judge_data_sets(
    mdp: FiniteMDP,
    counts: Float[np.ndarray, "sets S A S"],
    xi: float,
    name: str = "leave_one_out",
    scale: float | Float[np.ndarray, " sets"] = 1.0,
) -> Judged:
    """`judge_data_set` over many data sets, each with its own scale of U if asked, in one compiled program."""
    optimum = optimal(mdp)
    for data_set in counts:
        check_counts(mdp, data_set)
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(counts))
    return map_over_sets(lambda x: judge_data_set(mdp, x[0], xi, name, x[1], optimum), (counts, scales))
