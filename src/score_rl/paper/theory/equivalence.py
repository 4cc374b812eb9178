"""Lemma "Equivalence between Theo-SCORE and OPO" under the linear parameterisation.

    π_φ(a|s) ∝ exp(ψ(s, a)ᵀφ),    Q_k(s, a) = θ_k(s)ᵀa,    Π_φ(s) = E_{a~π_φ}[a],    I_φ = E_{s~D} Var_{a~π_φ}[ψ(s, a)].

Actions are vectors from a finite set, so every expectation is a sum. The stationary point of L_OPO is found
by Newton's method on the gradient that automatic differentiation takes of the objective as the paper writes
it; the lemma's equation, built from covariances, is then evaluated there. The two share no formula.

Two things the lemma needs and does not say: π_0 lies in the class (π_0 = π_{φ_0}), and I_φ is invertible, which
rules out features that are constant in a, such as one-hot features of all pairs (s, a).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from score_rl.errors import InputError
from score_rl.paper.theory.mdp import check_distributions
from score_rl.paper.theory.precision import double_precision, namespace
from score_rl.paper.theory.regularised import softmax_policy


class LinearProblem(NamedTuple):
    """One iteration k of OPO: features, action vectors, critic, data distribution and where it starts."""

    psi: Any  # ψ[s, a, d]
    actions: Any  # the action vectors [a, m]
    theta: Any  # θ_k[s, m]
    states: Any  # the data's state distribution [s]
    phi_0: Any  # behaviour policy
    phi_k: Any  # current policy
    lambda_k: Any
    eta_k: Any


def check_problem(problem: LinearProblem) -> LinearProblem:
    """Shapes that agree, finite numbers, η_k + λ_k > 0."""
    n_states, n_actions, features = np.shape(problem.psi)
    expected = {
        "actions": (n_actions, np.shape(problem.actions)[-1]),
        "theta": (n_states, np.shape(problem.actions)[-1]),
        "phi_0": (features,),
        "phi_k": (features,),
    }
    for name, shape in expected.items():
        found = np.shape(getattr(problem, name))
        if found != shape:
            raise InputError(f"{name} has shape {found}, expected {shape} to agree with ψ and the actions.")
        if not np.isfinite(getattr(problem, name)).all():
            raise InputError(f"{name} holds NaN or infinite entries; give finite numbers.")
    check_distributions("the state distribution of the data", problem.states, (n_states,))
    if problem.lambda_k + problem.eta_k <= 0:
        raise InputError(f"η_k + λ_k is {problem.lambda_k + problem.eta_k}, expected positive.")
    return problem


def random_problem(
    rng: np.random.Generator, states: int = 6, actions: int = 5, dims: int = 2, features: int = 4
) -> LinearProblem:
    """A random instance; fewer features than states × dims, so the closed form over all policies is out of reach."""
    return LinearProblem(
        rng.normal(size=(states, actions, features)),
        rng.normal(size=(actions, dims)),
        rng.normal(size=(states, dims)),
        rng.dirichlet(np.ones(states)),
        0.5 * rng.normal(size=features),
        0.5 * rng.normal(size=features),
        float(rng.uniform(0.2, 1.0)),
        float(rng.uniform(0.5, 2.0)),
    )


def policy(problem: LinearProblem, phi: Float[Any, " d"]) -> Float[Any, "S A"]:
    """π_φ(a|s) ∝ exp(ψ(s, a)ᵀφ)."""
    return softmax_policy(problem.psi @ phi)


def fisher(problem: LinearProblem, phi: Float[Any, " d"]) -> Float[Any, "d d"]:
    """I_φ = E_{s~D} Var_{a~π_φ(·|s)}[ψ(s, a)]."""
    xp = namespace(problem.psi, phi)
    pi = policy(problem, phi)
    centred = problem.psi - xp.einsum("sa,sad->sd", pi, problem.psi)[:, None, :]
    return xp.einsum("s,sa,sad,sae->de", problem.states, pi, centred, centred)


def deterministic_gradient(problem: LinearProblem, phi: Float[Any, " d"]) -> Float[Any, " d"]:
    """E_{s~D}[∇_a Q_k(s, Π_φ(s)) ∇_φ Π_φ(s)], with ∇_a Q_k = θ_k(s) and ∇_φ Π_φ(s) = Cov_{a~π_φ}(ψ(s, a), a)."""
    xp = namespace(problem.psi, phi)
    pi = policy(problem, phi)
    centred = problem.psi - xp.einsum("sa,sad->sd", pi, problem.psi)[:, None, :]
    return xp.einsum("s,sa,sad,am,sm->d", problem.states, pi, centred, problem.actions, problem.theta)


def score_gradient(problem: LinearProblem, phi: Float[Any, " d"]) -> Float[Any, " d"]:
    """∇_φ of the Theo-SCORE objective: the deterministic policy gradient minus λ_k I_φ (φ - φ_0)."""
    pull = fisher(problem, phi) @ (phi - problem.phi_0)
    return deterministic_gradient(problem, phi) - problem.lambda_k * pull


def opo_objective_linear(problem: LinearProblem, phi: Float[Any, " d"]) -> Float[Any, ""]:
    """L_OPO^k(φ) as equation "ppo-obj" writes it, logarithms and all."""
    xp = namespace(problem.psi, phi)

    def log_policy(parameter: Any) -> Any:
        energy = problem.psi @ parameter
        shifted = energy - energy.max(-1, keepdims=True)
        return shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))

    log_pi, log_0, log_k = log_policy(phi), log_policy(problem.phi_0), log_policy(problem.phi_k)
    pi = xp.exp(log_pi)
    q = problem.theta @ problem.actions.T
    per_state = ((q - problem.lambda_k * (log_pi - log_0)) * pi).sum(-1)
    per_state = per_state - problem.eta_k * (pi * (log_pi - log_k)).sum(-1)
    return (problem.states * per_state).sum()


@cache
def _derivatives() -> tuple[Any, Any, Any]:
    """The objective, its gradient and its Hessian in φ, compiled once."""
    import jax

    return (
        jax.jit(opo_objective_linear),
        jax.jit(jax.grad(opo_objective_linear, argnums=1)),
        jax.jit(jax.hessian(opo_objective_linear, argnums=1)),
    )


def stationary_point(problem: LinearProblem, steps: int = 200) -> np.ndarray:
    """φ_{k+1} with ∇L_OPO^k(φ_{k+1}) = 0: ascent by Newton steps on the automatically taken derivatives.

    The objective is not concave in φ, so a step must raise it; where the Hessian is not negative definite its
    eigenvalues are reflected. Close to the maximum, where the objective no longer changes in float64, a step
    must shrink the gradient instead.
    """
    check_problem(problem)
    with double_precision():
        import jax
        import jax.numpy as jnp

        arrays = jax.tree.map(lambda x: jnp.asarray(x, dtype=jnp.float64), problem)
        objective, gradient, hessian = _derivatives()
        phi = np.asarray(problem.phi_k, dtype=np.float64)
        value, slope = float(objective(arrays, phi)), np.asarray(gradient(arrays, phi))
        for _ in range(steps):
            values, vectors = np.linalg.eigh(np.asarray(hessian(arrays, phi)))
            move = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-8))
            size = 1.0
            while size > 1e-8:
                trial = phi + size * move
                new_value, new_slope = float(objective(arrays, trial)), np.asarray(gradient(arrays, trial))
                rises = new_value > value + 1e-4 * size * float(slope @ move)
                settles = np.abs(slope).max() < 1e-6 and np.abs(new_slope).max() < np.abs(slope).max()
                if rises or settles:
                    break
                size *= 0.5
            else:
                break
            phi, value, slope = trial, new_value, new_slope
    return phi


def lemma_right_side(problem: LinearProblem, phi: Float[Any, " d"]) -> np.ndarray:
    """(η_k φ_k + λ_k φ_0)/(η_k + λ_k) + (η_k + λ_k)^{-1} I_φ^{-1} E[∇_a Q_k ∇_φ Π_φ], the lemma's equation."""
    total = problem.eta_k + problem.lambda_k
    centre = (problem.eta_k * problem.phi_k + problem.lambda_k * problem.phi_0) / total
    return centre + np.linalg.solve(fisher(problem, phi), deterministic_gradient(problem, phi)) / total


def lemma_residual(problem: LinearProblem) -> float:
    """‖φ_{k+1} - right-hand side‖_∞ at the stationary point."""
    phi = stationary_point(problem)
    return float(np.abs(phi - lemma_right_side(problem, phi)).max())


def explicit_natural_step(problem: LinearProblem) -> np.ndarray:
    """φ_k + η_k^{-1} I_{φ_k}^{-1} ∇L_SCORE(φ_k): the natural gradient step that OPO takes implicitly, at φ_{k+1}."""
    direction = np.linalg.solve(fisher(problem, problem.phi_k), score_gradient(problem, problem.phi_k))
    return problem.phi_k + direction / problem.eta_k
