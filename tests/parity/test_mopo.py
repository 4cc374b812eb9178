"""MOPO against a plain float64 transcription: fitting the dynamics, rollouts in them, consecutive full updates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import mopo
from score_rl.algorithms.algorithm import Batch, Data, Shapes, Spread, Statistics
from score_rl.algorithms.model_fitting import draw_rows
from tests.parity.numpy_reference import Adam, arrays, batches, beside, difference, follow, gradient, smallest
from tests.parity.soft_reference import SoftReference, all_q, batch_of, compiled, q_of, random_key, sample, started

SHAPES = Shapes(observation=3, action=2)
HOPPER = Shapes(observation=11, action=3)
SMALL = {
    "hidden": (6, 5), "batch_size": 20, "real_ratio": 0.25, "rollouts": 9, "rollout_length": 3, "retain": 2,
    "models": 3, "elites": 2, "dynamics_hidden": (5, 4), "dynamics_decay": (0.01, 0.02, 0.03), "held_out": 8,
    "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3,
}  # fmt: skip


# -- the transcription -------------------------------------------------------------------------------------------------


def swish_perceptron(parameters, x):
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = x / (1 + np.exp(-x))
    return x


def softplus(x):
    return np.log(1 + np.exp(x))


def gaussian(network, bounds, x):
    """Mean and log-variance of one network; `bounds` is [largest, least]."""
    mean, log_variance = np.split(swish_perceptron(network, x), 2, axis=-1)
    log_variance = bounds[0] - softplus(bounds[0] - log_variance)
    return mean, bounds[1] + softplus(log_variance - bounds[1])


def columns(rows=60, shapes=SHAPES, seed=1):
    (s, a, r, s2, terminal), *_ = batches(1, rows, *shapes, seed=seed)
    return 2 * s + 1, a, 3 * r, s2 - 1, terminal


def scales(s, a):
    x = beside(s, a)
    return x.mean(0), x.std(0)


def data_of(table, length=None):
    """`Data` in float64 over these columns."""
    s, a, r, s2, terminal = (jnp.asarray(column) for column in table)

    def take(rows):
        return Batch(s[rows], a[rows], r[rows], s2[rows], terminal[rows], rows)

    def spread(x):
        return Spread(x.mean(0), x.std(0), jnp.abs(x - x.mean(0)[None]).mean(0))

    inputs, outcomes = jnp.concatenate([s, a], 1), jnp.concatenate([r[:, None], s2 - s], 1)
    starts = jnp.arange(0, len(r), 20)
    length = jnp.asarray(len(r) if length is None else length)
    return Data(length, take, starts, jnp.asarray(len(starts)), Statistics(spread(inputs), spread(outcomes)))


class DynamicsReference:
    def __init__(self, config, fit, table):
        self.config = config
        self.networks = [arrays(fit.networks, i) for i in range(config.models)]
        self.bounds = [np.full(4, 0.5), np.full(4, -10.0)]
        self.flat = [p for network in self.networks for p in network] + self.bounds
        self.adam = Adam(self.flat, config.dynamics_learning_rate)
        self.s, self.a, r, s2, _ = table
        self.y = beside(r[:, None], s2 - self.s)
        self.mean, self.std = scales(self.s, self.a)
        self.best, self.errors, self.stale = None, [1e10] * config.models, 0

    def x(self, rows):
        return (beside(self.s[rows], self.a[rows]) - self.mean) / self.std

    def loss(self, flat, rows):
        per, total = len(self.networks[0]), 0.0
        bounds = flat[-2:]
        for i in range(self.config.models):
            network = flat[i * per : (i + 1) * per]
            mean, log_variance = gaussian(network, bounds, self.x(rows[i]))
            total += ((mean - self.y[rows[i]]) ** 2 / np.exp(log_variance)).mean() + log_variance.mean()
            total += sum(d * 0.5 * (w**2).sum() for d, w in zip(self.config.dynamics_decay, network[::2], strict=True))
        return total + 0.01 * bounds[0].sum() - 0.01 * bounds[1].sum()

    def update(self, rows):
        self.adam.step(self.flat, gradient(lambda flat: self.loss(flat, rows), self.flat))

    def judge(self, held_out):
        found = []
        for network in self.networks:
            mean, _ = gaussian(network, self.bounds, self.x(held_out))
            found.append(((mean - self.y[held_out]) ** 2).mean())
        improved = [(old - new) / old > 0.01 for new, old in zip(found, self.errors, strict=True)]
        if self.best is None:
            self.best = [[p.copy() for p in network] for network in self.networks]
        for i, better in enumerate(improved):
            if better:
                self.errors[i], self.best[i] = found[i], [p.copy() for p in self.networks[i]]
        self.stale = 0 if any(improved) else self.stale + 1
        return sorted(found)


@functools.cache
def table_and_data():
    return columns(), data_of(columns())


@functools.cache
def stage_functions(members):
    """Compiled once for all settings that differ in traced numbers alone."""
    stage, (_, data) = mopo.DYNAMICS, table_and_data()
    return (
        jax.jit(lambda config, fit, key: stage.update(config, fit, data, key)),
        jax.jit(lambda config, fit: stage.judge(config, fit, data)),
        jax.jit(lambda config, fit, key: draw_rows(config, fit, data, key, members, True)),
    )


def fitted(config, epochs=3, updates=2):
    """The stage and its transcription after the same batches."""
    stage, (table, data) = mopo.DYNAMICS, table_and_data()
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
        found = reference.judge(held_out)
        np.testing.assert_allclose(metrics["held_out_error"], np.mean(found[: config.elites]), rtol=1e-10)
    return fit, reference, data


@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_fitting_the_dynamics_agrees(rate):
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
        learned = mopo.learn_dynamics(config, fit, data)
        np.testing.assert_array_equal(learned.elites, np.argsort(reference.errors)[: config.elites])
        assert difference(arrays(learned.dynamics.networks, 1), reference.best[1]) < 1e-8


# -- rollouts ----------------------------------------------------------------------------------------------------------


def random_learned(config, shapes, seed=5):
    """Networks that disagree, with a spread of variances, and elites out of order."""
    rng = np.random.default_rng(seed)
    networks, bounds = mopo.init_dynamics(config, shapes, random_key(seed))
    networks = jax.tree.map(lambda p: jnp.asarray(p + 0.3 * rng.normal(size=p.shape)), networks)
    # The third outcome, hopper's angle, hardly moves: else every rollout would end at once.
    quiet = jnp.ones(2 * (1 + shapes.observation)).at[2].set(0.05)
    last = networks.weights[-1] * quiet[None, None], networks.biases[-1] * quiet[None]
    networks = mopo.Perceptron((*networks.weights[:-1], last[0]), (*networks.biases[:-1], last[1]))
    bounds = jax.tree.map(lambda b: jnp.asarray(b, jnp.float64), bounds)
    bounds = bounds._replace(largest=bounds.largest.at[2].set(-4.0))
    width = sum(shapes)
    scaler = mopo.Scaler(jnp.asarray(rng.normal(size=width)), jnp.asarray(1 + rng.uniform(size=width)))
    return mopo.Learned(mopo.GaussianDynamics(networks, bounds, scaler), jnp.asarray([2, 0]))


def outcome_of(config, learned, s, a, choice, noise):
    """r̂, s', uncertainty: row by row."""
    networks = [arrays(learned.dynamics.networks, i) for i in range(config.models)]
    bounds = [np.asarray(b) for b in learned.dynamics.bounds]
    x = (beside(s, a) - np.asarray(learned.dynamics.scaler.mean)) / np.asarray(learned.dynamics.scaler.scale)
    rewards, following, doubts = [], [], []
    for row in range(len(s)):
        predicted = [gaussian(network, bounds, x[row]) for network in networks]
        doubt = max(np.linalg.norm(np.sqrt(np.exp(log_variance))) for _, log_variance in predicted)
        mean, log_variance = predicted[int(learned.elites[choice[row]])]
        drawn = mean + np.sqrt(np.exp(log_variance)) * noise[row]
        rewards.append(drawn[0] - config.penalty * doubt)
        following.append(s[row] + drawn[1:])
        doubts.append(doubt)
    return np.array(rewards), np.array(following), np.array(doubts)


