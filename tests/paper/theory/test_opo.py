import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from score_rl.errors import InputError
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, action_value, optimal
from score_rl.paper.theory.opo import (
    clipped_evaluation,
    improvement_along,
    opo_step,
    paper_improvement_constant,
    policy_improvement,
    run_opo,
)
from score_rl.paper.theory.rate import span_bounds, total_weight
from score_rl.paper.theory.regularised import (
    kl,
    kl_from_logs,
    log_softmax,
    regularised_greedy,
    regularised_value,
    softmax_policy,
)
from tests.paper.theory.instances import mdps, random_policy, random_q, seeds

ALPHA = 0.5


@pytest.fixture(scope="module")
def problem() -> tuple[FiniteMDP, np.ndarray, np.ndarray]:
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(1), branching=3)
    return mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3)


def opo_objective(
    log_pi: np.ndarray, q_k: np.ndarray, log_k: np.ndarray, log_0: np.ndarray, eta_k: float, lambda_k: float
) -> np.ndarray:
    """⟨Q_k - λ_k log(π/π_0), π⟩ - η_k KL(π ‖ π_k) per state, of policies given as log-probabilities."""
    value = (q_k * np.exp(log_pi)).sum(-1)
    return np.asarray(value - lambda_k * kl_from_logs(log_pi, log_0) - eta_k * kl_from_logs(log_pi, log_k))


@settings(max_examples=60, deadline=None)
@given(mdps(), st.floats(-0.4, 3.0), seeds)
@example(random_mdp(1, 2, 0.96875, np.random.default_rng(3)), -0.375, 3)  # π_{k+1} underflows to zero there
def test_the_closed_form_maximises_the_objective_also_for_negative_eta(mdp: FiniteMDP, eta_k: float, seed: int) -> None:
    weight = 0.5
    log_0, log_k = (np.log(0.9 * random_policy(mdp, seed + i) + 0.1 / mdp.actions) for i in range(2))
    q = random_q(mdp, seed)
    log_next = log_softmax(opo_step(q, log_k, log_0, eta_k, weight))
    best = opo_objective(log_next, q, log_k, log_0, eta_k, weight)
    for i in range(5):
        other = np.log(0.9 * random_policy(mdp, seed + 2 + i) + 0.1 / mdp.actions)
        shortfall = best - opo_objective(other, q, log_k, log_0, eta_k, weight)
        # The objective is (η_k + λ_k)-strongly concave with respect to KL: the shortfall is exactly this.
        np.testing.assert_allclose(shortfall, (eta_k + weight) * kl_from_logs(other, log_next), atol=1e-8 * mdp.v_max)


def test_a_divergence_from_a_policy_that_underflows() -> None:
    """exp(-1000) is zero in float64; its logarithm is not."""
    log_q = log_softmax(np.array([[0.0, -1000.0]]))
    assert np.exp(log_q)[0, 1] == 0.0
    log_p = np.log(np.array([[0.6, 0.4]]))
    expected = 0.6 * np.log(0.6) + 0.4 * (np.log(0.4) + 1000.0)
    assert kl_from_logs(log_p, log_q)[0] == pytest.approx(expected, rel=1e-12)


def test_zeros_that_are_meant() -> None:
    sure, even = np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])
    assert kl(sure, even)[0] == pytest.approx(np.log(2.0))
    assert kl(even, sure)[0] == np.inf
    assert kl(sure, sure)[0] == 0.0


@settings(max_examples=30, deadline=None)
@given(mdps(), seeds)
def test_theo_score_is_opo_without_the_proximal_term(mdp: FiniteMDP, seed: int) -> None:
    pi_0 = 0.9 * random_policy(mdp, seed) + 0.1 / mdp.actions
    q, log_k = random_q(mdp, seed), np.log(0.9 * random_policy(mdp, seed + 1) + 0.1 / mdp.actions)
    np.testing.assert_allclose(
        regularised_greedy(q, pi_0, 0.7), softmax_policy(opo_step(q, log_k, np.log(pi_0), 0.0, 0.7)), atol=1e-12
    )


