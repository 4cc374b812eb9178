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
    """The paper's remark: for Gaussians of equal covariance σ² and Q = θa, Theo-SCORE's objective is SCORE's.

    On a fine grid of actions, ψ = (a/σ², -a²/2σ²) and φ = (μ, 1) make π_φ a Gaussian of mean μ. SCORE maximises
    θμ - λ E[(μ - a)²] over a ~ N(μ_0, σ²) with λ = λ_k/2σ², whose slope is θ - 2λ(μ - μ_0).
    """
    sigma, mean, mean_0, theta, weight = 0.7, 0.4, -0.3, 1.3, 0.8
    actions = np.linspace(-8.0, 8.0, 4001)[:, None]
    psi = np.concatenate([actions / sigma**2, -(actions**2) / (2 * sigma**2)], axis=1)[None]
    problem = LinearProblem(
        psi, actions, np.array([[theta]]), np.ones(1), np.array([mean_0, 1.0]), np.array([mean, 1.0]), weight, 1.0
    )
    assert (policy(problem, problem.phi_k) @ actions).item() == pytest.approx(mean)
    cloning = weight / (2 * sigma**2)
    slope = theta - 2.0 * cloning * (mean - mean_0)
    assert score_gradient(problem, problem.phi_k)[0] == pytest.approx(slope, rel=1e-9)


def test_both_steps_by_hand() -> None:
    """One state, actions 0 and 1, ψ = a: I_φ cancels. Explicit: φ_k + (θ - λ(φ_k - φ_0))/η_k."""
    actions = np.array([[0.0], [1.0]])
    phi_k, phi_0 = np.array([0.3]), np.array([-0.2])
    problem = LinearProblem(actions[None], actions, np.array([[1.5]]), np.ones(1), phi_0, phi_k, 0.4, 2.0)
    assert explicit_natural_step(problem)[0] == pytest.approx(0.3 + (1.5 - 0.4 * 0.5) / 2.0)
    assert stationary_point(problem)[0] == pytest.approx((2.0 * 0.3 - 0.4 * 0.2 + 1.5) / 2.4)


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
