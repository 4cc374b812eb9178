"""The starting points of networks, against what the published code draws."""

import jax
import numpy as np
import pytest

from score_rl.nets.initialisation import orthogonal_start, rlkit_start


@pytest.mark.parametrize(("bound", "first"), [("fan_out", 16**-0.5), ("fan_in", 5**-0.5)])
def test_rlkit_start(bound, first):
    net = jax.jit(lambda key: rlkit_start(key, (5, 16, 16, 2), members=3, last=1e-3, bound=bound))(jax.random.key(0))
    for weight, limit in zip(net.weights, (first, 0.25, 1e-3), strict=True):
        assert 0.9 * limit < np.abs(weight).max() <= limit
        assert not np.allclose(weight[0], weight[1]), "members start apart"
    np.testing.assert_allclose(np.concatenate([bias.ravel() for bias in net.biases[:2]]), 0.1)
    assert 0 < np.abs(net.biases[2]).max() <= 1e-3


def test_orthogonal_start():
    net = jax.jit(lambda key: orthogonal_start(key, (5, 16, 16, 1), members=2))(jax.random.key(0))
    for weight in np.asarray(net.weights[1]):
        np.testing.assert_allclose(weight @ weight.T, 2 * np.eye(16), atol=1e-5)
    assert not np.allclose(net.weights[1][0], net.weights[1][1]), "members start apart"
    np.testing.assert_allclose(np.linalg.norm(net.weights[2], axis=1), 0.01, rtol=1e-5)
    assert all((np.asarray(bias) == 0).all() for bias in net.biases)


def test_a_single_network_has_no_leading_axis():
    for start in (rlkit_start, orthogonal_start):
        net = jax.eval_shape(lambda start=start: start(jax.random.key(0), (5, 4, 1)))
        assert [weight.shape for weight in net.weights] == [(5, 4), (4, 1)]
