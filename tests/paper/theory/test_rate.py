"""The theorem's rate: hand-computed numbers, cases of equality, and instances on which a looser argument fails."""

import math

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory.data import EmpiricalModel, draw_counts, empirical_model
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, optimal
from score_rl.paper.theory.opo import regularised_optima, run_opo
from score_rl.paper.theory.rate import (
    SCHEDULES,
    annealing_constant,
    divergence_to_behaviour,
    gaps_against_iterations,
    pessimistic_errors,
    pessimistic_widths,
    printed_proof_bound,
    rate_bound,
    span_bounds,
    steps_with_weight_one,
    total_weight,
    zeta,
)
from score_rl.paper.theory.regularised import kl, regularised_optimum
from score_rl.paper.theory.uncertainty import uniform

ALPHA = 0.5

# One state, two actions, γ = 1/2, the first action best: C = 2 log 4. At α = 1/5, α⁴(1-α)^{-4} = 1/256.
BANDIT = FiniteMDP(np.ones((1, 2, 1)), np.array([[1.0, 0.0]]), 0.5, np.ones(1))
BEST, CLONE = np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]])
C = 2.0 * math.log(4.0)
C2 = (257.0 / 256.0) ** 2


@pytest.fixture(scope="module")
def problem() -> tuple[FiniteMDP, np.ndarray, np.ndarray]:
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(1), branching=3)
    return mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3)


def test_constants_by_hand() -> None:
    assert divergence_to_behaviour(BANDIT, BEST, CLONE) == pytest.approx(C)
    assert annealing_constant(0.2) == pytest.approx(C2, rel=1e-14)
    assert annealing_constant(0.5) == pytest.approx(4.0)
    assert annealing_constant(0.96) == pytest.approx((1 + 24.0**4) ** 2)
    assert zeta(BANDIT, BEST, CLONE, 0.2) == pytest.approx(C2 * C)


def test_schedules_by_hand() -> None:
    k = 50
    expected = {
        "stated": math.sqrt(C2 * C / k),
        "inverse": math.sqrt(k / (C2 * C)),
        "corrected": C2 * math.sqrt(k / (C2 * C)),
        "balanced": math.sqrt(k / (8 * 0.125 * C)),
    }
    assert set(expected) == set(SCHEDULES)
    for schedule, eta in expected.items():
        assert total_weight(schedule, BANDIT, BEST, CLONE, 0.2, k) == pytest.approx(eta, rel=1e-13)
        turn = steps_with_weight_one(schedule, BANDIT, BEST, CLONE, 0.2)
        assert eta * (k / turn) ** (0.5 if schedule == "stated" else -0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.96])
def test_the_corrected_step_size_is_the_best_for_the_proof_and_gives_the_rate(alpha: float) -> None:
    """c²√(K/ζ) minimises ηC/K + c²/η, and at it the proof's bound is (1 + (1-γ)^{-3}) √(ζ/K) exactly."""
    steps = 300
    eta = total_weight("corrected", BANDIT, BEST, CLONE, alpha, steps)
    c2 = annealing_constant(alpha)
    there, beside = eta * C / steps + c2 / eta, [e * C / steps + c2 / e for e in (0.9 * eta, 1.1 * eta)]
    assert there < min(beside)
    promised = (1 + 0.5**-3) * math.sqrt(zeta(BANDIT, BEST, CLONE, alpha) / steps)
    assert printed_proof_bound(C, alpha, 0.5, steps, eta) == pytest.approx(promised, rel=1e-12)


def test_the_bound_by_hand() -> None:
    """K = 3, η = 2, α = 1/5, γ = 1/2, ℓ = log 4, worked out on paper.

    exact       span Q: 2, 2(1 + log(4)/10 as span F_1 = 1 < ℓ → 1/10), …
    from data   span Q: 2(1 + λ_k ℓ/2) for every k.
    """
    eta, support = 2.0, math.log(4.0)
    q0, f0 = 2.0, 0.0
    f1 = q0 / eta + abs(1 - 1 / eta) * f0  # 1
    q1 = 2 * (1 + 0.5 * 0.2 * 1.0)
    f2 = q1 / eta + 0.9 * f1
    q2 = 2 * (1 + 0.5 * 0.04 * support)  # span F_2 = 2 exceeds ℓ
    assert f2 == pytest.approx(2.0)
    spans_q, spans_g = span_bounds(0.5, 0.2, 3, eta, support, from_data=False)
    np.testing.assert_allclose(spans_q, [q0, q1, q2], rtol=1e-13)
    np.testing.assert_allclose(spans_g, [q0, q1 + 0.2 * f1, q2 + 0.04 * f2], rtol=1e-13)
    squares = (q0**2 + (q1 + 0.2) ** 2 + (q2 + 0.08) ** 2) / 3
    expected = eta * C / 3 + squares / (8 * eta * 0.5) + C * (1 + 0.2 + 0.04) / 3
    assert rate_bound(BANDIT, BEST, CLONE, 0.2, 3, eta) == pytest.approx(expected, rel=1e-13)
    from_data, _ = span_bounds(0.5, 0.2, 3, eta, support, from_data=True)
    np.testing.assert_allclose(from_data, [2 * (1 + 0.5 * w * support) for w in (1.0, 0.2, 0.04)], rtol=1e-13)
    one = eta * C + from_data[0] ** 2 / (8 * eta * 0.5) + C
    assert rate_bound(BANDIT, BEST, CLONE, 0.2, 1, eta, from_data=True) == pytest.approx(one, rel=1e-13)


