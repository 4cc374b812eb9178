import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.errors import InputError
from score_rl.paper.theory.data import draw_counts, empirical_model
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, optimal, visitation
from score_rl.paper.theory.opo import (
    clipped_evaluation,
    improvement_along,
    opo_objective,
    opo_step,
    run_opo,
    theo_score_step,
)
from score_rl.paper.theory.rate import (
    gaps_against_iterations,
    pessimistic_widths,
    rate_bound,
    total_weight,
    zeta,
)
from score_rl.paper.theory.regularised import kl, log_ratio, regularised_action_value, softmax_policy
from tests.paper.theory.instances import mdps, random_policy, random_q, seeds

ALPHA = 0.5


@pytest.fixture(scope="module")
def problem() -> tuple[FiniteMDP, np.ndarray, np.ndarray]:
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(1), branching=3)
    return mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3)


@settings(max_examples=60, deadline=None)
@given(mdps(), st.floats(-0.4, 3.0), seeds)
def test_the_closed_form_maximises_the_objective_also_for_negative_eta(mdp: FiniteMDP, eta_k: float, seed: int) -> None:
    weight = 0.5
    pi_0, pi_k = (0.9 * random_policy(mdp, seed + i) + 0.1 / mdp.actions for i in range(2))
    q = random_q(mdp, seed)
    pi_next = softmax_policy(opo_step(q, np.log(pi_k), np.log(pi_0), eta_k, weight))
    best = opo_objective(pi_next, q, pi_k, pi_0, eta_k, weight)
    for i in range(5):
        other = 0.9 * random_policy(mdp, seed + 2 + i) + 0.1 / mdp.actions
        shortfall = best - opo_objective(other, q, pi_k, pi_0, eta_k, weight)
        # The objective is (η_k + λ_k)-strongly concave with respect to KL: the shortfall is exactly this.
        np.testing.assert_allclose(shortfall, (eta_k + weight) * kl(other, pi_next), atol=1e-8 * mdp.v_max)


@settings(max_examples=30, deadline=None)
@given(mdps(), seeds)
def test_theo_score_is_opo_without_the_proximal_term(mdp: FiniteMDP, seed: int) -> None:
    pi_0 = 0.9 * random_policy(mdp, seed) + 0.1 / mdp.actions
    q, log_k = random_q(mdp, seed), np.log(0.9 * random_policy(mdp, seed + 1) + 0.1 / mdp.actions)
    np.testing.assert_allclose(
        theo_score_step(q, pi_0, 0.7), softmax_policy(opo_step(q, log_k, np.log(pi_0), 0.0, 0.7)), atol=1e-12
    )


