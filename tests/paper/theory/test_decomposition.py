import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.paper.theory.data import draw_counts, empirical_model
from score_rl.paper.theory.decomposition import decompose, decompose_regularised
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, greedy, optimal
from score_rl.paper.theory.pessimism import greedy_value_iteration, pessimistic_value_iteration
from score_rl.paper.theory.regularised import regularised_optimum, regularised_value
from score_rl.paper.theory.uncertainty import epistemic_error, event_holds, leave_one_out, uniform
from tests.paper.theory.instances import mdps, random_policy, random_q, seeds


@settings(max_examples=100, deadline=None)
@given(mdps(), seeds)
def test_the_terms_sum_to_the_suboptimality_for_any_estimate(mdp: FiniteMDP, seed: int) -> None:
    q_hat, pi_hat, pi_star = random_q(mdp, seed), random_policy(mdp, seed + 1), optimal(mdp)[1]
    parts = decompose(mdp, q_hat, pi_hat, pi_star)
    assert abs(parts.total - parts.suboptimality) <= 1e-9 * max(1.0, mdp.v_max**2)
    from_each_state = [decompose(mdp, q_hat, pi_hat, pi_star, np.eye(mdp.states)[s]) for s in range(mdp.states)]
    assert sum(mdp.d0[s] * p.suboptimality for s, p in enumerate(from_each_state)) == pytest.approx(
        parts.suboptimality, abs=1e-9
    )


@settings(max_examples=100, deadline=None)
@given(mdps(), st.integers(1, 300), seeds)
def test_the_terms_sum_within_1e_9_for_value_iteration_on_data(mdp: FiniteMDP, size: int, seed: int) -> None:
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0]
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    pi_star = optimal(mdp)[1]
    width = leave_one_out(estimate.visits, mdp.gamma, 0.1)
    for q_hat, pi_hat in (greedy_value_iteration(estimate), pessimistic_value_iteration(estimate, width)):
        parts = decompose(mdp, q_hat, pi_hat, pi_star)
        assert abs(parts.total - parts.suboptimality) <= 1e-9
        assert parts.optimisation_error <= 1e-10


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds)
def test_the_optimisation_error_of_a_greedy_policy_is_never_positive(mdp: FiniteMDP, seed: int) -> None:
    q_hat = random_q(mdp, seed)
    assert decompose(mdp, q_hat, greedy(q_hat), optimal(mdp)[1]).optimisation_error <= 1e-9 * mdp.v_max


@settings(max_examples=60, deadline=None)
@given(mdps(), st.integers(1, 2000), seeds)
def test_pessimism_removes_false_correlation_on_the_event(mdp: FiniteMDP, size: int, seed: int) -> None:
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0]
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    width = uniform(estimate.visits, mdp.gamma, 0.1)
    q_hat, pi_hat = pessimistic_value_iteration(estimate, width)
    if event_holds(epistemic_error(mdp, estimate, q_hat), width):
        assert decompose(mdp, q_hat, pi_hat, optimal(mdp)[1]).false_correlation <= 1e-9


def test_greedy_has_positive_false_correlation_on_average() -> None:
    mdp = random_mdp(6, 3, 0.8, np.random.default_rng(0), 3)
    pi_star = optimal(mdp)[1]
    first = []
    for counts in draw_counts(mdp, behaviour_policy(mdp, 0.3), 100, 200, 0):
        q_hat, pi_hat = greedy_value_iteration(empirical_model(counts, mdp.R, mdp.gamma))
        first.append(decompose(mdp, q_hat, pi_hat, pi_star).false_correlation)
    assert np.mean(first) > 3 * np.std(first) / np.sqrt(len(first))


@settings(max_examples=60, deadline=None)
@given(mdps(), st.floats(0.0, 2.0), seeds)
def test_the_regularised_terms_sum_with_the_curvature(mdp: FiniteMDP, weight: float, seed: int) -> None:
    pi_0 = 0.5 * random_policy(mdp, seed) + 0.5 / mdp.actions
    pi_k = 0.9 * random_policy(mdp, seed + 1) + 0.1 / mdp.actions
    comparator = 0.9 * random_policy(mdp, seed + 2) + 0.1 / mdp.actions
    parts = decompose_regularised(mdp, random_q(mdp, seed), np.log(pi_k), comparator, pi_0, weight)
    assert abs(parts.total - parts.suboptimality) <= 1e-9 * max(1.0, mdp.v_max**2)
    assert parts.curvature <= 1e-12


@settings(max_examples=40, deadline=None)
@given(mdps(), st.floats(0.01, 3.0), seeds)
def test_no_policy_beats_the_regularised_optimum(mdp: FiniteMDP, weight: float, seed: int) -> None:
    pi_0 = 0.5 * random_policy(mdp, seed) + 0.5 / mdp.actions
    value, pi = regularised_optimum(mdp, pi_0, weight)
    np.testing.assert_allclose(regularised_value(mdp, pi, pi_0, weight), value, atol=1e-9)
    other = 0.9 * random_policy(mdp, seed + 1) + 0.1 / mdp.actions
    assert (regularised_value(mdp, other, pi_0, weight) <= value + 1e-9).all()
    assert (value <= optimal(mdp)[0].max(-1) + 1e-9).all()


def test_a_vanishing_weight_gives_the_plain_optimum() -> None:
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(1))
    pi_0 = behaviour_policy(mdp, 0.2)
    best = optimal(mdp)[0].max(-1)
    np.testing.assert_allclose(regularised_optimum(mdp, pi_0, 0.0)[0], best, atol=1e-10)
    np.testing.assert_allclose(regularised_optimum(mdp, pi_0, 1e-9)[0], best, atol=1e-6)