def test_the_log_ratio_has_its_closed_form(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, _, pi_0 = problem
    eta, steps = 1.7, 7
    trajectory = run_opo(mdp, pi_0, ALPHA, steps, eta)
    for k in range(steps + 1):
        weights = [math.prod(1 - ALPHA**j / eta for j in range(i + 1, k)) / eta for i in range(k)]
        expected = sum((w * q for w, q in zip(weights, trajectory.q[:k], strict=True)), np.zeros_like(pi_0))
        found = trajectory.log_policies[k] - np.log(pi_0)
        np.testing.assert_allclose(
            expected - expected.mean(-1, keepdims=True), found - found.mean(-1, keepdims=True), atol=1e-10
        )


def test_exact_critics_are_the_regularised_action_values(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, _, pi_0 = problem
    trajectory = run_opo(mdp, pi_0, ALPHA, 5, 2.0)
    for q, pi, weight in zip(trajectory.q, trajectory.policies, trajectory.lambdas, strict=False):
        np.testing.assert_allclose(q, action_value(mdp, regularised_value(mdp, pi, pi_0, weight)), atol=1e-10)
    assert (trajectory.gaps >= -1e-10).all()


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.96])
@pytest.mark.parametrize("schedule", ["stated", "corrected", "balanced"])
def test_policy_improvement_along_trajectories(problem: Any, schedule: str, alpha: float) -> None:
    mdp, pi_star, pi_0 = problem
    eta = total_weight(schedule, mdp, pi_star, pi_0, alpha, 200)
    lemma = improvement_along(run_opo(mdp, pi_0, alpha, 50, eta), pi_star, alpha, mdp.gamma)
    np.testing.assert_allclose(lemma.left, lemma.telescope + lemma.remainder, atol=1e-9)
    assert (lemma.remainder <= lemma.bound + 1e-12).all()
    if eta >= 1.0:  # η_k ≥ 0 for all k: there the printed constant holds too
        assert (lemma.left <= lemma.telescope + lemma.paper[:, None] + 1e-12).all()


def test_the_lemma_by_hand_and_where_hoeffding_is_tight() -> None:
    """Two actions of probability 1/2 and a small G: KL(π_k ‖ π_{k+1}) = log cosh(G/2η), which tends to G²/8η²."""
    gap, eta = 1e-3, 2.0
    q, log_k = np.array([[gap, 0.0]]), np.log(np.full((1, 2), 0.5))
    log_next = log_softmax(opo_step(q, log_k, log_k, eta, 0.0))
    lemma = policy_improvement(q, log_k, log_next, np.array([[1.0, 0.0]]), log_k, eta, 0.0, 0.5, 0.9)
    assert lemma.left[0] == pytest.approx(gap / (2 * eta))
    assert lemma.remainder[0] == pytest.approx(math.log(math.cosh(gap / (2 * eta))), rel=1e-6)
    assert lemma.bound[0] == pytest.approx(gap**2 / (8 * eta**2), rel=1e-12)
    assert lemma.remainder[0] / lemma.bound[0] == pytest.approx(1.0, rel=1e-6)


def test_the_printed_constant_by_hand() -> None:
    """α = 1/5: α⁴(1-α)^{-4} = 1/256. At 1/2 it would be 1 whatever the exponent."""
    assert paper_improvement_constant(0.2, 0.5, 0.5) == pytest.approx((1 + 1 / 512) ** 2 * 4, rel=1e-14)
    assert paper_improvement_constant(0.75, 1.0, 0.9) == pytest.approx(82.0**2 * 100, rel=1e-12)


def test_the_printed_constant_is_large_enough_on_the_paper_s_own_range_of_values() -> None:
    """With span(Q_k) ≤ 1/(1-γ), as the paper assumes: (1 + kα^k)²/8 ≤ (1 + α^{k+4}(1-α)^{-4})² for all α and k."""
    alpha = np.linspace(0.005, 0.995, 199)[:, None]
    k = np.arange(0, 2000)[None, :]
    assert ((1 + k * alpha**k) ** 2 / 8 <= (1 + alpha ** (k + 4.0) / (1 - alpha) ** 4) ** 2).all()


