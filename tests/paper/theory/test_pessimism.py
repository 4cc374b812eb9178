import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.errors import InputError
from score_rl.paper.theory import precision
from score_rl.paper.theory.data import (
    EmpiricalModel,
    Samples,
    check_counts,
    data_distribution,
    draw_counts,
    draw_samples,
    empirical_model,
    transition_counts,
)
from score_rl.paper.theory.examples import behaviour_policy, cautious_driver, chain, lucky_green_lights
from score_rl.paper.theory.mdp import FiniteMDP, bellman_optimality, optimal
from score_rl.paper.theory.pessimism import (
    greedy_value_iteration,
    judge_data_set,
    judge_data_sets,
    pessimistic_operator,
    pessimistic_value_iteration,
    suboptimality_bound,
)
from score_rl.paper.theory.uncertainty import leave_one_out
from tests.paper.theory.instances import mdps, seeds


def test_counts_of_samples_and_drawn_counts_agree_with_the_distribution() -> None:
    mdp = chain()
    behaviour = behaviour_policy(mdp, 0.3)
    joint = data_distribution(mdp, behaviour)
    assert joint.sum() == pytest.approx(1.0)
    samples = draw_samples(mdp, behaviour, 20_000, np.random.default_rng(0))
    assert samples.size == 20_000
    np.testing.assert_allclose(transition_counts(samples, mdp) / 20_000, joint, atol=0.02)
    drawn = draw_counts(mdp, behaviour, [50, 20_000], 3, 0)
    np.testing.assert_array_equal(drawn.sum((1, 2, 3)), [50] * 3 + [20_000] * 3)
    np.testing.assert_allclose(drawn[-1] / 20_000, joint, atol=0.02)


def test_the_empirical_model_averages_and_is_silent_about_the_unseen() -> None:
    mdp = chain(3)
    counts = np.zeros(mdp.P.shape)
    counts[0, 1, 1], counts[0, 1, 0] = 3.0, 1.0
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    np.testing.assert_allclose(estimate.P[0, 1], [0.25, 0.75, 0.0])
    assert estimate.visits.sum() == 4
    assert bellman_optimality(estimate, np.ones_like(mdp.R))[2, 1] == 0.0


@settings(max_examples=60, deadline=None)
@given(mdps(), st.integers(1, 500), seeds)
def test_fixed_points_of_the_empirical_and_the_pessimistic_operator(mdp: FiniteMDP, size: int, seed: int) -> None:
    estimate = empirical_model(draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0], mdp.R, mdp.gamma)
    width = leave_one_out(estimate.visits, mdp.gamma, 0.2)
    q_greedy, _ = greedy_value_iteration(estimate)
    q_hat, _ = pessimistic_value_iteration(estimate, width)
    np.testing.assert_allclose(bellman_optimality(estimate, q_greedy), q_greedy, atol=1e-9)
    np.testing.assert_allclose(pessimistic_operator(estimate, q_hat, width), q_hat, atol=1e-9)
    assert (q_hat <= q_greedy + 1e-9).all()
    assert q_hat.min() >= 0.0
    assert q_hat.max() <= mdp.v_max + 1e-9


@settings(max_examples=60, deadline=None)
@given(mdps(), st.integers(1, 3000), st.floats(0.01, 1.0), seeds)
def test_what_follows_from_the_event(mdp: FiniteMDP, size: int, scale: float, seed: int) -> None:
    """Whatever U is: if |B̂Q̂ - BQ̂| ≤ U, then 0 ≤ ι ≤ 2U and the suboptimality is under its bound."""
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0]
    judged = judge_data_set(mdp, counts, 0.1, scale=scale)
    if judged.event:
        assert judged.smallest_iota >= -1e-9
        assert judged.largest_excess <= 1e-9
        assert judged.pessimistic.suboptimality <= judged.bound + 1e-9