def hopper_ends(s):
    return not (s[0] > 0.7 and abs(s[1]) < 0.2 and (np.abs(s[1:]) < 100).all())


def test_rollouts_agree():
    """Twice as many as the ring holds; a rollout that ended adds nothing more."""
    with jax.enable_x64(True):
        config = mopo.Config(**SMALL, task="hopper", penalty=0.7)
        table = columns(shapes=HOPPER)
        table[0][:, 0], table[0][:, 1] = 2.5, 0.02
        data, state = data_of(table), started(mopo, config, HOPPER)
        learned = random_learned(config, HOPPER)
        state = state._replace(learned=learned)
        refresh = jax.jit(lambda state, key: mopo.refresh(config, state, data, key))
        stored, ended = [], 0
        for number in range(5):
            key = random_key(number)
            start_key, rest = jax.random.split(key)
            s = table[0][np.asarray(jax.random.randint(start_key, (config.rollouts,), 0, 60))]
            alive, doubts = np.arange(config.rollouts), []
            for step_key in jax.random.split(rest, config.rollout_length):
                action_key, choice_key, noise_key = jax.random.split(step_key, 3)
                noise = np.asarray(jax.random.normal(action_key, (config.rollouts, 3), jnp.float64))[alive]
                choice = np.asarray(jax.random.randint(choice_key, (config.rollouts,), 0, config.elites))[alive]
                blur = np.asarray(jax.random.normal(noise_key, (config.rollouts, 12), jnp.float64))[alive]
                a, _ = sample(arrays(state.soft.network), s, noise)
                r, s2, doubt = outcome_of(config, learned, s, a, choice, blur)
                ends = np.array([hopper_ends(row) for row in s2])
                stored += list(beside(s, a, r[:, None], s2, ends[:, None].astype(float)))
                doubts += list(doubt)
                alive, s, ended = alive[~ends], s2[~ends], ended + ends.sum()
            state, metrics = refresh(state, key)
            np.testing.assert_allclose(metrics["uncertainty"], np.mean(doubts), rtol=1e-10)
            np.testing.assert_allclose(metrics["imagined_steps"], len(doubts) / config.rollouts, rtol=1e-10)
        capacity = config.retain * config.rollouts * config.rollout_length
        assert len(stored) > capacity
        assert 10 < ended < len(stored), "some must end and some must go on"
        expected = np.zeros((capacity, 27))
        for number, row in enumerate(stored):
            expected[number % capacity] = row
        np.testing.assert_allclose(state.imagined.rows, expected, rtol=1e-8, atol=1e-10)
        assert int(state.imagined.next) == len(stored) % capacity
        assert int(state.imagined.size) == capacity


