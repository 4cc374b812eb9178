"""Theo-SCORE's three forms against their definitions, its own bound, and the lower bound by hand."""

import math

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.lower_bound import (
    greedy_rule,
    hardest_pair,
    hoeffding_width,
    least_worst_loss,
    loss,
    pessimistic_rule,
    wins,
    worst_loss,
)
from score_rl.paper.theory.mdp import FiniteMDP, action_value
from score_rl.paper.theory.opo import opo_step
from score_rl.paper.theory.rate import gaps_against_iterations
from score_rl.paper.theory.regularised import (
    kl_from_logs,
    log_softmax,
    regularised_greedy,
    regularised_optimum,
    regularised_value,
    softmax_policy,
)
from score_rl.paper.theory.theo_score import FORMS, SMALLEST, maximised_bound, total_weights


@pytest.fixture(scope="module")
def problem() -> tuple[FiniteMDP, np.ndarray]:
    mdp = random_mdp(4, 3, 0.8, np.random.default_rng(3))
    return mdp, behaviour_policy(mdp, 0.3)


def test_weights_by_hand() -> None:
    np.testing.assert_allclose(total_weights("maximised", 0.5, 3, 9.0), [1.0, 0.5, 0.25])
    np.testing.assert_allclose(total_weights("stepped", 0.5, 3, 9.0), [8.0, 8.5, 8.75])
    np.testing.assert_allclose(total_weights("opo", 0.5, 3, 9.0), [9.0, 9.0, 9.0])
    assert total_weights("maximised", 0.5, 100, 9.0)[-1] == SMALLEST
    for form, eta in (("stepped", 1.0), ("stepped", 0.5), ("steped", 9.0)):
        with pytest.raises(InputError):
            total_weights(form, 0.5, 3, eta)


def test_the_stepped_form_is_the_natural_gradient_of_the_objective(problem: tuple[FiniteMDP, np.ndarray]) -> None:
    """Differences of ⟨Q, π_f⟩ - λ KL(π_f ‖ π_0) in the energies f, times the inverse Fisher information of softmax."""
    _, pi_0 = problem
    rng, eta, weight = np.random.default_rng(0), 5.0, 0.5
    q, energy, log_0 = rng.random((1, 3)) * 5, rng.normal(size=(1, 3)), np.log(pi_0[:1])

    def objective(f: np.ndarray) -> float:
        log_pi = log_softmax(f)
        return float(((q * np.exp(log_pi)).sum(-1) - weight * kl_from_logs(log_pi, log_0))[0])

    slope = np.array([(objective(energy + e) - objective(energy - e)) / 2e-5 for e in 1e-5 * np.eye(3)[:, None, :]])
    pi = softmax_policy(energy)[0]
    fisher = np.diag(pi) - np.outer(pi, pi)
    stepped = energy + np.linalg.pinv(fisher) @ slope / (eta - weight)
    (total,) = total_weights("stepped", weight, 2, eta)[1:]  # λ_1 = 1/2
    ours = opo_step(q, energy, log_0, total - weight, weight)
    np.testing.assert_allclose(softmax_policy(ours), softmax_policy(stepped), atol=1e-7)
    assert np.abs(softmax_policy(ours) - softmax_policy(opo_step(q, energy, log_0, eta - weight, weight))).max() > 1e-3


def test_the_runs_are_the_forms(problem: tuple[FiniteMDP, np.ndarray]) -> None:
    """The compiled program against iterations written out, for the maximised form."""
    mdp, pi_0 = problem
    pi, gaps = pi_0, []
    for k in range(6):
        best, value = regularised_optimum(mdp, pi_0, 0.7**k)[0], regularised_value(mdp, pi, pi_0, 0.7**k)
        gaps.append(float(mdp.d0 @ (best - value)))
        pi = regularised_greedy(action_value(mdp, regularised_value(mdp, pi, pi_0, 0.7**k)), pi_0, 0.7**k)
    found = gaps_against_iterations(mdp, pi_0, 0.7, [6], total_weights("maximised", 0.7, 6, 9.0)[None])
    assert found.average[0] == pytest.approx(np.mean(gaps), abs=1e-10)
    assert found.smallest[0] == pytest.approx(min(gaps), abs=1e-10)


