"""MOReL against a plain float64 transcription: its stages, the pessimistic MDP, the natural gradient, whole updates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import morel
from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.model_fitting import draw_rows
from score_rl.nets.natural_gradient import conjugate_gradient
from tests.parity.numpy_reference import STEP, Adam, arrays, beside, difference, gradient, perceptron
from tests.parity.soft_reference import compiled, random_key, started
from tests.parity.test_mopo import columns, data_of

HOPPER = Shapes(observation=11, action=3)
LARGEST = 0.2  # disagreement on the data, so that a third of it is the threshold
MASK = np.array([1.0] * 5 + [0.02] * 6)
SMALL = {
    "hidden": (4, 3), "baseline_hidden": (5, 4), "dynamics_hidden": (5, 4), "reward_hidden": (4, 3), "models": 3,
    "paths": 5, "horizon": 7, "batch_size": 10, "held_out": 8, "task": "hopper",
}  # fmt: skip


def table():
    """Raw hopper-like columns that start upright."""
    s, a, r, s2, terminal = columns(shapes=HOPPER)
    s[:, 0], s[:, 1] = 1.2 + 0.1 * s[:, 0], 0.01 * s[:, 1]
    s2 = s + 0.05 * s2
    s2[:, 1] = s[:, 1] + 0.03 * (s2[:, 1] - s[:, 1])
    return s, a, r, s2, terminal


@functools.cache
def data():
    with jax.ensure_compile_time_eval():  # also when first asked for inside a compiled function
        return data_of(table())


# -- the stages --------------------------------------------------------------------------------------------------------


class DynamicsReference:
    """In scaled observations; units are means and mean absolute deviations."""

    def __init__(self, config, networks):
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

    def following(self, network, s, a):
        return s + perceptron(network, (beside(s, a) - self.x_mean) / self.x_unit) * self.y_unit + self.y_mean

    def reward(self, network, s, a, s2):
        x = (beside(s, a, s2) - beside(self.x_mean, self.x_mean[:11])) / beside(self.x_unit, self.x_unit[:11])
        return perceptron(network, x)[..., 0] * self.r_unit + self.r_mean

    def change_error(self, network, rows):
        gap = self.following(network, self.s[rows], self.a[rows]) - self.s2[rows]
        return ((gap / self.y_unit) ** 2).mean()

    def update(self, rows):
        total = 0.0
        for i in range(len(self.dynamics)):
            own = rows[i]
            s, a, r = self.s[own], self.a[own], self.r[own]
            predicted = self.following(self.dynamics[i], s, a)
            reward_loss = lambda p: ((self.reward(p, s, a, predicted) - r) ** 2).mean()  # noqa: B023, E731
            change_loss = lambda p: self.change_error(p, own)  # noqa: B023, E731
            total += change_loss(self.dynamics[i]) + reward_loss(self.rewards[i])
            slopes = gradient(change_loss, self.dynamics[i]), gradient(reward_loss, self.rewards[i])
            self.dynamics_adams[i].step(self.dynamics[i], slopes[0])
            self.reward_adams[i].step(self.rewards[i], slopes[1])
        return total

    def disagreement(self, s, a):
        predicted = [self.following(network, s, a) for network in self.dynamics]
        pairs = [(i, j) for i in range(len(predicted)) for j in range(i)]
        return np.max([np.linalg.norm(predicted[i] - predicted[j], axis=-1) for i, j in pairs], axis=0)


def begun(stage, config):
    fit = jax.jit(lambda key: stage.init(config, HOPPER, data(), key))(random_key(0))
    return jax.tree.map(lambda x: x.astype(jnp.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x, fit)


def stepped(stage, config, members):
    return (
        jax.jit(lambda fit, key: stage.update(config, fit, data(), key)),
        jax.jit(lambda fit, key: draw_rows(config, fit, data(), key, members, False)),
    )


def test_fitting_the_dynamics_agrees(monkeypatch):
    with jax.enable_x64(True):
        config = morel.Config(**SMALL)
        fit = begun(morel.DYNAMICS, config)
        reference = DynamicsReference(config, fit.networks)
        update, rows_of = stepped(morel.DYNAMICS, config, config.models)
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
        fit, metrics = jax.jit(lambda fit: morel.DYNAMICS.judge(config, fit, data()))(fit)
        held_out = np.asarray(fit.held_out)
        expected = [reference.change_error(network, held_out) for network in reference.dynamics]
        np.testing.assert_allclose(metrics["held_out_error"], np.mean(expected), rtol=1e-10)
        monkeypatch.setattr(morel, "ROWS_AT_ONCE", 16)  # the data's 60 rows are no multiple of it
        learned = jax.jit(lambda fit: morel.learn_dynamics(config, fit, data()))(fit)
        np.testing.assert_allclose(learned.largest, reference.disagreement(reference.s, reference.a).max(), rtol=1e-10)


def tanh_perceptron(parameters, x):
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = np.tanh(x)
    return x


def test_cloning_agrees():
    with jax.enable_x64(True):
        config = morel.Config(**SMALL)
        fit = begun(morel.CLONING, config)
        network = arrays(fit.networks, 0)
        adam = Adam(network, config.cloning_learning_rate)
        update, rows_of = stepped(morel.CLONING, config, 1)
        s, a = table()[0] * MASK, table()[1]
        for number in range(3):
            rows = np.asarray(rows_of(fit, random_key(number)))[0]
            fit, _ = update(fit, random_key(number))
            loss = lambda p: ((tanh_perceptron(p, s[rows]) - a[rows]) ** 2).mean()  # noqa: B023, E731
            adam.step(network, gradient(loss, network))
        assert difference(arrays(fit.networks, 0), network) < 1e-8
        assert difference(arrays(fit.optimiser.mu[0], 0), adam.m) < 1e-8


# -- one iteration -----------------------------------------------------------------------------------------------------


def hopper_ends(s):
    """From scaled observations."""
    s = s / MASK
    return not (s[0] > 0.7 and abs(s[1]) < 0.2 and (np.abs(s[1:]) < 100).all())


def features(s):
    time = np.arange(len(s))[:, None] / 1000
    return beside(np.clip(s, -10, 10) / 10, time, time**2, time**3, time**4)


def discount_sum(x, rate):
    total, sums = 0.0, []
    for value in x[::-1]:
        total = value + rate * total
        sums.append(total)
    return np.array(sums[::-1])


class Reference:
    def __init__(self, config, state):
        self.config, learned = config, state.learned
        self.model = DynamicsReference(config, (learned.dynamics.networks, learned.dynamics.reward_networks))
        self.threshold = float(learned.largest) / config.pessimism
        self.policy, self.log_std = arrays(state.policy.network), np.array(state.policy.log_std)
        self.baseline = arrays(state.baseline)
        self.adam = Adam(self.baseline, config.baseline_learning_rate)
        self.ends = []

    def path(self, member, s, noise):
        """One rollout, until it ends."""
        config, steps, ended = self.config, [], None
        for blur in noise:
            a = np.clip(
                tanh_perceptron(self.policy, s) + np.exp(self.log_std) * blur, -config.action_bound, config.action_bound
            )
            s2 = self.model.following(self.model.dynamics[member], s, a)
            r = self.model.reward(self.model.rewards[member], s, np.clip(a, -1, 1), s2)
            halt = self.model.disagreement(s, a) > self.threshold
            s2 = np.clip(s2, -100, 100)
            steps.append((s, a, r + (config.halt_reward if halt else 0)))
            if halt or hopper_ends(s2):
                ended = "halt" if halt else "rule"
                break
            s = s2
        self.ends.append(ended)
        s, a, r = (np.array(column) for column in zip(*steps, strict=True))
        b = perceptron(self.baseline, features(s))[:, 0]
        following = np.append(b[1:], 0.0 if ended else b[-1])
        advantages = discount_sum(r + config.discount * following - b, config.discount * config.gae)
        return s, a, advantages, features(s), discount_sum(r, config.discount), r.sum()

    def kl_slope(self, log_std):
        """d/dlog σ of the KL divergence at equal means."""
        old, v = np.exp(2 * self.log_std), np.exp(2 * log_std)
        top, bottom = old - v, 2 * v + 1e-8
        return (-2 * v * bottom - top * 4 * v) / bottom**2 + 1

    def step(self, s, a, advantages):
        """The natural gradient, with its matrix written out."""
        variance = np.exp(2 * self.log_std)

        def surrogate(parameters):
            mean, log_std = tanh_perceptron(parameters[1:], s), parameters[0]
            log_prob = -0.5 * (((a - mean) / np.exp(log_std)) ** 2).sum(-1) - log_std.sum()
            return (log_prob * advantages).mean()

        slopes = gradient(surrogate, [self.log_std, *self.policy])
        g = np.concatenate([slope.ravel() for slope in slopes])
        jacobian = []
        for number, parameter in enumerate(self.policy):
            for place in np.ndindex(parameter.shape):
                shifted = list(self.policy)
                shifted[number] = parameter.astype(complex)
                shifted[number][place] += 1j * STEP
                jacobian.append(np.imag(tanh_perceptron(shifted, s)) / STEP)
        jacobian = np.array(jacobian)  # parameters, samples, actions
        weighted = jacobian * (2 / (2 * variance + 1e-8))
        size = len(self.log_std)
        fisher = np.zeros((len(g), len(g)))
        fisher[size:, size:] = np.einsum("pna,qna->pq", weighted, jacobian) / len(s)
        for d in range(size):
            shifted = self.log_std.astype(complex)
            shifted[d] += 1j * STEP
            fisher[d, d] = np.imag(self.kl_slope(shifted)[d]) / STEP
        fisher += self.config.damping * np.eye(len(g))
        x, r = g.copy(), g - fisher @ g
        p = r.copy()
        for _ in range(self.config.fisher_iterations):
            squared, product = r @ r, fisher @ p
            length = squared / (p @ product)
            x, r = x + length * p, r - length * product
            p = r + (r @ r / squared) * p
            if r @ r < 1e-10:
                break
        moved = np.sqrt(abs(self.config.step_size / (g @ x + 1e-10))) * x
        self.log_std = np.clip(self.log_std + moved[:size], self.config.least_log_std, self.config.largest_log_std)
        for parameter in self.policy:
            parameter += moved[size : size + parameter.size].reshape(parameter.shape)
            size += parameter.size

    def update(self, starts, noise, draws):
        """`draws(number, batches)` gives the baseline's batches as numbers among the valid samples."""
        config = self.config
        paths = [
            self.path(member, s, noise[:, member * config.paths + place])
            for member in range(config.models)
            for place, s in enumerate(starts)
        ]
        s, a, advantages = (np.concatenate([path[k] for path in paths]) for k in range(3))
        self.step(s, a, (advantages - advantages.mean()) / (advantages.std() + 1e-6))
        # The program counts its samples time first.
        order = [(t, row) for t in range(config.horizon) for row, path in enumerate(paths) if t < len(path[0])]
        x = np.array([paths[row][3][t] for t, row in order])
        y = np.array([paths[row][4][t] for t, row in order])
        for rows in draws(len(y)):
            loss = lambda p: ((perceptron(p, x[rows])[:, 0] - y[rows]) ** 2).mean()  # noqa: B023, E731
            slopes = gradient(loss, self.baseline)
            self.adam.step(
                self.baseline, [g + config.baseline_decay * p for g, p in zip(slopes, self.baseline, strict=True)]
            )
        return np.mean([path[5] for path in paths]), np.mean([len(path[0]) for path in paths])