# -- the agent ---------------------------------------------------------------------------------------------------------


class Reference:
    def __init__(self, config, state):
        self.config, self.soft = config, SoftReference(state.soft, config.actor_learning_rate)
        self.critics = [arrays(state.critics, i) for i in range(config.critics)]
        self.targets = [[p.copy() for p in critic] for critic in self.critics]
        self.adams = [Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def update(self, s, a, r, s2, terminal, here, there):
        soft, alpha = self.soft, self.soft.alpha
        a2, log_prob = sample(soft.network, s2, there)
        v2 = smallest(all_q(self.targets, s2, a2), 0) - alpha * log_prob
        y = r + self.config.discount * (1 - terminal) * v2
        for critic, adam in zip(self.critics, self.adams, strict=True):
            adam.step(critic, gradient(lambda p: ((q_of(p, s, a) - y) ** 2).mean(), critic))
        slope = soft.actor_gradient(alpha, self.critics, s, here)
        soft.tune(s, here)
        soft.network_adam.step(soft.network, slope)
        for online, followed in zip(self.critics, self.targets, strict=True):
            follow(followed, online, self.config.tau)


def train_both(config, expected_config=None, updates=4):
    state = started(mopo, config, SHAPES)
    rng = np.random.default_rng(7)
    ring = rng.normal(size=state.imagined.rows.shape)
    ring[:, -1] = rng.uniform(size=len(ring)) < 0.2
    filled = 40  # what lies beyond must never be drawn
    ring[filled:] = np.nan
    imagined = mopo.Imagined(jnp.asarray(ring), jnp.asarray(filled), jnp.asarray(filled))
    state = state._replace(imagined=imagined)
    reference = Reference(expected_config or config, state)
    step = compiled(mopo.update, static=4)
    real = 5  # a quarter of 20
    for number, table in enumerate(batches(updates, config.batch_size, *SHAPES)):
        key, batch = random_key(number), batch_of(*table)
        draws = jax.tree.map(np.asarray, compiled(mopo.draw)(config, state, batch, key))
        assert draws.rows.shape == (15,)
        chosen = ring[draws.rows]
        parts = (chosen[:, :3], chosen[:, 3:5], chosen[:, 5], chosen[:, 6:9], chosen[:, 9])
        mixed = [np.concatenate([column[:real], part]) for column, part in zip(table, parts, strict=True)]
        reference.update(*mixed, draws.here, draws.there)
        state, metrics = step(config, state, batch, key, 0)
        assert all(np.isfinite(value) for value in metrics.values())
    return state, reference


def largest_difference(state, reference):
    found = [
        difference(arrays(state.soft.network), reference.soft.network),
        difference(arrays(state.soft.network_optimiser.mu), reference.soft.network_adam.m),
        difference([state.soft.log_temperature], reference.soft.log_alpha),
    ]
    for i, critic in enumerate(reference.critics):
        found += [
            difference(arrays(state.critics, i), critic),
            difference(arrays(state.critic_optimiser.mu, i), reference.adams[i].m),
            difference(arrays(state.target_critics, i), reference.targets[i]),
        ]
    return max(found)


def test_updates_agree():
    with jax.enable_x64(True):
        assert largest_difference(*train_both(mopo.Config(**SMALL))) < 1e-8


def test_the_reference_notices_a_wrong_setting():
    with jax.enable_x64(True):
        right, wrong = mopo.Config(**SMALL), mopo.Config(**(SMALL | {"discount": 0.98}))
        assert largest_difference(*train_both(right, wrong, updates=1)) > 1e-6


# -- settings ----------------------------------------------------------------------------------------------------------


def test_presets_are_the_tables():
    from score_rl.algorithms.presets import preset

    assert preset("mopo", "d4rl:hopper-medium-v2") == {"task": "hopper", "rollout_length": 5, "penalty": 5.0}
    assert preset("mopo", "replica:walker2d-medium") == {"task": "walker2d", "rollout_length": 5, "penalty": 0.5}
    assert preset("mopo", "walker2d-medium-replay-v2") == {"task": "walker2d", "rollout_length": 1, "penalty": 2.5}
    assert preset("mopo", "hopper-medium-replay") == {"task": "hopper", "rollout_length": 5, "penalty": 2.5}
    assert preset("mopo", "my-logs", "hopper") == {"task": "hopper"}
    assert preset("mopo", "my-logs") == preset("mopo", "my-logs", "ant") == {}
    assert preset("mopo", "halfcheetah-medium-expert") == {"task": "halfcheetah", "rollout_length": 5, "penalty": 2.5}
    assert preset("mopo", "halfcheetah-random-v2") == {"task": "halfcheetah", "rollout_length": 5, "penalty": 0.5}