def test_a_small_eta_lets_the_span_grow_by_hand() -> None:
    """η = 1/4 < λ_1 = 1/2: F_2 = Q_1/η + (1 - λ_1/η) F_1 = 4 Q_1 - F_1, whose span is at most 4 span Q_1 + span F_1."""
    _, spans = span_bounds(0.5, 0.5, 3, 0.25, 1.0, from_data=False)
    span_1 = 2.0 / 0.25
    span_2 = 4 * (2 * (1 + 0.25 * 1.0)) + span_1  # span F_1 = 8 exceeds ℓ = 1
    np.testing.assert_allclose(spans, [2.0, 2.5 + 0.5 * span_1, 2 * (1 + 0.125) + 0.25 * span_2], rtol=1e-13)


def test_every_run_is_read_at_its_own_end(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    """A run of 3 iterations beside one of 40: smallest, average and last gap are those of the run alone."""
    mdp, _, pi_0 = problem
    found = gaps_against_iterations(mdp, pi_0, ALPHA, [3, 40], [2.0, 2.0])
    for i, steps in enumerate((3, 40)):
        alone = run_opo(mdp, pi_0, ALPHA, steps, 2.0)
        assert found.smallest[i] == pytest.approx(alone.gaps.min(), abs=1e-10)
        assert found.average[i] == pytest.approx(alone.gaps.mean(), abs=1e-10)
        assert found.last_plain[i] == pytest.approx(alone.plain_gaps[-1], abs=1e-10)
    assert found.smallest[1] < 0.9 * found.smallest[0]


def test_optima_are_those_of_each_regularised_mdp(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    """At λ = 1e-3 the optimum still differs from the plain one; at 1e-13 it does not in float64."""
    mdp, _, pi_0 = problem
    found = regularised_optima(mdp, pi_0, 0.1, 14)
    plain = mdp.d0 @ regularised_optimum(mdp, pi_0, 0.0)[0]
    for k in (0, 3, 6):
        assert found[k] == pytest.approx(mdp.d0 @ regularised_optimum(mdp, pi_0, 0.1**k)[0], abs=1e-13)
        assert plain - found[k] > 0.1**k
    assert found[13] == plain


def test_the_pessimistic_error_by_hand() -> None:
    """The best action stays in the one state, visited Σ γ^t = 2 times: 2 · 2 · U_k(best), for every k."""
    widths = np.array([[[0.25, 9.0]], [[0.5, 9.0]]])
    np.testing.assert_allclose(pessimistic_errors(BANDIT, BEST, widths), [1.0, 2.0])


def test_an_instance_on_which_the_span_from_data_is_reached() -> None:
    """One action is known to lead to the best state, nothing is known of the other: Q_0 spans all of its range.

    π_0 is still π_k there, so that L_0 = 0 and the bound for exact Q_k fails.
    """
    gamma, pi_0 = 0.8, np.array([[0.1, 0.9], [0.1, 0.9]])
    P = np.zeros((2, 2, 2))
    P[:, :, 1] = 1.0
    mdp = FiniteMDP(P, np.ones((2, 2)), gamma, np.array([1.0, 0.0]))
    estimate = EmpiricalModel(P, np.ones((2, 2)), gamma, np.ones((2, 2)))
    width = np.array([[[0.0, 1e3], [0.0, 0.0]]])
    q = run_opo(mdp, pi_0, 0.96, 1, 2.0, estimate, width).q[0]
    support = math.log(10.0)
    assert q[0, 0] == pytest.approx(5.0)
    assert q[0, 1] == pytest.approx(-gamma * support / (1 - gamma))
    (reached,), _ = span_bounds(gamma, 0.96, 1, 2.0, support, from_data=True)
    (too_small,), _ = span_bounds(gamma, 0.96, 1, 2.0, support, from_data=False)
    assert q[0, 0] - q[0, 1] == pytest.approx(reached, rel=1e-12)
    assert reached > 2.8 * too_small


@pytest.mark.parametrize(("seed", "excess"), [(15, 3.5), (59, 3.0)])
def test_drawn_instances_on_which_the_bound_for_exact_values_fails_on_data(seed: int, excess: float) -> None:
    """Found among sixty random MDPs: with Q_k from data the span exceeds what exact Q_k could have, several times."""
    rng = np.random.default_rng(seed)
    states, actions = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    gamma, alpha = float(rng.uniform(0.3, 0.95)), float(rng.choice([0.5, 0.9, 0.96]))
    mdp = random_mdp(states, actions, gamma, rng, branching=int(rng.integers(1, states + 1)))
    pi_0 = behaviour_policy(mdp, float(rng.uniform(0.5, 1)), floor=float(10 ** rng.uniform(-3, -0.5)))
    size, steps, eta = int(10 ** rng.uniform(2.5, 6)), 12, float(rng.uniform(1, 4))
    estimate = empirical_model(draw_counts(mdp, pi_0, size, 1, seed)[0], mdp.R, gamma)
    widths = pessimistic_widths(estimate.visits, pi_0, gamma, 0.1, alpha ** np.arange(steps))
    q = run_opo(mdp, pi_0, alpha, steps, eta, estimate, widths).q
    spans, support = (q.max(-1) - q.min(-1)).max(-1), -math.log(pi_0.min())
    exact, _ = span_bounds(gamma, alpha, steps, eta, support, from_data=False)
    from_data, _ = span_bounds(gamma, alpha, steps, eta, support, from_data=True)
    assert (spans / exact).max() > excess
    assert (spans <= from_data).all()


def test_the_pessimistic_estimator_has_the_regularised_value_where_data_say_everything() -> None:
    """P̂ = P and U = 0: Q_k from data is the exact Q_k, KL penalty and its sign included."""
    mdp = random_mdp(4, 3, 0.8, np.random.default_rng(2))
    pi_0 = behaviour_policy(mdp, 0.3)
    estimate = EmpiricalModel(mdp.P, mdp.R, mdp.gamma, np.full(mdp.R.shape, 1e9))
    exact = run_opo(mdp, pi_0, 0.9, 6, 1.5)
    from_data = run_opo(mdp, pi_0, 0.9, 6, 1.5, estimate, np.zeros((6, *mdp.R.shape)))
    assert kl(exact.policies[5], pi_0).max() > 0.1
    np.testing.assert_allclose(from_data.q, exact.q, atol=1e-10)


def test_widths_reach_as_far_as_the_penalty() -> None:
    visits, pi_0, lambdas = np.full((3, 2), 1e7), np.full((3, 2), 0.5), np.array([1.0, 0.25])
    widths = pessimistic_widths(visits, pi_0, 0.9, 0.1, lambdas)
    plain = uniform(visits, 0.9, 0.1)
    np.testing.assert_allclose(widths, [plain * (1 + math.log(2)), plain * (1 + 0.25 * math.log(2))], rtol=1e-12)


def test_an_eta_that_overflows_is_refused_or_said(problem: tuple[FiniteMDP, np.ndarray, np.ndarray]) -> None:
    mdp, pi_star, pi_0 = problem
    eta = total_weight("inverse", mdp, pi_star, pi_0, 0.96, 512)
    with pytest.raises(InputError, match=r"leaves the range of float64 within 512 iterations.*Give η ≥ 1"):
        run_opo(mdp, pi_0, 0.96, 512, eta)
    with pytest.raises(InputError, match="leaves the range of float64"):
        gaps_against_iterations(mdp, pi_0, 0.96, [512, 512], [2.0, eta])
    found = gaps_against_iterations(mdp, pi_0, 0.96, [512, 512], [2.0, eta], allow_overflow=True)
    assert found.overflowed.tolist() == [False, True]


def test_the_gap_is_under_the_bound_and_falls_like_one_over_root_k(
    problem: tuple[FiniteMDP, np.ndarray, np.ndarray],
) -> None:
    mdp, pi_star, pi_0 = problem
    lengths = [16, 64, 256, 1024]
    etas = [total_weight("corrected", mdp, pi_star, pi_0, 0.2, k) for k in lengths]
    gaps = gaps_against_iterations(mdp, pi_0, 0.2, lengths, etas)
    bounds = [rate_bound(mdp, pi_star, pi_0, 0.2, k, eta) for k, eta in zip(lengths, etas, strict=True)]
    assert (gaps.average <= bounds).all()
    assert (gaps.smallest <= gaps.average).all()
    assert -0.6 < np.log(gaps.average[-1] / gaps.average[-2]) / np.log(4) < -0.35
    assert -0.6 < np.log(bounds[-1] / bounds[-2]) / np.log(4) < -0.4
    single = run_opo(mdp, pi_0, 0.2, 16, etas[0])
    assert gaps.average[0] == pytest.approx(single.average_gap, abs=1e-12)
    stated = [
        rate_bound(mdp, pi_star, pi_0, ALPHA, k, total_weight("stated", mdp, pi_star, pi_0, ALPHA, k))
        for k in (256, 1024)
    ]
    assert stated[1] > 1.8 * stated[0]
    assert total_weight("stated", mdp, pi_star, pi_0, ALPHA, 26) < 1.0 < zeta(mdp, pi_star, pi_0, ALPHA) / 25


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
    error = pessimistic_errors(mdp, pi_star, widths).mean()
    assert trajectory.average_gap <= rate_bound(mdp, pi_star, pi_0, ALPHA, steps, eta, from_data=True) + error
