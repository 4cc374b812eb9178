"""The bridge to practice: its task's truth, and its training against an independent transcription."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.paper.theory import bridge
from score_rl.paper.theory.bridge import (
    GAMMA,
    Networks,
    Training,
    assess,
    draw,
    exact_action_value,
    exact_value,
    query_points,
    reward,
    step,
)

TINY = Training(critics=2, width=4, steps=4, checkpoints=1, d_bc=2, batch=6, samples=20, learning_rate=0.01)


def test_the_exact_value_matches_a_rollout() -> None:
    def policy_of(states: np.ndarray) -> np.ndarray:
        return np.tanh(0.5 - states)

    grid = np.linspace(-1.0, 1.0, 401)
    value = exact_value(policy_of(grid))
    s = np.array([-0.9, -0.2, 0.33, 0.8])
    a = np.array([0.5, -1.0, 0.9, 0.0])
    q, state, action = np.zeros(4), s, a
    for t in range(300):
        q += GAMMA**t * reward(state, action)
        state = step(state, action)
        action = policy_of(state)
    np.testing.assert_allclose(exact_action_value(value, s, a), q, atol=2e-3)


def test_rewards_lie_in_the_unit_interval() -> None:
    s, a = query_points(41)
    assert s.shape == a.shape == (41 * 41,)
    assert reward(s, a).min() >= 0.0
    assert reward(s, a).max() <= 1.0


def network(layers: Any, *inputs: Any) -> Any:
    """One perceptron, written out: x ↦ W₃ᵀ relu(W₂ᵀ relu(W₁ᵀ x + b₁) + b₂) + b₃."""
    (w1, b1), (w2, b2), (w3, b3) = layers
    xp = np if isinstance(w1, np.ndarray) else jnp
    x = xp.stack(inputs, axis=1)
    hidden = xp.maximum(xp.maximum(x @ w1 + b1, 0.0) @ w2 + b2, 0.0)
    return (hidden @ w3 + b3)[:, 0]


def transcription(training: Training, draws: Any, first_weight: Any, decay: Any) -> tuple[Any, Any]:
    """Algorithm 1 in miniature, with a textbook Adam and one critic at a time: (θ, φ) after all steps."""
    members = range(training.critics)
    theta = [[(w[i], b[i]) for w, b in draws.start.theta] for i in members]
    phi = [(w, b) for w, b in draws.start.phi]
    theta_target, phi_target = list(theta), phi
    nothing: Any = (0, jax.tree.map(jnp.zeros_like, phi), jax.tree.map(jnp.zeros_like, phi))
    phi_state, states = nothing, [(0, *(jax.tree.map(jnp.zeros_like, theta[i]) for _ in range(2))) for i in members]
    batches, noises = (x.reshape(-1, training.batch) for x in (draws.batches, draws.noise))

    def descend(loss: Callable[[Any], Any], parameters: Any, state: Any) -> Any:
        steps, m, v = state
        steps = steps + 1
        g = jax.grad(loss)(parameters)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate, first, second = training.learning_rate, 1 - 0.9**steps, 1 - 0.999**steps

        def moved(p: Any, m: Any, v: Any) -> Any:
            return p - rate * (m / first) / (jnp.sqrt(v / second) + 1e-8)

        return jax.tree.map(moved, parameters, m, v), (steps, m, v)

    for t, (rows, noise) in enumerate(zip(batches, noises, strict=True)):
        s, a = draws.s[rows], draws.a[rows]
        s_next = jnp.clip(s + a / 4, -1, 1)
        a_next = jnp.clip(jnp.tanh(network(phi_target, s_next)) + noise, -1, 1)
        u = jnp.stack([network(theta[i], s, a) for i in members]).std(axis=0)
        fixed = 0.9 * jnp.exp(-((s - 0.6) ** 2) / 0.08) + 0.1 * (1 - a**2) - training.beta * u
        for i in members:
            y = fixed + 0.9 * network(theta_target[i], s_next, a_next)

            def critic_loss(p: Any, s: Any = s, a: Any = a, y: Any = y) -> Any:
                return ((network(p, s, a) - y) ** 2).mean()

            theta[i], states[i] = descend(critic_loss, theta[i], states[i])
        if t % 2 == 1:
            weight = first_weight * decay ** ((t - 1) // training.d_bc)

            def actor_loss(p: Any, s: Any = s, a: Any = a, weight: Any = weight) -> Any:
                chosen = jnp.tanh(network(p, s))
                least = jnp.stack([network(theta[i], s, chosen) for i in members]).min(axis=0)
                scale = training.alpha / jax.lax.stop_gradient(jnp.abs(least).mean())
                return -scale * least.mean() + weight * ((chosen - a) ** 2).mean()

            phi, phi_state = descend(actor_loss, phi, phi_state)
            follow = lambda x, y: (1 - training.tau) * x + training.tau * y  # noqa: E731
            theta_target = jax.tree.map(follow, theta_target, theta)
            phi_target = jax.tree.map(follow, phi_target, phi)
    return theta, phi


def test_training_against_an_independent_transcription() -> None:
    """All three weights of cloning: none, annealed, constant. Penalty, targets and annealing show in the parameters."""
    trained = bridge.train(TINY, seeds=1, seed=3)
    draws = draw(TINY, np.random.default_rng([3, 0]))
    program = jax.jit(partial(transcription, TINY))
    for arm, (first, decay) in enumerate([(0.0, 1.0), (1.0, TINY.gamma_bc), (1.0, 1.0)]):
        with jax.enable_x64(True):
            theta, phi = program(jax.tree.map(jnp.asarray, draws), jnp.float64(first), jnp.float64(decay))
        for layer, part in np.ndindex(3, 2):
            ours = trained.theta[layer][part][arm, 0, 0]
            theirs = np.stack([theta[i][layer][part] for i in range(TINY.critics)])
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
            np.testing.assert_allclose(trained.phi[layer][part][arm, 0, 0], phi[layer][part], atol=1e-9)


def test_quality_by_its_definition() -> None:
    """u, the one-step error |r + γ Q̄' - (Q̄ + βu)| and the shares, point by point."""
    rng = np.random.default_rng(5)
    start = draw(TINY, rng).start
    networks = Networks(*([(w[None, None, None], b[None, None, None]) for w, b in part] for part in start))
    s, a = query_points(7)
    found = assess(TINY, networks, (s, a))

    def values(s: Any, a: Any) -> np.ndarray:
        return np.stack([network([(w[i], b[i]) for w, b in start.theta], s, a) for i in range(TINY.critics)])

    def act(s: Any) -> np.ndarray:
        return np.tanh(network(start.phi, s))

    q, after = values(s, a), values(step(s, a), act(step(s, a))).mean(0)
    u = q.std(0)
    error = np.abs(reward(s, a) + 0.9 * after - (q.mean(0) + TINY.beta * u))
    assert found.penalty[0, 0, 0] == pytest.approx(u.mean())
    bound = 2.0 * u
    assert 0.0 < (error <= bound).mean() < 1.0
    assert found.cover_two[0, 0, 0] == pytest.approx((error <= bound).mean())
    assert found.cover_beta[0, 0, 0] == pytest.approx((error <= TINY.beta * u).mean())
    from scipy.stats import spearmanr

    assert found.rank_one_step[0, 0, 0] == pytest.approx(spearmanr(u, error).statistic, abs=1e-12)
    grid = np.linspace(-1.0, 1.0, 101)
    truth = exact_value(act(grid))
    off = np.abs(q.mean(0) - exact_action_value(truth, s, a))
    assert found.value_error[0, 0, 0] == pytest.approx(off.mean())
    assert found.rank_value[0, 0, 0] == pytest.approx(spearmanr(u, off).statistic, abs=1e-12)
    assert found.policy_return[0, 0, 0] == pytest.approx(truth.mean())
    along = values(grid, act(grid))
    moved = step(grid, act(grid))
    missed = np.abs(
        reward(grid, act(grid)) + 0.9 * values(moved, act(moved)).mean(0) - along.mean(0) - TINY.beta * along.std(0)
    )
    assert found.over_estimate[0, 0, 0] == pytest.approx((along.mean(0) - truth).mean())
    assert found.rank_policy[0, 0, 0] == pytest.approx(spearmanr(along.std(0), missed).statistic, abs=1e-12)
    shares = [(missed <= multiple * along.std(0)).mean() for multiple in (1.0, 2.0)]
    assert shares[0] != shares[1] == pytest.approx(found.cover_policy[0, 0, 0])


def test_trainings_that_cannot_be_run_are_refused() -> None:
    for wrong in ({"critics": 1}, {"steps": 10, "checkpoints": 9}, {"samples": 0}):
        with pytest.raises(InputError):
            Training(**wrong)
