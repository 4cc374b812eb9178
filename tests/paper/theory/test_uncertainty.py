import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from score_rl.errors import InputError
from score_rl.paper.theory.data import EmpiricalModel, draw_counts, empirical_model
from score_rl.paper.theory.estimates import (
    clopper_pearson,
    power_law_slope,
    rank_correlation,
)
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, optimal, optimality_fixed_point
from score_rl.paper.theory.uncertainty import (
    QUANTIFIERS,
    epistemic_error,
    event_holds,
    fixed_value,
    leave_one_out,
    quantifier,
    uniform,
)
from tests.paper.theory.instances import mdps, seeds


def test_the_widths_are_those_of_the_docstring() -> None:
    visits, gamma, xi = np.full((4, 2), 1e6), 0.5, 0.1
    v_max, n, total = 2.0, 1e6, 8e6
    hoeffding = gamma * v_max * np.sqrt(np.log(2 * 8 / xi) / (2 * n))
    np.testing.assert_allclose(fixed_value(visits, gamma, xi), hoeffding)
    net = gamma * v_max * (np.sqrt(np.log(2 * 8 * total / xi) / (2 * n)) + 0.5 / total)
    np.testing.assert_allclose(leave_one_out(visits, gamma, xi), net)
    corners = gamma * v_max * np.sqrt(np.log(8 * 2**4 / xi) / (2 * n))
    np.testing.assert_allclose(uniform(visits, gamma, xi), corners)


def test_values_that_span_more_need_wider_bounds() -> None:
    visits = np.full((4, 2), 1e6)
    np.testing.assert_allclose(uniform(visits, 0.5, 0.1, 6.0), 3.0 * uniform(visits, 0.5, 0.1), rtol=1e-12)
    np.testing.assert_allclose(uniform(0.0 * visits, 0.5, 0.1, 6.0), 6.0)


def test_the_event_is_exactly_that() -> None:
    width = np.array([[1.0, 2.0], [0.5, 3.0]])
    assert event_holds(width, width)
    assert event_holds(-width, width)
    assert event_holds(np.zeros((2, 2)), width)
    for place in np.ndindex(2, 2):
        error = width.copy()
        error[place] *= 1.0 + 1e-6
        assert not event_holds(error, width)
        assert not event_holds(-error, width)


def test_the_epistemic_error_by_hand() -> None:
    """One state, reward 1/2 known, γ = 1/2, Q = 3: BQ = 2 and, the action being unseen, B̂Q = 0."""
    mdp = FiniteMDP(np.ones((1, 1, 1)), np.array([[0.5]]), 0.5, np.ones(1))
    unseen = empirical_model(np.zeros((1, 1, 1)), mdp.R, mdp.gamma)
    assert epistemic_error(mdp, unseen, np.array([[3.0]])) == 2.0


@pytest.mark.parametrize("name", QUANTIFIERS)
def test_widths_shrink_with_data_and_never_exceed_the_range(name: str) -> None:
    visits = np.array([[0.0, 1.0, 10.0, 1e4, 1e8]])
    width = quantifier(name)(visits, 0.9, 0.05)[0]
    assert width[0] == pytest.approx(10.0)
    assert (np.diff(width) <= 0).all()
    assert width[1] == pytest.approx(9.0)


@settings(max_examples=40, deadline=None)
@given(mdps(), st.integers(1, 200), seeds)
def test_the_uniform_error_is_largest_at_a_corner(mdp: FiniteMDP, size: int, seed: int) -> None:
    """(P̂ - P)V over the box [0, V_max]^S is at most V_max max_B |P̂(B) - P(B)|: what the union bound runs over."""
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0]
    difference = empirical_model(counts, mdp.R, mdp.gamma).P - mdp.P
    sets = np.array(list(itertools.product([0.0, 1.0], repeat=mdp.states)))
    corner = mdp.v_max * np.abs(difference @ sets.T).max(-1)
    inside = np.random.default_rng(seed).random((50, mdp.states)) * mdp.v_max
    assert (np.abs(difference @ inside.T).max(-1) <= corner + 1e-9).all()


