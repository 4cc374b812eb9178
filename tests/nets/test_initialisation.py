"""The starting points of networks, against what the published code draws."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.nets.initialisation import orthogonal, orthogonal_start, orthonormal_columns, rlkit_start


@pytest.mark.parametrize(("bound", "first"), [("fan_out", 16**-0.5), ("fan_in", 5**-0.5)])
def test_rlkit_start(bound: Literal["fan_in", "fan_out"], first: float) -> None:
    net = jax.jit(lambda key: rlkit_start(key, (5, 16, 16, 2), members=3, last=1e-3, bound=bound))(jax.random.key(0))
    for weight, limit in zip(net.weights, (first, 0.25, 1e-3), strict=True):
        assert 0.9 * limit < np.abs(weight).max() <= limit
        assert not np.allclose(weight[0], weight[1]), "members start apart"
    np.testing.assert_allclose(np.concatenate([bias.ravel() for bias in net.biases[:2]]), 0.1)
    assert 0 < np.abs(net.biases[2]).max() <= 1e-3


def test_orthogonal_start() -> None:
    net = jax.jit(lambda key: orthogonal_start(key, (5, 16, 16, 1), members=2))(jax.random.key(0))
    for weight in np.asarray(net.weights[1]):
        np.testing.assert_allclose(weight @ weight.T, 2 * np.eye(16), atol=1e-5)
    assert not np.allclose(net.weights[1][0], net.weights[1][1]), "members start apart"
    np.testing.assert_allclose(np.linalg.norm(net.weights[2], axis=1), 0.01, rtol=1e-5)
    assert all((np.asarray(bias) == 0).all() for bias in net.biases)


@pytest.mark.parametrize("shape", [(17, 64), (64, 64), (64, 6), (64, 1)])
def test_orthogonal_is_what_jax_draws_by_another_way(shape: tuple[int, int]) -> None:
    key = jax.random.key(3)
    mine = jax.jit(lambda key: orthogonal(key, *shape))(key)
    np.testing.assert_allclose(mine, jax.nn.initializers.orthogonal()(key, shape), atol=2e-5)
    short = mine if shape[0] < shape[1] else mine.T
    np.testing.assert_allclose(short @ short.T, np.eye(min(shape)), atol=1e-6)


def test_columns_that_are_nearly_dependent_come_out_orthonormal() -> None:
    rng = np.random.default_rng(0)
    near = rng.normal(size=(40, 1)) + 1e-4 * rng.normal(size=(40, 8))
    found = np.asarray(orthonormal_columns(jnp.asarray(near, jnp.float32)))
    np.testing.assert_allclose(found.T @ found, np.eye(8), atol=1e-5)


def test_the_start_of_a_fleet_calls_no_library_that_waits_for_threads() -> None:
    """Several factorisations at once hang on two cores: of IQL's 5 runs, 6 layers each with two members."""
    start = jax.vmap(lambda key: orthogonal_start(key, (5, 16, 16, 1), members=2))
    assert "lapack" not in jax.jit(start).lower(jax.random.split(jax.random.key(0), 5)).as_text()


def test_a_single_network_has_no_leading_axis() -> None:
    for start in (rlkit_start, orthogonal_start):
        net = jax.eval_shape(lambda start=start: start(jax.random.key(0), (5, 4, 1)))
        assert [weight.shape for weight in net.weights] == [(5, 4), (4, 1)]
