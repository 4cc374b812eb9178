"""MOPO's dynamics networks against a plain float64 transcription: fitting, judging, elites."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import mopo, mopo_model
from score_rl.algorithms.algorithm import Batch, Data, Shapes, Spread, Statistics
from score_rl.algorithms.model_fitting import draw_rows
from tests.parity.numpy_reference import Adam, Parameters, arrays, batches, beside, difference, gradient
from tests.parity.soft_reference import random_key

SHAPES = Shapes(observation=3, action=2)
HOPPER = Shapes(observation=11, action=3)
SMALL: dict[str, Any] = {
    "hidden": (6, 5), "batch_size": 20, "real_ratio": 0.25, "rollouts": 9, "rollout_length": 3, "retain": 2,
    "models": 3, "elites": 2, "dynamics_hidden": (5, 4), "dynamics_decay": (0.01, 0.02, 0.03), "held_out": 8,
    "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3,
}  # fmt: skip


# -- the transcription -------------------------------------------------------------------------------------------------


def swish_perceptron(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = x / (1 + np.exp(-x))
    return x


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log(1 + np.exp(x))


def gaussian(network: list[np.ndarray], bounds: list[np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and log-variance of one network; `bounds` is [largest, least]."""
    mean, log_variance = np.split(swish_perceptron(network, x), 2, axis=-1)
    log_variance = bounds[0] - softplus(bounds[0] - log_variance)
    return mean, bounds[1] + softplus(log_variance - bounds[1])


def columns(
    rows: int = 60, shapes: Shapes = SHAPES, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    (s, a, r, s2, terminal), *_ = batches(1, rows, *shapes, seed=seed)
    return 2 * s + 1, a, 3 * r, s2 - 1, terminal


def scales(s: np.ndarray, a: np.ndarray) -> Any:
    x = beside(s, a)
    return x.mean(0), x.std(0)


def data_of(
    table: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], length: int | None = None
) -> Data:
    """`Data` in float64 over these columns."""
    s, a, r, s2, terminal = (jnp.asarray(column) for column in table)

    def take(rows: jax.Array) -> Batch:
        return Batch(s[rows], a[rows], r[rows], s2[rows], terminal[rows], rows)

    def spread(x: jax.Array) -> Spread:
        return Spread(x.mean(0), x.std(0), jnp.abs(x - x.mean(0)[None]).mean(0))

    inputs, outcomes = jnp.concatenate([s, a], 1), jnp.concatenate([r[:, None], s2 - s], 1)
    starts = jnp.arange(0, len(r), 20)
    used = jnp.asarray(len(r) if length is None else length)
    return Data(used, take, starts, jnp.asarray(len(starts)), Statistics(spread(inputs), spread(outcomes)))


class DynamicsReference:
    def __init__(self, config: Any, fit: Any, table: Any) -> None:
        self.config = config
        self.networks = [arrays(fit.networks, i) for i in range(config.models)]
        self.bounds = [np.full(4, 0.5), np.full(4, -10.0)]
        self.flat = [p for network in self.networks for p in network] + self.bounds
        self.adam = Adam(self.flat, config.dynamics_learning_rate)
        self.s, self.a, r, s2, _ = table
        self.y = beside(r[:, None], s2 - self.s)
        self.mean, self.std = scales(self.s, self.a)
        self.best: list[Parameters] = []
        self.errors, self.stale = [1e10] * config.models, 0

    def x(self, rows: np.ndarray) -> Any:
        return (beside(self.s[rows], self.a[rows]) - self.mean) / self.std

    def loss(self, flat: Any, rows: np.ndarray) -> Any:
        per, total = len(self.networks[0]), 0.0
        bounds = flat[-2:]
        for i in range(self.config.models):
            network = flat[i * per : (i + 1) * per]
            mean, log_variance = gaussian(network, bounds, self.x(rows[i]))
            total += ((mean - self.y[rows[i]]) ** 2 / np.exp(log_variance)).mean() + log_variance.mean()
            total += sum(d * 0.5 * (w**2).sum() for d, w in zip(self.config.dynamics_decay, network[::2], strict=True))
        return total + 0.01 * bounds[0].sum() - 0.01 * bounds[1].sum()

    def update(self, rows: np.ndarray) -> None:
        self.adam.step(self.flat, gradient(lambda flat: self.loss(flat, rows), self.flat))

    def judge(self, held_out: Any) -> Any:
        errors = []
        for network in self.networks:
            mean, _ = gaussian(network, self.bounds, self.x(held_out))
            errors.append(((mean - self.y[held_out]) ** 2).mean())
        improved = [(old - new) / old > 0.01 for new, old in zip(errors, self.errors, strict=True)]
        if not self.best:
            self.best = [[p.copy() for p in network] for network in self.networks]
        for i, better in enumerate(improved):
            if better:
                self.errors[i], self.best[i] = errors[i], [p.copy() for p in self.networks[i]]
        self.stale = 0 if any(improved) else self.stale + 1
        return sorted(errors)