def largest_divergence(span: np.ndarray) -> np.ndarray:
    """The largest KL(π ‖ π') of all π and π' ∝ π exp(G) with span(G) = x: log((e^x - 1)/x) - 1 + x/(e^x - 1).

    KL(π ‖ π') = log E_π[exp G] - E_π[G]. For a given mean the first term is largest with all of π on the ends of G; of
    two ends, probability 1/x - 1/(e^x - 1) on the upper one is worst. It is below x²/8, and below x.
    """
    x = np.clip(span, 1e-2, 700.0)
    exact = np.log(np.expm1(x) / x) - 1.0 + x / np.expm1(x)
    return np.where(span < 1e-2, span**2 / 8.0, np.where(span > 700.0, span, exact))


@pytest.mark.parametrize("span", [0.5, 3.0, 20.0])
def test_the_largest_divergence_of_a_step_is_reached_and_not_exceeded(span: float) -> None:
    p = 1.0 / span - 1.0 / math.expm1(span)
    worst = math.log(1.0 - p + p * math.exp(span)) - p * span
    assert largest_divergence(np.array([span]))[0] == pytest.approx(worst)
    assert worst <= min(span**2 / 8.0, span)
    rng = np.random.default_rng(0)
    for _ in range(200):
        log_pi = np.log(rng.dirichlet(0.3 * np.ones(4)) + 1e-300)[None]
        g = span * rng.random((1, 4))
        g = (g - g.min()) * span / np.ptp(g)
        assert kl_from_logs(log_pi, log_softmax(log_pi + g))[0] <= worst + 1e-9


@pytest.mark.parametrize(("support", "enough"), [(4.5, True), (30.0, True), (80.0, False)])
def test_how_rare_an_action_of_the_behaviour_policy_the_printed_constant_allows(support: float, enough: bool) -> None:
    """Values reach down to the KL penalty, so the paper's ‖Q_k‖ ≤ 1/(1-γ) is not all of their range.

    The largest divergence that the derived span allows stays under the printed constant for ℓ = log 1/min π_0 up to
    30, an action of probability 1e-13, on a grid of γ, of α and of η ≥ 1. At ℓ = 80 this argument proves nothing.
    """
    worst, k = 0.0, np.arange(40)
    for gamma in (0.5, 0.9, 0.99, 0.999):
        for eta in np.logspace(0.0, math.log10(10.0 / (1.0 - gamma)), 9):
            for alpha in np.linspace(0.1, 0.95, 18):
                _, spans = span_bounds(gamma, float(alpha), len(k), float(eta), support, from_data=False)
                printed = np.array([paper_improvement_constant(float(alpha), float(w), gamma) for w in alpha**k])
                worst = max(worst, float((largest_divergence(spans / eta) * eta**2 / printed).max()))
    assert (worst <= 1.0) == enough


@settings(max_examples=30, deadline=None)
@given(mdps(), seeds)
def test_clipped_evaluation_is_a_fixed_point(mdp: FiniteMDP, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pi, penalty, bonus = random_policy(mdp, seed), 2 * rng.random(mdp.R.shape), -rng.random(mdp.states)
    q, value = clipped_evaluation(mdp, pi, penalty, bonus, -0.3)
    np.testing.assert_allclose(value, (q * pi).sum(-1) + bonus, atol=1e-9)
    np.testing.assert_allclose(q, np.maximum(mdp.R - penalty + mdp.gamma * mdp.P @ value, -0.3), atol=1e-9)


def test_bad_arguments_are_refused(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, pi_star, pi_0 = problem
    for call in (
        lambda: run_opo(mdp, pi_0, 1.0, 5, 1.0),
        lambda: run_opo(mdp, pi_0, 0.5, 0, 1.0),
        lambda: run_opo(mdp, pi_0, 0.5, 5, -1.0),
        lambda: run_opo(mdp, pi_star, 0.5, 5, 1.0),
        lambda: total_weight("statd", mdp, pi_star, pi_0, 0.5, 5),
        lambda: total_weight("stated", mdp, pi_star, pi_0, 1.0, 5),
    ):
        with pytest.raises(InputError):
            call()