def two_roads() -> FiniteMDP:
    """State 0 chooses between an absorbing state that pays 1 and one that pays nothing; γ = 1/2."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1, :, 1] = P[2, :, 2] = 1.0
    R = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    return FiniteMDP(P, R, 0.5, np.array([1.0, 0.0, 0.0]))


def test_the_bound_by_hand() -> None:
    """π* visits state 0 once and state 1 with total weight γ/(1-γ) = 1: 2(U(0, 0) + U(1, 0))."""
    mdp = two_roads()
    width = np.array([[0.25, 9.0], [0.5, 9.0], [9.0, 9.0]])
    assert suboptimality_bound(mdp, width, optimal(mdp)[1]) == pytest.approx(1.5)


def test_what_is_judged_of_a_data_set_by_hand() -> None:
    """The data know everything but the bad road, which is never taken: each number of `Judged` from its definition."""
    mdp = two_roads()
    counts = 400.0 * mdp.P
    counts[0, 1] = 0.0
    judged = judge_data_set(mdp, counts, 0.1)
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    width = leave_one_out(estimate.visits, mdp.gamma, 0.1)
    q, _ = pessimistic_value_iteration(estimate, width)
    iota = mdp.R + 0.5 * mdp.P @ q.max(-1) - q
    np.testing.assert_allclose(judged.smallest_iota, iota.min(), atol=1e-12)
    np.testing.assert_allclose(judged.largest_excess, (iota - 2 * width).max(), atol=1e-12)
    assert q[0, 1] == 0.0  # the unknown road is clipped, so that ι there is BQ̂ = γ V̂(2) and not U
    assert iota[0, 0] == pytest.approx(width[0, 0])  # where P̂ = P and nothing is clipped, ι = U: (i) is -Σ γ^t U
    assert judged.pessimistic.false_correlation == pytest.approx(-(width[0, 0] + width[1, 0]))
    assert judged.pessimistic.intrinsic_uncertainty == pytest.approx(width[0, 0] + width[1, 0])
    assert judged.pessimistic.suboptimality == pytest.approx(0.0, abs=1e-12)
    assert judged.bound == pytest.approx(2 * (width[0, 0] + width[1, 0]))
    assert judged.ratio == pytest.approx(0.0, abs=1e-12)


def test_a_multiple_of_the_width_leaves_what_was_never_seen_at_its_range() -> None:
    """The good road was never taken. What is unknown of it is at most V_max = 2, whatever the multiple of U is."""
    mdp = two_roads()
    counts = 1e8 * mdp.P
    counts[0, 0] = 0.0
    judged = judge_data_set(mdp, counts, 0.1, scale=0.1)
    width = leave_one_out(counts.sum(-1), mdp.gamma, 0.1)
    assert judged.bound == pytest.approx(2 * (2.0 + 0.1 * width[1, 0]))
    assert judged.event  # |B̂Q̂ - BQ̂| is about 1 there, which a tenth of V_max would not cover
    assert judged.ratio == pytest.approx(0.0, abs=1e-9)  # over visited pairs, where P̂ = P


def test_iota_reaches_twice_the_width() -> None:
    """Where the sample mean is too low by exactly U, ι = BQ̂ - B̂Q̂ + U = 2U: the second half of the bound is sharp."""
    mdp = two_roads()
    P = mdp.P.copy()
    P[0, 0] = [0.0, 0.75, 0.25]  # a quarter too few arrivals at the good state
    estimate = EmpiricalModel(P, mdp.R, 0.5, np.ones((3, 2)))
    width = np.full((3, 2), 1e-9)
    width[0, 0] = 0.25 * 0.5 * 2.0
    q, _ = pessimistic_value_iteration(estimate, width)
    iota = bellman_optimality(mdp, q) - pessimistic_operator(estimate, q, width)
    assert iota[0, 0] == pytest.approx(2 * width[0, 0], rel=1e-6)


def test_jax_over_many_data_sets_agrees_with_numpy_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = chain(4, gamma=0.8)
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), [20, 5000], 4, 0)
    scales = np.linspace(0.1, 1.0, len(counts))
    one_by_one = judge_data_sets(mdp, counts, 0.1, "uniform", scales)
    monkeypatch.setattr(precision, "FEW_SETS", 0)
    together = judge_data_sets(mdp, counts, 0.1, "uniform", scales)
    for a, b in zip(one_by_one[:7] + one_by_one[7], together[:7] + together[7], strict=True):
        assert b.dtype in (np.float64, np.bool_)
        np.testing.assert_allclose(a, b, atol=1e-10)
    import jax.numpy as jnp

    assert jnp.ones(1).dtype == jnp.float32  # double precision stayed in its scope


def test_luck_fools_greedy_and_not_pessimism() -> None:
    mdp = lucky_green_lights()
    avenue = mdp.actions - 1
    judged = judge_data_sets(mdp, draw_counts(mdp, cautious_driver(mdp), 2000, 60, 0), 0.1, scale=0.05)
    greedy_share, pessimistic_share = (judged.first_action == avenue).mean(0)
    assert greedy_share < 0.6
    assert pessimistic_share == 1.0
    assert judged.greedy.false_correlation.mean() > 0
    assert judged.pessimistic.suboptimality.mean() < judged.greedy.suboptimality.mean()
    assert optimal(mdp)[1][0, avenue] == 1.0


def test_bad_data_are_refused() -> None:
    mdp = chain(3)
    one = np.array([0])
    for call in (
        lambda: Samples(one[:0], one[:0], one[:0], one[:0]),
        lambda: Samples(one, one, one, np.array([0.0, 1.0])),
        lambda: Samples(one, one, one, np.array([np.nan])),
        lambda: transition_counts(Samples(one + 3, one, one, one), mdp),
        lambda: transition_counts(Samples(one, one - 1, one, one), mdp),
        lambda: transition_counts(Samples(one, one, one + 9, one), mdp),
        lambda: draw_samples(mdp, behaviour_policy(mdp, 0.1), 0, np.random.default_rng(0)),
        lambda: draw_counts(mdp, behaviour_policy(mdp, 0.1), 0, 1, 0),
        lambda: draw_counts(mdp, np.ones((3, 2)), 5, 1, 0),
        lambda: check_counts(mdp, np.zeros(mdp.P.shape)),
        lambda: check_counts(mdp, -np.ones(mdp.P.shape)),
        lambda: check_counts(mdp, np.full(mdp.P.shape, np.nan)),
        lambda: check_counts(mdp, np.ones((2, 2, 2))),
        lambda: judge_data_sets(mdp, np.zeros((1, *mdp.P.shape)), 0.1),
    ):
        with pytest.raises(InputError):
            call()
