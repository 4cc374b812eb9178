"""MOReL against a plain float64 transcription: the pessimistic MDP, the natural gradient, whole updates."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import morel, morel_stages
from score_rl.algorithms.morel import Config, State
from score_rl.nets.natural_gradient import conjugate_gradient
from tests.parity.numpy_reference import STEP, Adam, Parameters, arrays, beside, difference, gradient, perceptron
from tests.parity.soft_reference import compiled, random_key, started
from tests.parity.test_morel_stages import HOPPER, MASK, SMALL, DynamicsReference, data, table, tanh_perceptron

LARGEST = 0.2  # disagreement on the data, so that a third of it is the threshold


# -- one iteration -----------------------------------------------------------------------------------------------------


def hopper_ends(s: np.ndarray) -> bool:
    """From scaled observations."""
    s = s / MASK
    return not (s[0] > 0.7 and abs(s[1]) < 0.2 and (np.abs(s[1:]) < 100).all())


def features(s: np.ndarray) -> np.ndarray:
    time = np.arange(len(s))[:, None] / 1000
    return beside(np.clip(s, -10, 10) / 10, time, time**2, time**3, time**4)


def discount_sum(x: np.ndarray, rate: float) -> np.ndarray:
    total, sums = 0.0, []
    for value in x[::-1]:
        total = value + rate * total
        sums.append(total)
    return np.array(sums[::-1])


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, learned = config, state.learned
        self.model = DynamicsReference(config, (learned.dynamics.networks, learned.dynamics.reward_networks))
        self.threshold = float(learned.largest) / config.pessimism
        self.policy, self.log_std = arrays(state.policy.network), np.array(state.policy.log_std)
        self.baseline = arrays(state.baseline)
        self.adam = Adam(self.baseline, config.baseline_learning_rate)
        self.ends: list[str | None] = []

    def path(
        self, member: int, s: np.ndarray, noise: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
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

    def kl_slope(self, log_std: np.ndarray) -> np.ndarray:
        """d/dlog σ of the KL divergence at equal means."""
        old, v = np.exp(2 * self.log_std), np.exp(2 * log_std)
        top, bottom = old - v, 2 * v + 1e-8
        return (-2 * v * bottom - top * 4 * v) / bottom**2 + 1

    def step(self, s: np.ndarray, a: np.ndarray, advantages: np.ndarray) -> None:
        """The natural gradient, with its matrix written out."""
        variance = np.exp(2 * self.log_std)

        def surrogate(parameters: Parameters) -> Any:
            mean, log_std = tanh_perceptron(parameters[1:], s), parameters[0]
            log_prob = -0.5 * (((a - mean) / np.exp(log_std)) ** 2).sum(-1) - log_std.sum()
            return (log_prob * advantages).mean()

        slopes = gradient(surrogate, [self.log_std, *self.policy])
        g = np.concatenate([slope.ravel() for slope in slopes])
        rows = []
        for number, parameter in enumerate(self.policy):
            for place in np.ndindex(parameter.shape):
                shifted = list(self.policy)
                shifted[number] = parameter.astype(complex)
                shifted[number][place] += 1j * STEP
                rows.append(np.imag(tanh_perceptron(shifted, s)) / STEP)
        jacobian = np.array(rows)  # parameters, samples, actions
        weighted = jacobian * (2 / (2 * variance + 1e-8))
        size = len(self.log_std)
        fisher = np.zeros((len(g), len(g)))
        fisher[size:, size:] = np.einsum("pna,qna->pq", weighted, jacobian) / len(s)
        for d in range(size):
            moved = self.log_std.astype(complex)
            moved[d] += 1j * STEP
            fisher[d, d] = np.imag(self.kl_slope(moved)[d]) / STEP
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

    def update(self, starts: np.ndarray, noise: Any, draws: Any) -> tuple[np.floating[Any], np.floating[Any]]:
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


def prepared(config: Any) -> State:
    """A state whose model and policy do something: some rollouts halt, some end by the rule, some go on."""
    state = started(morel, config, HOPPER)
    rng = np.random.default_rng(3)
    model = jax.jit(lambda networks: morel_stages.model_of(config, networks, data()))(
        (state.learned.dynamics.networks, state.learned.dynamics.reward_networks)
    )
    networks = jax.tree.map(lambda p: p + 0.1 * rng.normal(size=p.shape), model.networks)
    model = model._replace(networks=networks)
    policy = state.policy._replace(
        network=jax.tree.map(lambda p: p + 0.2 * rng.normal(size=p.shape), state.policy.network)
    )
    return state._replace(learned=morel_stages.Learned(model, jnp.asarray(LARGEST)), policy=policy)


def train_both(config: Any, expected_config: Config | None = None, updates: int = 2) -> tuple[State, Reference]:
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

        def draws(valid: int, key: jax.Array = baseline_key) -> Iterator[Any]:
            for index in range(max(valid // 16 - 1, 1)):
                yield np.asarray(jax.random.randint(jax.random.fold_in(key, index), (16,), 0, valid))

        expected = reference.update(starts, noise, draws)
        state, metrics = step(config, state, None, random_key(number), 0)
        if expected_config is None:
            np.testing.assert_allclose([metrics["model_return"], metrics["model_steps"]], expected, rtol=1e-9)
    return state, reference


def largest_difference(state: Any, reference: Any) -> float:
    return max(
        difference(arrays(state.policy.network), reference.policy),
        difference([state.policy.log_std], [reference.log_std]),
        difference(arrays(state.baseline), reference.baseline),
        difference(arrays(state.baseline_optimiser.mu), reference.adam.m),
    )


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(morel, "BASELINE_BATCH", 16)


def test_updates_agree(small_batches: Any) -> None:
    with jax.enable_x64(True):
        config = morel.Config(**SMALL, halt_reward=-1.5, discount=0.95, fisher_iterations=8)
        before = prepared(config)
        state, reference = train_both(config)
        assert {"halt", "rule", None} == set(reference.ends), "every way to end must be seen"
        assert largest_difference(state, reference) < 1e-7
        assert difference(arrays(before.policy.network), reference.policy) > 1e-2


def test_the_reference_notices_a_wrong_setting(small_batches: Any) -> None:
    with jax.enable_x64(True):
        right = morel.Config(**SMALL, halt_reward=-1.5, discount=0.95, fisher_iterations=8)
        wrong = morel.Config(**SMALL, halt_reward=-1.4, discount=0.95, fisher_iterations=8)
        assert largest_difference(*train_both(right, wrong, updates=1)) > 1e-6


def test_conjugate_gradient_solves_and_stops() -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        half = rng.normal(size=(12, 12))
        matrix, right = half @ half.T + np.eye(12), rng.normal(size=12)
        for iterations in (25, 200):  # long after it is solved
            found = conjugate_gradient(
                lambda v: jnp.asarray(matrix) @ v, jnp.asarray(right), jnp.asarray(right), iterations
            )
            np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-4, atol=1e-5)