def test_the_log_ratio_has_its_closed_form(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, _, pi_0 = problem
    eta, steps = 1.7, 7
    trajectory = run_opo(mdp, pi_0, ALPHA, steps, eta)
    for k in range(steps + 1):
        weights = [math.prod(1 - ALPHA**j / eta for j in range(i + 1, k)) / eta for i in range(k)]
        expected = sum((w * q for w, q in zip(weights, trajectory.q[:k], strict=True)), np.zeros_like(pi_0))
        found = log_ratio(trajectory.policies[k], pi_0)
        np.testing.assert_allclose(
            expected - expected.mean(-1, keepdims=True), found - found.mean(-1, keepdims=True), atol=1e-10
        )


def test_exact_critics_are_the_regularised_action_values(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, _, pi_0 = problem
    trajectory = run_opo(mdp, pi_0, ALPHA, 5, 2.0)
    for q, pi, weight in zip(trajectory.q, trajectory.policies, trajectory.lambdas, strict=False):
        np.testing.assert_allclose(q, regularised_action_value(mdp, pi, pi_0, weight), atol=1e-10)
    assert (trajectory.gaps >= -1e-10).all()
    assert trajectory.sub_opt_gap <= trajectory.average_gap


@pytest.mark.parametrize(("schedule", "length"), [("stated", 200), ("inverse", 200), ("balanced", 200)])
def test_policy_improvement_along_trajectories(problem: Any, schedule: str, length: int) -> None:
    mdp, pi_star, pi_0 = problem
    eta = total_weight(schedule, mdp, pi_star, pi_0, ALPHA, length)
    lemma = improvement_along(run_opo(mdp, pi_0, ALPHA, 50, eta), pi_star, ALPHA, mdp.gamma)
    np.testing.assert_allclose(lemma.left, lemma.telescope + lemma.remainder, atol=1e-9)
    assert (lemma.remainder <= lemma.bound + 1e-12).all()
    if eta >= 1.0:  # η_k ≥ 0 for all k: there the printed constant holds too
        assert (lemma.left <= lemma.telescope + lemma.paper[:, None] + 1e-12).all()


def test_the_printed_constant_is_large_enough_wherever_eta_k_is_not_negative() -> None:
    """(1 + k α^k)²/8 ≤ (1 + α^{k+4}(1-α)^{-4})² for all α and k: the printed lemma survives for η ≥ 1 by its slack."""
    alpha = np.linspace(0.005, 0.995, 199)[:, None]
    k = np.arange(0, 2000)[None, :]
    assert ((1 + k * alpha**k) ** 2 / 8 <= (1 + alpha ** (k + 4.0) / (1 - alpha) ** 4) ** 2).all()


def test_the_gap_is_under_the_bound_and_falls_like_one_over_root_k(
    problem: tuple[FiniteMDP, np.ndarray, np.ndarray],
) -> None:
    mdp, pi_star, pi_0 = problem
    lengths = [16, 64, 256, 1024]
    etas = [total_weight("inverse", mdp, pi_star, pi_0, ALPHA, k) for k in lengths]
    gaps = gaps_against_iterations(mdp, pi_0, ALPHA, lengths, etas)
    bounds = [rate_bound(mdp, pi_star, pi_0, ALPHA, k, eta) for k, eta in zip(lengths, etas, strict=True)]
    assert (gaps.average <= bounds).all()
    assert (gaps.smallest <= gaps.average).all()
    assert -0.6 < np.log(gaps.average[-1] / gaps.average[-2]) / np.log(4) < -0.35
    assert -0.6 < np.log(bounds[-1] / bounds[-2]) / np.log(4) < -0.4
    single = run_opo(mdp, pi_0, ALPHA, 16, etas[0])
    assert gaps.average[0] == pytest.approx(single.average_gap, abs=1e-12)
    stated = [
        rate_bound(mdp, pi_star, pi_0, ALPHA, k, total_weight("stated", mdp, pi_star, pi_0, ALPHA, k))
        for k in (256, 1024)
    ]
    assert stated[1] > 1.8 * stated[0]
    assert total_weight("stated", mdp, pi_star, pi_0, ALPHA, 26) < 1.0 < zeta(mdp, pi_star, pi_0, ALPHA) / 25


@settings(max_examples=30, deadline=None)
@given(mdps(), seeds)
def test_clipped_evaluation_is_a_fixed_point(mdp: FiniteMDP, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pi, penalty, bonus = random_policy(mdp, seed), 2 * rng.random(mdp.R.shape), -rng.random(mdp.states)
    q, value = clipped_evaluation(mdp, pi, penalty, bonus, -0.3)
    np.testing.assert_allclose(value, (q * pi).sum(-1) + bonus, atol=1e-9)
    np.testing.assert_allclose(q, np.maximum(mdp.R - penalty + mdp.gamma * mdp.P @ value, -0.3), atol=1e-9)


def test_pessimistic_opo_keeps_its_promises_on_data(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, pi_star, pi_0 = problem
    steps, eta = 40, 2.0
    estimate = empirical_model(draw_counts(mdp, pi_0, 10**6, 1, 0)[0], mdp.R, mdp.gamma)
    widths = pessimistic_widths(estimate.visits, pi_0, mdp.gamma, 0.1, ALPHA ** np.arange(steps))
    trajectory = run_opo(mdp, pi_0, ALPHA, steps, eta, estimate, widths)
    for k in range(steps):
        pi, weight = trajectory.policies[k], trajectory.lambdas[k]
        value = (trajectory.q[k] * pi).sum(-1) - weight * kl(pi, pi_0)
        iota = mdp.R + mdp.gamma * mdp.P @ value - trajectory.q[k]
        assert iota.min() >= -1e-9
        assert (iota <= 2 * widths[k] + 1e-9).all()
    error = 2 * np.einsum("sa,ksa->k", visitation(mdp, pi_star, mdp.d0), widths).mean()
    assert trajectory.average_gap <= rate_bound(mdp, pi_star, pi_0, ALPHA, steps, eta) + error


def test_bad_arguments_are_refused(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, pi_star, pi_0 = problem
    for call in (
        lambda: run_opo(mdp, pi_0, 1.0, 5, 1.0),
        lambda: run_opo(mdp, pi_0, 0.5, 0, 1.0),
        lambda: run_opo(mdp, pi_0, 0.5, 5, -1.0),
        lambda: run_opo(mdp, pi_star, 0.5, 5, 1.0),
        lambda: total_weight("statd", mdp, pi_star, pi_0, 0.5, 5),
    ):
        with pytest.raises(InputError):
            call()