def prepared(config):
    """A state whose model and policy do something: some rollouts halt, some end by the rule, some go on."""
    state = started(morel, config, HOPPER)
    rng = np.random.default_rng(3)
    model = jax.jit(lambda networks: morel.model_of(config, networks, data()))(
        (state.learned.dynamics.networks, state.learned.dynamics.reward_networks)
    )
    networks = jax.tree.map(lambda p: p + 0.1 * rng.normal(size=p.shape), model.networks)
    model = model._replace(networks=networks)
    policy = state.policy._replace(
        network=jax.tree.map(lambda p: p + 0.2 * rng.normal(size=p.shape), state.policy.network)
    )
    return state._replace(learned=morel.Learned(model, jnp.asarray(LARGEST)), policy=policy)


def train_both(config, expected_config=None, updates=2):
    state = prepared(config)
    reference = Reference(expected_config or config, state)
    refresh = jax.jit(lambda state, key: morel.refresh(config, state, data(), key)[0])
    step = compiled(morel.update, static=4)
    for number in range(updates):
        state = refresh(state, random_key(100 + number))
        drawn = np.asarray(jax.random.randint(random_key(100 + number), (config.paths,), 0, 3))
        starts = (table()[0] * MASK)[np.array([0, 20, 40])[drawn]]
        np.testing.assert_allclose(state.starts, starts, rtol=1e-12)
        noise_key, baseline_key = jax.random.split(random_key(number))
        noise = np.asarray(jax.random.normal(noise_key, (config.horizon, config.models * config.paths, 3), jnp.float64))

        def draws(valid, key=baseline_key):
            for index in range(max(valid // 16 - 1, 1)):
                yield np.asarray(jax.random.randint(jax.random.fold_in(key, index), (16,), 0, valid))

        expected = reference.update(starts, noise, draws)
        state, metrics = step(config, state, None, random_key(number), 0)
        if expected_config is None:
            np.testing.assert_allclose([metrics["model_return"], metrics["model_steps"]], expected, rtol=1e-9)
    return state, reference


def largest_difference(state, reference):
    return max(
        difference(arrays(state.policy.network), reference.policy),
        difference([state.policy.log_std], [reference.log_std]),
        difference(arrays(state.baseline), reference.baseline),
        difference(arrays(state.baseline_optimiser.mu), reference.adam.m),
    )


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(morel, "BASELINE_BATCH", 16)


def test_updates_agree(small_batches):
    with jax.enable_x64(True):
        config = morel.Config(**SMALL, halt_reward=-1.5, discount=0.95, fisher_iterations=8)
        before = prepared(config)
        state, reference = train_both(config)
        assert {"halt", "rule", None} == set(reference.ends), "every way to end must be seen"
        assert largest_difference(state, reference) < 1e-7
        assert difference(arrays(before.policy.network), reference.policy) > 1e-2


def test_the_reference_notices_a_wrong_setting(small_batches):
    with jax.enable_x64(True):
        right = morel.Config(**SMALL, halt_reward=-1.5, discount=0.95, fisher_iterations=8)
        wrong = morel.Config(**SMALL, halt_reward=-1.4, discount=0.95, fisher_iterations=8)
        assert largest_difference(*train_both(right, wrong, updates=1)) > 1e-6


def test_conjugate_gradient_solves_and_stops():
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        half = rng.normal(size=(12, 12))
        matrix, right = half @ half.T + np.eye(12), rng.normal(size=12)
        for iterations in (25, 200):  # long after it is solved
            found = conjugate_gradient(
                lambda v: jnp.asarray(matrix) @ v, jnp.asarray(right), jnp.asarray(right), iterations
            )
            np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-4, atol=1e-5)