@functools.cache
def table_and_data() -> Any:
    return columns(), data_of(columns())


@functools.cache
def stage_functions(members: int) -> Any:
    """Compiled once for all settings that differ in traced numbers alone."""
    stage, (_, data) = mopo_model.DYNAMICS, table_and_data()
    return (
        jax.jit(lambda config, fit, key: stage.update(config, fit, data, key)),
        jax.jit(lambda config, fit: stage.judge(config, fit, data)),
        jax.jit(lambda config, fit, key: draw_rows(config, fit, data, key, members, True)),
    )


def fitted(config: Any, epochs: int = 3, updates: int = 2) -> Any:
    """The stage and its transcription after the same batches."""
    stage, (table, data) = mopo_model.DYNAMICS, table_and_data()
    fit = jax.jit(lambda key: stage.init(config, SHAPES, data, key))(random_key(0))
    fit = jax.tree.map(lambda x: x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x, fit)
    reference = DynamicsReference(config, fit, table)
    update, judge, rows_of = stage_functions(config.models)
    held_out = np.asarray(fit.held_out)
    for epoch in range(epochs):
        for number in range(updates):
            key = random_key(10 * epoch + number)
            rows = np.asarray(rows_of(config, fit, key))
            assert not np.isin(rows, held_out).any()
            expected = reference.loss(reference.flat, rows)
            fit, metrics = update(config, fit, key)
            np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-10)
            reference.update(rows)
        fit, metrics = judge(config, fit)
        errors = reference.judge(held_out)
        np.testing.assert_allclose(metrics["held_out_error"], np.mean(errors[: config.elites]), rtol=1e-10)
    return fit, reference, data


@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_fitting_the_dynamics_agrees(rate: float) -> None:
    """The larger rate makes errors rise and fall: some networks go back to an earlier epoch."""
    with jax.enable_x64(True):
        config = mopo.Config(**SMALL, dynamics_learning_rate=rate)
        fit, reference, data = fitted(config, epochs=5)
        for i in range(config.models):
            assert difference(arrays(fit.networks, i), reference.networks[i]) < 1e-8
            assert difference(arrays(fit.best, i), reference.best[i]) < 1e-8
            mu = [m for k, m in enumerate(reference.adam.m) if k // 6 == i and k < 6 * config.models]
            assert difference(arrays(fit.optimiser.mu[0], i), mu) < 1e-8
        assert difference(list(fit.shared), reference.bounds) < 1e-8
        assert difference([fit.errors], [np.array(reference.errors)]) < 1e-8
        assert int(fit.stale) == reference.stale
        if rate > 0.1:
            assert difference(arrays(fit.best, 0), reference.networks[0]) > 1e-3, "nothing went back: no test of it"
        learned = mopo_model.learn_dynamics(config, fit, data)
        np.testing.assert_array_equal(learned.elites, np.argsort(reference.errors)[: config.elites])
        assert difference(arrays(learned.dynamics.networks, 1), reference.best[1]) < 1e-8
