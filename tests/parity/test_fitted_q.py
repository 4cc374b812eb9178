"""Fitted Q evaluation against a plain float64 transcription: consecutive updates, bootstrap samples included."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.judge import fitted_q
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient

OBSERVATIONS, ACTIONS, SIZE, MEMBERS, ROWS = 4, 2, 10, 3, 17
POISSON = np.cumsum([np.exp(-1.0) / np.prod(np.arange(1, k + 1)) for k in range(6)])


def layers(net: Any, member: int) -> Parameters:
    """[weight, bias, ...] of the affine layers, then [scale, shift, ...] of the normalised ones."""
    own = [p for pair in zip(net.scales, net.shifts, strict=True) for p in pair]
    return arrays(net.layers, member) + [np.array(p[member], np.float64) for p in own]


def critic(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    affine, normal = parameters[:6], parameters[6:]
    for layer in range(2):
        x = ref.relu(x @ affine[2 * layer] + affine[2 * layer + 1])
        centred = x - x.mean(axis=-1, keepdims=True)
        x = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
        x = x * normal[2 * layer] + normal[2 * layer + 1]
    return (x @ affine[4] + affine[5])[:, 0]


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.table = config, jax.tree.map(np.asarray, state.table)
        self.critics = [layers(state.critics, i) for i in range(MEMBERS)]
        self.targets = [[p.copy() for p in each] for each in self.critics]
        self.adams = [ref.Adam(each, config.learning_rate) for each in self.critics]

    def update(self, batch: Batch, weights: np.ndarray) -> None:
        c = self.config
        s, a, r, s2, terminal, rows = (np.asarray(part) for part in batch[:6])
        reward, after_end = (r - c.centre) / c.scale, -c.centre / c.scale / (1 - c.discount)
        known = np.where(terminal == 1, 1.0, self.table.known[rows])
        for i, (own, target, adam) in enumerate(zip(self.critics, self.targets, self.adams, strict=True)):
            following = critic(target, beside(s2, self.table.next_actions[rows]))
            y = np.clip(reward + c.discount * np.where(terminal == 1, after_end, following), c.least, c.most)

            def loss(p: Parameters, y: np.ndarray = y, w: np.ndarray = weights[i] * known) -> Any:
                return (w * (critic(p, beside(s, a)) - y) ** 2).sum() / len(y)

            adam.step(own, gradient(loss, own))
            follow(target, own, c.tau)


@pytest.mark.parametrize(
    "options",
    [{}, {"centre": -0.7, "scale": 2.5, "discount": 0.9}, {"least": -0.1, "most": 0.2}, {"bootstrap": False}],
    ids=str,
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        config = fitted_q.Config(hidden=(7, 6), critics=MEMBERS, rows=ROWS, **options)
        state = ref.start(fitted_q, config, Shapes(OBSERVATIONS, ACTIONS))
        table = fitted_q.Table(
            next_actions=jnp.asarray(rng.uniform(-1, 1, (ROWS, ACTIONS))),
            known=jnp.asarray((rng.random(ROWS) < 0.8).astype(float)),
            trajectories=jnp.asarray(rng.integers(0, 5, ROWS)),
        )
        state = state._replace(table=table)
        reference, step, before = Reference(config, state), jax.jit(fitted_q.update, static_argnums=4), state.critics
        for s, a, r, s2, terminal in ref.batches(5, SIZE, OBSERVATIONS, ACTIONS):
            batch = Batch(s, a, r, s2, terminal, jnp.asarray(rng.integers(0, ROWS, SIZE)))
            weights = np.asarray(fitted_q.bootstrap_weights(config, table.trajectories[batch.rows]))
            reference.update(batch, weights)
            state, _ = step(config, state, batch, jax.random.key(0), 0)
        for member in range(MEMBERS):
            assert difference(layers(state.critics, member), reference.critics[member]) < 1e-10
            assert difference(layers(state.target_critics, member), reference.targets[member]) < 1e-10
            assert difference(layers(before, member), reference.critics[member]) > 1e-4


def test_bootstrap_weights_are_poisson_and_differ_between_critics() -> None:
    config = fitted_q.Config(critics=4)
    weights = np.asarray(fitted_q.bootstrap_weights(config, jnp.arange(20_000)))
    for number, expected in enumerate(POISSON[:4]):
        np.testing.assert_allclose((weights <= number).mean(axis=1), expected, atol=0.012)
    assert np.abs(np.corrcoef(weights)[np.triu_indices(4, 1)]).max() < 0.03
    again = np.asarray(fitted_q.bootstrap_weights(config, jnp.asarray([7, 7, 8])))
    np.testing.assert_array_equal(again[:, 0], again[:, 1])