def pinned_fixed_point(estimate: EmpiricalModel, penalty: np.ndarray, state: int, value: float) -> np.ndarray:
    """V^{s,v}: value iteration with V(s) pinned to v, as in the leave-one-out argument."""
    v = np.zeros(estimate.R.shape[0])
    for _ in range(3000):
        q = np.maximum(estimate.R - penalty + estimate.gamma * (estimate.P @ v), 0.0)
        new = q.max(-1)
        new[state] = value
        if np.abs(new - v).max() < 1e-13:
            break
        v = new
    return new


@settings(max_examples=25, deadline=None)
@given(mdps(), st.integers(1, 300), seeds)
def test_the_leave_one_out_argument(mdp: FiniteMDP, size: int, seed: int) -> None:
    """V^{s,V̂(s)} = V̂; V^{s,v} is monotone and 1-Lipschitz in v, and does not see the rows of s."""
    rng = np.random.default_rng(seed)
    counts = draw_counts(mdp, behaviour_policy(mdp, 0.3), size, 1, seed)[0]
    estimate = empirical_model(counts, mdp.R, mdp.gamma)
    penalty = 0.2 * leave_one_out(estimate.visits, mdp.gamma, 0.1)
    v_hat = optimality_fixed_point(estimate, penalty, floor=0.0).max(-1)
    s = int(rng.integers(mdp.states))
    np.testing.assert_allclose(pinned_fixed_point(estimate, penalty, s, v_hat[s]), v_hat, atol=1e-8)
    low, high = np.sort(rng.random(2) * mdp.v_max)
    below, above = (pinned_fixed_point(estimate, penalty, s, v) for v in (low, high))
    assert (above - below >= -1e-9).all()
    assert (above - below <= high - low + 1e-9).all()
    other_rows = estimate.P.copy()
    other_rows[s] = rng.dirichlet(np.ones(mdp.states), size=mdp.actions)
    changed = estimate._replace(P=other_rows)
    np.testing.assert_allclose(pinned_fixed_point(changed, penalty, s, low), below, atol=1e-9)


@pytest.mark.parametrize("name", QUANTIFIERS)
def test_the_event_has_its_stated_probability(name: str) -> None:
    mdp = random_mdp(4, 2, 0.8, np.random.default_rng(5), 2)
    xi, held = 0.3, []
    q_star = optimal(mdp)[0]
    for counts in draw_counts(mdp, behaviour_policy(mdp, 0.3), 400, 300, 1):
        estimate = empirical_model(counts, mdp.R, mdp.gamma)
        width = quantifier(name)(estimate.visits, mdp.gamma, xi)
        q = q_star if name == "fixed_value" else optimality_fixed_point(estimate, width, floor=0.0)
        held.append(bool(event_holds(epistemic_error(mdp, estimate, q), width)))
    assert clopper_pearson(sum(held), len(held))[0] >= 1 - xi


def test_bad_confidence_and_names_are_refused() -> None:
    for xi in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="ξ"):
            uniform(np.ones((2, 2)), 0.9, xi)
    with pytest.raises(InputError, match="did you mean 'uniform'"):
        quantifier("unifrom")


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (990, 1000)])
def test_clopper_pearson_against_beta_quantiles(k: int, n: int) -> None:
    low, high = clopper_pearson(k, n)
    assert low == pytest.approx(0.0 if k == 0 else stats.beta.ppf(0.025, k, n - k + 1), abs=1e-9)
    assert high == pytest.approx(1.0 if k == n else stats.beta.ppf(0.975, k + 1, n - k), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20))
def test_rank_correlation_against_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    ours = rank_correlation(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_fits_and_refusals() -> None:
    x = np.array([1.0, 10.0, 100.0])
    assert power_law_slope(x, 3.0 * x**-0.5) == pytest.approx((-0.5, 3.0))
    for call in (
        lambda: clopper_pearson(3, 2),
        lambda: power_law_slope(x, -x),
        lambda: rank_correlation(x, x[:2]),
    ):
        with pytest.raises(InputError):
            call()
