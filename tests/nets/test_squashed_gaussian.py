"""The squashed Gaussian against SciPy, numerical integration and the limits of its arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from score_rl.nets.squashed_gaussian import SquashedGaussian, log_squash_slope


def made(rows: int = 3, actions: int = 2) -> SquashedGaussian:
    keys = jax.random.split(jax.random.key(0), 2)
    return SquashedGaussian(
        jax.random.normal(keys[0], (rows, actions)), 0.5 * jax.random.normal(keys[1], (rows, actions)) - 0.5
    )


@pytest.mark.parametrize("mean", [-1.5, 0.0, 0.7])
@pytest.mark.parametrize("log_std", [-1.5, 0.3])
def test_density_integrates_to_one(mean: float, log_std: float) -> None:
    with jax.enable_x64(True):
        policy = SquashedGaussian(jnp.full((1,), mean), jnp.full((1,), log_std))
        grid = np.tanh(np.linspace(-16, 16, 20_001))
        density = np.exp(np.asarray(policy.log_prob(jnp.asarray(grid)[:, None], margin=1e-15)))
    assert integrate.trapezoid(density, grid) == pytest.approx(1, abs=1e-4)


def test_log_prob_is_the_change_of_variables() -> None:
    with jax.enable_x64(True):
        policy = made()
        noise = np.random.default_rng(0).normal(size=(5, 3, 2))
        actions, log_prob = policy.sample_and_log_prob(jnp.asarray(noise))
        mean, std = np.asarray(policy.mean), np.exp(np.asarray(policy.log_std))
        latent = mean + std * noise
        expected = (stats.norm.logpdf(latent, mean, std) - np.log1p(-(np.tanh(latent) ** 2))).sum(-1)
        np.testing.assert_allclose(actions, np.tanh(latent), rtol=1e-12)
        np.testing.assert_allclose(log_prob, expected, rtol=1e-10)
        np.testing.assert_allclose(policy.log_prob(actions), expected, rtol=1e-8)
        np.testing.assert_allclose(policy.log_prob_of_latent(jnp.asarray(latent)), expected, rtol=1e-10)


def test_slope_is_exact_where_the_difference_is_not() -> None:
    far = jnp.asarray([-60.0, -20.0, 0.0, 20.0, 60.0])  # float32: 1 - tanh²(20) is 0
    np.testing.assert_allclose(log_squash_slope(far), 2 * np.log(2) - 2 * np.abs(far) - [0, 0, 2 * np.log(2), 0, 0])
    assert np.isfinite(jax.vmap(jax.grad(log_squash_slope))(far)).all()


def test_gradient_of_a_sample_is_reparameterised() -> None:
    """d/dμ and d/d log σ of E[a] and of log π(a), by central differences with the noise held."""
    with jax.enable_x64(True):
        output = jax.random.normal(jax.random.key(1), (4, 6))
        noise = jax.random.normal(jax.random.key(2), (4, 3))
        direction = jax.random.normal(jax.random.key(3), output.shape)

        def objective(output: jax.Array) -> jax.Array:
            actions, log_prob = SquashedGaussian.from_output(output).sample_and_log_prob(noise)
            return (actions**2).sum() + log_prob.sum()

        step = 1e-6
        numeric = (objective(output + step * direction) - objective(output - step * direction)) / (2 * step)
        assert float((jax.grad(objective)(output) * direction).sum()) == pytest.approx(float(numeric), rel=1e-7)


def test_log_std_is_clipped_to_its_range() -> None:
    output = jnp.asarray([[0.5, -9.0], [0.5, 9.0], [0.5, 1.0]])
    policy = SquashedGaussian.from_output(output, (-5.0, 2.0))
    np.testing.assert_array_equal(policy.log_std[:, 0], [-5.0, 2.0, 1.0])
    slope = jax.grad(lambda out: SquashedGaussian.from_output(out, (-5.0, 2.0)).log_std.sum())(output)
    np.testing.assert_array_equal(slope[:, 1], [0, 0, 1])


def test_mode_is_the_squashed_mean_and_the_sample_without_noise() -> None:
    policy = made()
    np.testing.assert_array_equal(policy.mode(), jnp.tanh(policy.mean))
    np.testing.assert_array_equal(policy.sample(jnp.zeros((3, 2))), policy.mode())


def test_samples_follow_the_distribution() -> None:
    policy = SquashedGaussian(jnp.asarray([[0.4]]), jnp.asarray([[-0.7]]))
    samples = policy.sample(jax.random.normal(jax.random.key(4), (4000, 1, 1)))
    assert stats.kstest(np.arctanh(np.asarray(samples)).ravel(), stats.norm(0.4, np.exp(-0.7)).cdf).pvalue > 0.01


def test_actions_at_the_bounds_have_a_finite_log_prob() -> None:
    log_prob = made().log_prob(jnp.asarray([[1.0, -1.0]] * 3))
    assert np.isfinite(log_prob).all()
