import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory import linear, precision
from score_rl.paper.theory.data import draw_counts, draw_samples, transition_counts
from score_rl.paper.theory.examples import behaviour_policy
from score_rl.paper.theory.linear import (
    LinearMDP,
    judge_linear_data_sets,
    linear_mdp,
    random_linear_mdp,
    ridge_value_iteration,
    ridge_width,
)
from score_rl.paper.theory.mdp import bellman_optimality, optimal, visitation
from score_rl.paper.theory.studies.linear import blind_sizes
from score_rl.paper.theory.studies.over_data_sets import only


@pytest.fixture(scope="module")
def problem() -> LinearMDP:
    return random_linear_mdp(6, 3, 3, 0.8, np.random.default_rng(0))


def test_the_bellman_operator_of_a_linear_mdp_is_linear_in_the_features(problem: LinearMDP) -> None:
    q = np.random.default_rng(1).random(problem.mdp.R.shape)
    weights = problem.rewards + problem.mdp.gamma * problem.anchors @ q.max(-1)
    np.testing.assert_allclose(problem.features @ weights, bellman_optimality(problem.mdp, q), atol=1e-12)


def test_ridge_regression_sample_by_sample(problem: LinearMDP) -> None:
    """The counts' closed form against the textbook sum over samples, at the fixed point."""
    samples = draw_samples(problem.mdp, behaviour_policy(problem.mdp, 0.2), 400, np.random.default_rng(2))
    counts = transition_counts(samples, problem.mdp)
    fit = ridge_value_iteration(problem, counts, 0.7, kappa=0.5)
    phi = problem.features[samples.s, samples.a]
    gram = phi.T @ phi + 0.5 * np.eye(3)
    target = samples.r + problem.mdp.gamma * fit.q.max(-1)[samples.s_next]
    np.testing.assert_allclose(fit.estimate, problem.features @ np.linalg.solve(gram, phi.T @ target), atol=1e-10)
    norm = np.sqrt(np.einsum("sad,de,sae->sa", problem.features, np.linalg.inv(gram), problem.features))
    np.testing.assert_allclose(fit.width, 0.7 * norm, atol=1e-12)
    assert fit.residual < 1e-10


def test_values_stay_within_their_range_where_the_ridge_goes_beyond() -> None:
    """Two recorded pairs of similar features: V(1) is cut at V_max = 5, so V(0) = 0.6 + γ·5 = 4.6 and the other pair
    is worth 0.5 + γ·4.6 = 4.18. At features (1, 0) the fit extrapolates to 4.18 + 5·0.42 = 6.28.
    """
    features = np.array([[[0.5, 0.5], [0.6, 0.4]], [[1.0, 0.0], [0.0, 1.0]]])
    known = linear_mdp(features, np.full((2, 2), 0.5), np.array([1.0, 0.0]), 0.8, np.array([1.0, 0.0]))
    counts = np.zeros((2, 2, 2))
    counts[0, 0, 0] = counts[0, 1, 1] = 10.0
    fit = ridge_value_iteration(known, counts, 0.0, kappa=1e-6)
    np.testing.assert_allclose(fit.estimate, [[4.18, 4.6], [6.28, 2.08]], atol=1e-4)
    np.testing.assert_allclose(fit.q, [[4.18, 4.6], [5.0, 2.08]], atol=1e-4)


def test_much_data_and_no_penalty_give_the_optimum(problem: LinearMDP) -> None:
    counts = draw_counts(problem.mdp, behaviour_policy(problem.mdp, 0.0), 10**9, 1, 0)[0]
    fit = ridge_value_iteration(problem, counts, 1.0, scale=0.0)
    np.testing.assert_allclose(fit.q, optimal(problem.mdp)[0], atol=2e-3)


