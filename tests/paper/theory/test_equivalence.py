import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory.equivalence import (
    LinearProblem,
    check_problem,
    deterministic_gradient,
    explicit_natural_step,
    fisher,
    lemma_residual,
    lemma_right_side,
    policy,
    random_problem,
    score_gradient,
    stationary_point,
)
from score_rl.paper.theory.opo import opo_step
from score_rl.paper.theory.regularised import kl, softmax_policy


@pytest.mark.parametrize("seed", range(8))
def test_the_stationary_point_satisfies_the_lemma(seed: int) -> None:
    assert lemma_residual(random_problem(np.random.default_rng(seed))) <= 1e-8


def test_other_points_do_not_satisfy_it() -> None:
    problem = random_problem(np.random.default_rng(0))
    assert np.abs(problem.phi_k - lemma_right_side(problem, problem.phi_k)).max() > 1e-2


def test_gradients_against_differences() -> None:
    problem = random_problem(np.random.default_rng(1))
    phi = problem.phi_k

    def value(phi: np.ndarray) -> float:
        pi = policy(problem, phi)
        return problem.states @ np.einsum("sa,am,sm->s", pi, problem.actions, problem.theta)

    def score(phi: np.ndarray) -> float:
        pi = policy(problem, phi)
        return value(phi) - problem.lambda_k * problem.states @ kl(pi, policy(problem, problem.phi_0))

    steps = 1e-6 * np.eye(len(phi))
    for function, gradient in ((value, deterministic_gradient), (score, score_gradient)):
        slope = [(function(phi + e) - function(phi - e)) / 2e-6 for e in steps]
        np.testing.assert_allclose(gradient(problem, phi), slope, atol=1e-8)
    assert np.linalg.eigvalsh(fisher(problem, phi)).min() > 0


def test_opo_is_an_implicit_natural_gradient_step() -> None:
    problem = random_problem(np.random.default_rng(2))
    phi = stationary_point(problem)
    direction = np.linalg.solve(fisher(problem, phi), score_gradient(problem, phi))
    np.testing.assert_allclose(phi, problem.phi_k + direction / problem.eta_k, atol=1e-8)
    far, near = (
        np.abs(explicit_natural_step(p) - stationary_point(p)).max()
        for p in (problem._replace(eta_k=1e2), problem._replace(eta_k=1e3))
    )
    assert far / near == pytest.approx(100, rel=0.05)


def test_with_features_that_hold_the_critic_it_is_the_closed_form() -> None:
    """ψ(s, a) = e_s ⊗ a represents Q_k = θ_k(s)ᵀa: then the best φ gives the best policy of all."""
    rng = np.random.default_rng(3)
    states, actions, dims = 3, 5, 2
    vectors = rng.normal(size=(actions, dims))
    psi = np.einsum("st,am->satm", np.eye(states), vectors).reshape(states, actions, states * dims)
    problem = LinearProblem(
        psi,
        vectors,
        rng.normal(size=(states, dims)),
        rng.dirichlet(np.ones(states)),
        rng.normal(size=states * dims),
        rng.normal(size=states * dims),
        0.4,
        0.8,
    )
    q = problem.theta @ vectors.T
    best = softmax_policy(opo_step(q, psi @ problem.phi_k, psi @ problem.phi_0, 0.8, 0.4))
    np.testing.assert_allclose(policy(problem, stationary_point(problem)), best, atol=1e-9)


def test_gaussian_kl_is_the_cloning_loss() -> None:
    """The paper's remark: with equal covariance σ²I, KL = ‖Π(s) - μ_0(s)‖²/2σ², so λ of SCORE is λ_k/2σ²."""
    rng = np.random.default_rng(4)
    mean, mean_0, sigma = rng.normal(size=3), rng.normal(size=3), 0.7
    x = mean + sigma * rng.normal(size=(400_000, 3))
    estimate = (((x - mean_0) ** 2).sum(-1) - ((x - mean) ** 2).sum(-1)).mean() / (2 * sigma**2)
    assert estimate == pytest.approx(((mean - mean_0) ** 2).sum() / (2 * sigma**2), rel=0.02)


def test_bad_problems_are_refused() -> None:
    problem = random_problem(np.random.default_rng(0))
    for wrong in (
        problem._replace(phi_0=problem.phi_0[:2]),
        problem._replace(theta=problem.theta * np.nan),
        problem._replace(states=problem.states * 2),
        problem._replace(eta_k=-problem.lambda_k),
    ):
        with pytest.raises(InputError):
            check_problem(wrong)
