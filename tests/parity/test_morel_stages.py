"""MOReL's stages against a plain float64 transcription: the dynamics, the disagreement over the data, cloning."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import morel, morel_stages
from score_rl.algorithms.algorithm import Data, Shapes, Stage
from score_rl.algorithms.model_fitting import Fit, draw_rows
from score_rl.nets.perceptron import Perceptron
from tests.parity.numpy_reference import Adam, Parameters, arrays, beside, difference, gradient, perceptron
from tests.parity.soft_reference import random_key
from tests.parity.test_mopo_model import columns, data_of

Loss = Callable[[Parameters], Any]
HOPPER = Shapes(observation=11, action=3)
MASK = np.array([1.0] * 5 + [0.02] * 6)
SMALL: dict[str, Any] = {
    "hidden": (4, 3), "baseline_hidden": (5, 4), "dynamics_hidden": (5, 4), "reward_hidden": (4, 3), "models": 3,
    "paths": 5, "horizon": 7, "batch_size": 10, "held_out": 8, "task": "hopper",
}  # fmt: skip


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Raw hopper-like columns that start upright."""
    s, a, r, s2, terminal = columns(shapes=HOPPER)
    s[:, 0], s[:, 1] = 1.2 + 0.1 * s[:, 0], 0.01 * s[:, 1]
    s2 = s + 0.05 * s2
    s2[:, 1] = s[:, 1] + 0.03 * (s2[:, 1] - s[:, 1])
    return s, a, r, s2, terminal


@functools.cache
def data() -> Data:
    with jax.ensure_compile_time_eval():  # also when first asked for inside a compiled function
        return data_of(table())


class DynamicsReference:
    """In scaled observations; units are means and mean absolute deviations."""

    def __init__(self, config: Any, networks: tuple[Perceptron, Perceptron]) -> None:
        s, self.a, self.r, s2, _ = table()
        self.s, self.s2 = s * MASK, s2 * MASK
        x, change = beside(self.s, self.a), self.s2 - self.s
        self.x_mean, self.x_unit = x.mean(0), np.abs(x - x.mean(0)).mean(0) + 1e-8
        self.y_mean, self.y_unit = change.mean(0), np.abs(change - change.mean(0)).mean(0) + 1e-8
        self.r_mean, self.r_unit = self.r.mean(), np.abs(self.r - self.r.mean()).mean() + 1e-8
        self.dynamics = [arrays(networks[0], i) for i in range(config.models)]
        self.rewards = [arrays(networks[1], i) for i in range(config.models)]
        rate = config.dynamics_learning_rate
        self.dynamics_adams = [Adam(network, rate) for network in self.dynamics]
        self.reward_adams = [Adam(network, rate) for network in self.rewards]

    def following(self, network: list[np.ndarray], s: np.ndarray, a: np.ndarray) -> np.ndarray:
        return s + perceptron(network, (beside(s, a) - self.x_mean) / self.x_unit) * self.y_unit + self.y_mean

    def reward(self, network: list[np.ndarray], s: np.ndarray, a: np.ndarray, s2: np.ndarray) -> float | np.ndarray:
        x = (beside(s, a, s2) - beside(self.x_mean, self.x_mean[:11])) / beside(self.x_unit, self.x_unit[:11])
        return perceptron(network, x)[..., 0] * self.r_unit + self.r_mean

    def change_error(self, network: list[np.ndarray], rows: np.ndarray) -> Any:
        gap = self.following(network, self.s[rows], self.a[rows]) - self.s2[rows]
        return ((gap / self.y_unit) ** 2).mean()

    def update(self, rows: np.ndarray) -> float:
        total = 0.0
        for i in range(len(self.dynamics)):
            own = rows[i]
            s, a, r = self.s[own], self.a[own], self.r[own]
            predicted = self.following(self.dynamics[i], s, a)
            reward_loss: Loss = lambda p: ((self.reward(p, s, a, predicted) - r) ** 2).mean()  # noqa: B023, E731
            change_loss: Loss = lambda p: self.change_error(p, own)  # noqa: B023, E731
            total += change_loss(self.dynamics[i]) + reward_loss(self.rewards[i])
            slopes = gradient(change_loss, self.dynamics[i]), gradient(reward_loss, self.rewards[i])
            self.dynamics_adams[i].step(self.dynamics[i], slopes[0])
            self.reward_adams[i].step(self.rewards[i], slopes[1])
        return total

    def disagreement(self, s: np.ndarray, a: np.ndarray) -> np.ndarray:
        predicted = [self.following(network, s, a) for network in self.dynamics]
        pairs = [(i, j) for i in range(len(predicted)) for j in range(i)]
        return np.array([np.linalg.norm(predicted[i] - predicted[j], axis=-1) for i, j in pairs]).max(axis=0)


