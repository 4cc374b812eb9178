from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from score_rl.errors import InputError
from score_rl.paper.theory.examples import (
    behaviour_policy,
    cautious_driver,
    chain,
    gridworld,
    lucky_green_lights,
    random_mdp,
)
from score_rl.paper.theory.mdp import (
    FiniteMDP,
    action_value,
    bellman_evaluation,
    bellman_optimality,
    check_policy,
    greedy,
    occupancy,
    optimal,
    optimality_fixed_point,
    policy_value,
    visitation,
)
from tests.paper.theory.instances import mdps, random_policy, seeds


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds)
def test_value_solves_its_bellman_equation(mdp: FiniteMDP, seed: int) -> None:
    pi = random_policy(mdp, seed)
    q = action_value(mdp, policy_value(mdp, pi))
    np.testing.assert_allclose(bellman_evaluation(mdp, q, pi), q, atol=1e-10)
    assert q.min() >= -1e-12
    assert q.max() <= mdp.v_max + 1e-10


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds)
def test_occupancy_is_a_distribution_that_prices_rewards(mdp: FiniteMDP, seed: int) -> None:
    pi = random_policy(mdp, seed)
    d = occupancy(mdp, pi, mdp.d0)
    assert d.min() >= -1e-15
    assert d.sum() == pytest.approx(1.0, abs=1e-12)
    assert (visitation(mdp, pi, mdp.d0) * mdp.R).sum() == pytest.approx(mdp.d0 @ policy_value(mdp, pi), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds)
def test_the_optimum_is_a_fixed_point_no_policy_beats(mdp: FiniteMDP, seed: int) -> None:
    q, pi = optimal(mdp)
    np.testing.assert_allclose(bellman_optimality(mdp, q), q, atol=1e-9)
    np.testing.assert_allclose(policy_value(mdp, pi), q.max(-1), atol=1e-9)
    assert (policy_value(mdp, random_policy(mdp, seed)) <= q.max(-1) + 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(mdps(), seeds)
def test_penalised_and_clipped_fixed_point(mdp: FiniteMDP, seed: int) -> None:
    penalty = np.random.default_rng(seed).random(mdp.R.shape) * 2.0
    q = optimality_fixed_point(mdp, penalty, floor=0.0)
    np.testing.assert_allclose(q, np.maximum(bellman_optimality(mdp, q) - penalty, 0.0), atol=1e-9)


def test_value_matches_a_simulated_sum() -> None:
    mdp = chain(4, gamma=0.7)
    pi = behaviour_policy(mdp, 0.5)
    distribution, total = mdp.d0, 0.0
    for t in range(200):
        total += 0.7**t * (distribution[:, None] * pi * mdp.R).sum()
        distribution = np.einsum("s,sa,sax->x", distribution, pi, mdp.P)
    assert mdp.d0 @ policy_value(mdp, pi) == pytest.approx(total, abs=1e-12)


def test_the_avenue_is_best_and_never_favoured_by_ties() -> None:
    mdp = lucky_green_lights()
    q, pi = optimal(mdp)
    assert pi[0].argmax() == mdp.actions - 1
    assert np.ptp(q[0, :-1]) < 1e-12
    assert q[0, -1] == pytest.approx(0.7 * 0.8**4)  # 0.287, as docs/theory.md has it
    red = 0.25 * 0.2 * (0.8**2 + 0.75 * 0.8**3 + 0.75**2 * 0.8**4)
    assert q[0, 0] == pytest.approx(0.75**3 * 0.8**4 + red)  # 0.236
    assert greedy(np.zeros_like(q))[0].argmax() == 0
    check_policy(mdp, cautious_driver(mdp))


@pytest.mark.parametrize("mdp", [chain(), gridworld(), lucky_green_lights()], ids=lambda m: m.name)
def test_behaviour_policies_have_full_support_and_are_worse(mdp: FiniteMDP) -> None:
    pi = behaviour_policy(mdp, 0.4)
    assert pi.min() > 0
    assert mdp.d0 @ policy_value(mdp, pi) < mdp.d0 @ optimal(mdp)[0].max(-1)


P = np.full((2, 2, 2), 0.5)
R = np.zeros((2, 2))
START = np.array([1.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((P * 0.9, R, 0.9, START), "not stochastic"),
        ((P * np.array([3.0, -1.0]), R, 0.9, START), "not stochastic"),
        ((np.full((2, 2, 2), np.nan), R, 0.9, START), "NaN"),
        ((P[:, :, :1], R, 0.9, START), "shape"),
        ((P, R[:1], 0.9, START), "shape"),
        ((P, R + 2.0, 0.9, START), "within \\[0, 1\\]"),
        ((P, R * np.nan, 0.9, START), "within \\[0, 1\\]"),
        ((P, R, 1.0, START), "γ"),
        ((P, R, 0.0, START), "γ"),
        ((P, R, float("nan"), START), "γ"),
        ((P, R, 0.9, START * 0.5), "d_0"),
    ],
)
def test_bad_mdps_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        FiniteMDP(*arguments)


def test_bad_arguments_are_refused() -> None:
    mdp = chain()
    for call in (
        lambda: check_policy(mdp, np.ones((6, 2))),
        lambda: check_policy(mdp, np.ones((2, 6)) / 6),
        lambda: random_mdp(0, 2, 0.9, np.random.default_rng(0)),
        lambda: chain(1),
        lambda: gridworld(1),
        lambda: lucky_green_lights(green=1.0),
        lambda: behaviour_policy(mdp, 1.5),
        lambda: cautious_driver(mdp, 1.0),
    ):
        with pytest.raises(InputError):
            call()