def test_the_event_and_what_follows(problem: LinearMDP, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = draw_counts(problem.mdp, behaviour_policy(problem.mdp, 0.0), [200, 100_000], 20, 0)
    judged = judge_linear_data_sets(problem, counts, 0.1)
    assert judged.event.all()
    assert judged.smallest_iota.min() >= -1e-9
    assert judged.largest_excess.max() <= 1e-9
    assert (judged.pessimistic.suboptimality <= judged.bound + 1e-9).all()
    assert (judged.pessimistic.false_correlation <= 1e-9).all()
    assert np.abs(judged.pessimistic.total - judged.pessimistic.suboptimality).max() <= 1e-9
    monkeypatch.setattr(precision, "FEW_SETS", 0)
    together = judge_linear_data_sets(problem, counts[:3], 0.1)
    np.testing.assert_allclose(together.ratio, judged.ratio[:3], atol=1e-10)


def test_what_is_judged_of_a_data_set_with_a_width_that_is_too_small(
    problem: LinearMDP, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the derived width the event always holds; with a small one each number is checked by its definition."""
    multiple, mdp = 0.2, problem.mdp
    monkeypatch.setattr(linear, "ridge_width", lambda *_: multiple)
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.0), [200, 2000], 10, 0)
    judged = judge_linear_data_sets(problem, counts, 0.1)
    assert set(judged.event) == {False, True}
    assert ((judged.ratio > 1.0) & (judged.ratio < 10.0) & ~judged.event).any()
    along_star = visitation(mdp, optimal(mdp)[1], mdp.d0)
    for i, data in enumerate(counts):
        fit = ridge_value_iteration(problem, data, multiple)
        truth = bellman_optimality(mdp, fit.q)
        error = np.abs(truth - fit.estimate)
        assert judged.event[i] == (error <= fit.width).all()
        assert judged.ratio[i] == pytest.approx((error / fit.width).max())
        assert judged.largest_value[i] == pytest.approx(fit.q.max())
        assert judged.bound[i] == pytest.approx(2 * (along_star * fit.width).sum())
        assert judged.smallest_iota[i] == pytest.approx((truth - fit.q).min())
        assert judged.largest_excess[i] == pytest.approx((truth - fit.q - 2 * fit.width).max())


def test_where_the_width_exceeds_every_value_the_data_are_not_looked_at(problem: LinearMDP) -> None:
    """The curve of the event is a step there: what errs is the ridge's bias on known rewards, nearly a constant."""
    sizes = [200, 10_000_000]
    counts = draw_counts(problem.mdp, behaviour_policy(problem.mdp, 0.0), sizes, 10, 0)
    judged = judge_linear_data_sets(problem, counts, 0.1)
    few, many = (only(judged, slice(i * 10, (i + 1) * 10)) for i in range(2))
    assert blind_sizes(sizes, [few, many]) == [200]
    assert (few.largest_value == 0.0).all()
    assert (many.largest_value > 0.0).all()
    assert np.ptp(few.ratio) < 0.25 * few.ratio.mean()
    assert np.ptp(many.ratio) > 0.5 * many.ratio.mean()


def test_the_width_is_the_docstrings() -> None:
    n, d, gamma, xi, kappa = 1000, 3, 0.8, 0.1, 2.0
    logs = 2 * np.log(1 / xi) + 2 * d * np.log(1 + 2 * n * np.sqrt(n / kappa)) + d * np.log(1 + n / (kappa * d))
    expected = 0.5 * 0.8 * 5 * np.sqrt(logs) + 2 * 0.8 * 5 / np.sqrt(n) + np.sqrt(kappa * d) * 5
    assert ridge_width(n, d, gamma, xi, kappa) == pytest.approx(expected)


def test_what_is_no_linear_mdp_is_refused(problem: LinearMDP) -> None:
    features, anchors, rewards, start = problem.features, problem.anchors, problem.rewards, problem.mdp.d0
    for call in (
        lambda: linear_mdp(features * 2, anchors, rewards, 0.8, start),
        lambda: linear_mdp(features, anchors[:2], rewards, 0.8, start),
        lambda: linear_mdp(features, anchors, rewards[:2], 0.8, start),
        lambda: linear_mdp(features, anchors, rewards, 1.0, start),
        lambda: linear_mdp(features[0], anchors, rewards, 0.8, start),
        lambda: ridge_width(0, 3, 0.8, 0.1),
        lambda: ridge_width(10, 3, 0.8, 0.1, kappa=0.0),
        lambda: judge_linear_data_sets(problem, np.zeros((1, *problem.mdp.P.shape)), 0.1),
    ):
        with pytest.raises(InputError):
            call()