def begun(stage: Stage, config: Any) -> Fit:
    fit = jax.jit(lambda key: stage.init(config, HOPPER, data(), key))(random_key(0))
    return jax.tree.map(lambda x: x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x, fit)


def stepped(stage: Stage, config: Any, members: int) -> tuple[Any, Any]:
    return (
        jax.jit(lambda fit, key: stage.update(config, fit, data(), key)),
        jax.jit(lambda fit, key: draw_rows(config, fit, data(), key, members, False)),
    )


def test_fitting_the_dynamics_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    with jax.enable_x64(True):
        config = morel.Config(**SMALL)
        fit = begun(morel_stages.DYNAMICS, config)
        reference = DynamicsReference(config, fit.networks)
        update, rows_of = stepped(morel_stages.DYNAMICS, config, config.models)
        for number in range(3):
            rows = np.asarray(rows_of(fit, random_key(number)))
            assert not np.isin(rows, fit.held_out).any()
            fit, metrics = update(fit, random_key(number))
            np.testing.assert_allclose(metrics["loss"], reference.update(rows), rtol=1e-10)
        for i in range(config.models):
            assert difference(arrays(fit.networks[0], i), reference.dynamics[i]) < 1e-8
            assert difference(arrays(fit.networks[1], i), reference.rewards[i]) < 1e-8
            assert difference(arrays(fit.optimiser.mu[0][0], i), reference.dynamics_adams[i].m) < 1e-8
            assert difference(arrays(fit.optimiser.mu[0][1], i), reference.reward_adams[i].m) < 1e-8
        fit, metrics = jax.jit(lambda fit: morel_stages.DYNAMICS.judge(config, fit, data()))(fit)
        held_out = np.asarray(fit.held_out)
        expected = [reference.change_error(network, held_out) for network in reference.dynamics]
        np.testing.assert_allclose(metrics["held_out_error"], np.mean(expected), rtol=1e-10)
        monkeypatch.setattr(morel_stages, "ROWS_AT_ONCE", 16)  # the data's 60 rows are no multiple of it
        learned = jax.jit(lambda fit: morel_stages.learn_dynamics(config, fit, data()))(fit)
        np.testing.assert_allclose(learned.largest, reference.disagreement(reference.s, reference.a).max(), rtol=1e-10)


def tanh_perceptron(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = np.tanh(x)
    return x


def test_cloning_agrees() -> None:
    with jax.enable_x64(True):
        config = morel.Config(**SMALL)
        fit = begun(morel_stages.CLONING, config)
        network = arrays(fit.networks, 0)
        adam = Adam(network, config.cloning_learning_rate)
        update, rows_of = stepped(morel_stages.CLONING, config, 1)
        s, a = table()[0] * MASK, table()[1]
        for number in range(3):
            rows = np.asarray(rows_of(fit, random_key(number)))[0]
            fit, _ = update(fit, random_key(number))
            loss = lambda p: ((tanh_perceptron(p, s[rows]) - a[rows]) ** 2).mean()  # noqa: B023, E731
            adam.step(network, gradient(loss, network))
        assert difference(arrays(fit.networks, 0), network) < 1e-8
        assert difference(arrays(fit.optimiser.mu[0], 0), adam.m) < 1e-8