def test_the_bound_of_the_maximised_form_by_hand() -> None:
    """γ = 1/2, α = 1/4, ℓ = 1: 2, then 1 + (3/4)·2, then half of that and (3/16)·2."""
    np.testing.assert_allclose(maximised_bound(0.5, 0.25, 1.0, 3), [2.0, 2.5, 1.25 + 0.375])


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.96])
def test_the_maximised_form_is_under_its_bound_in_every_state(alpha: float) -> None:
    for seed in range(5):
        mdp = random_mdp(4, 3, 0.8, np.random.default_rng(seed), 2)
        pi_0 = behaviour_policy(mdp, 0.8, floor=0.01)
        bound = maximised_bound(mdp.gamma, alpha, -math.log(pi_0.min()), 15)
        pi = pi_0
        for k in range(15):
            gap = regularised_optimum(mdp, pi_0, alpha**k)[0] - regularised_value(mdp, pi, pi_0, alpha**k)
            assert gap.max() <= bound[k] + 1e-9
            pi = regularised_greedy(action_value(mdp, regularised_value(mdp, pi, pi_0, alpha**k)), pi_0, alpha**k)


def test_the_last_policy_of_every_form_gets_better_with_the_number_of_iterations(
    problem: tuple[FiniteMDP, np.ndarray],
) -> None:
    mdp, pi_0 = problem
    for form in FORMS:
        weights = np.stack([total_weights(form, 0.5, 64, eta) for eta in (2.0, 8.0)])
        found = gaps_against_iterations(mdp, pi_0, 0.5, [4, 64], weights)
        assert found.last_plain[1] < 0.5 * found.last_plain[0]


def test_the_lower_bound_of_one_sample_by_hand() -> None:
    """n = 1: the losing side has probability 1/2 - δ, so the loss is δ(1/2 - δ), largest at δ = 1/4."""
    np.testing.assert_allclose(wins(1, 0.3), [0.7, 0.3])
    np.testing.assert_allclose(wins(3, 1.0), [0, 0, 0, 1])
    assert least_worst_loss(1, 0.1) == pytest.approx(0.04)
    delta, least = hardest_pair(1)
    assert delta == pytest.approx(0.25, abs=2e-3)
    assert least == pytest.approx(1 / 16, rel=1e-4)


def test_rules_and_their_losses_by_hand() -> None:
    """Four samples. Pessimism with U = 0.2 asks for a mean above 0.7: three wins or four."""
    np.testing.assert_allclose(greedy_rule(4), [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(pessimistic_rule(4, 0.2), [0, 0, 0, 1, 1])
    np.testing.assert_allclose(pessimistic_rule(4, 0.3), [0, 0, 0, 0, 1])
    three_or_four = 4 * 0.75**3 * 0.25 + 0.75**4
    assert loss(pessimistic_rule(4, 0.2), 0.75) == pytest.approx(0.25 * (1 - three_or_four))
    assert loss(pessimistic_rule(4, 0.2), 0.25) == pytest.approx(0.25 * (4 * 0.25**3 * 0.75 + 0.25**4))


@pytest.mark.parametrize("trials", [1, 2, 7])
def test_no_rule_beats_it_and_the_majority_attains_it(trials: int) -> None:
    delta, least = hardest_pair(trials)
    pair = (0.5 - delta, 0.5 + delta)
    assert max(loss(greedy_rule(trials), p) for p in pair) == pytest.approx(least, abs=1e-14)
    rng = np.random.default_rng(trials)
    for rule in [pessimistic_rule(trials, hoeffding_width(trials, 0.1)), *rng.random((10, trials + 1))]:
        assert max(loss(rule, p) for p in pair) >= least - 1e-14
        assert worst_loss(rule) >= least - 1e-4


def test_it_falls_like_one_over_root_n() -> None:
    ratios = [hardest_pair(n)[1] * math.sqrt(n) for n in (64, 256)]
    np.testing.assert_allclose(ratios, 0.085, atol=0.002)
    assert hardest_pair(256)[0] * 16 == pytest.approx(0.38, abs=0.02)
    assert hoeffding_width(200, 0.1) == pytest.approx(math.sqrt(math.log(20) / 400))
