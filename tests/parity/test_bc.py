"""BC against a plain float64 transcription."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms import bc
from score_rl.algorithms.algorithm import Batch, Shapes
from tests.parity.numpy_reference import Adam, Parameters, arrays, batches, difference, gradient, perceptron, start

OBSERVATIONS, ACTIONS, SIZE = 5, 3, 12


def test_updates_agree_in_float64() -> None:
    with jax.enable_x64(True):
        config = bc.Config(hidden=(8, 6), learning_rate=1e-3)
        state = start(bc, config, Shapes(OBSERVATIONS, ACTIONS))
        actor = arrays(state.actor)
        before, step = [p.copy() for p in actor], jax.jit(bc.update, static_argnums=4)
        adam = Adam(actor, 1e-3)
        for s, a, r, s2, terminal in batches(5, SIZE, OBSERVATIONS, ACTIONS):

            def loss(parameters: Parameters, s: np.ndarray = s, a: np.ndarray = a) -> Any:
                return ((np.tanh(perceptron(parameters, s)) - a) ** 2).sum() / (SIZE * ACTIONS)

            expected = loss(actor)
            adam.step(actor, gradient(loss, actor))
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            state, metrics = step(config, state, batch, jax.random.key(1), 0)
            np.testing.assert_allclose(metrics["bc_error"], expected, rtol=1e-12)
        assert difference(arrays(state.actor), actor) < 1e-11
        assert difference(before, actor) > 1e-3
        assert state.step == 5
