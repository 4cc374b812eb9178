import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from score_rl.errors import InputError
from score_rl.paper.theory import precision
from score_rl.paper.theory.data import (
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
