"""PBRL and PBRL-prior against a plain float64 transcription: both targets, the priors, the schedule of β_ood."""

from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import pbrl
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from tests.parity.numpy_reference import Adam, Parameters, arrays, difference, follow, gradient, smallest
from tests.parity.soft_reference import SHAPES, SoftReference, largest_difference, q_of, sample, started, train_both


def spread(q: np.ndarray) -> Any:
    """Standard deviation over the first axis, divided by one less than its length."""
    return np.sqrt(((q - q.mean(0)) ** 2).sum(0) / (len(q) - 1))


class Schedule:
    """β_ood as the published code keeps it: a straight line, then a constant, and two queues of records."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.constant: float | None = None
        self.recent: deque[float] = deque(maxlen=5)
        self.longer: deque[float] = deque(maxlen=20)

    def value(self, t: int) -> float:
        c = self.config
        if self.constant is not None:
            return self.constant
        if t < c.beta_ood_updates:
            return c.beta_ood + t / c.beta_ood_updates * (c.beta_ood_end - c.beta_ood)
        return c.beta_ood_end

    def record(self, t: int, q: float) -> None:
        """Called at update t, counted from 1; a new epoch begins at 1, 1001, 2001, ..."""
        c = self.config
        if (t - 1) % c.record_every:
            return
        weight, full = self.value(t), len(self.longer) == 20
        falls = full and np.mean(self.recent) < np.mean(list(self.longer)[:-5])
        if t > c.beta_ood_updates and weight > c.beta_ood_floor and falls:
            self.constant = weight / c.beta_ood_divisor
        self.recent.append(q)
        self.longer.append(q)


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.t, self.schedule = config, 0, Schedule(config)
        self.soft = SoftReference(state.soft, config.actor_learning_rate)
        members = range(config.critics)
        self.critics = [arrays(state.critics, i) for i in members]
        self.targets = [arrays(state.target_critics, i) for i in members]
        has_priors = config.prior_scale > 0
        self.priors = [arrays(state.priors, i) for i in members] if has_priors else None
        self.target_priors = [arrays(state.target_priors, i) for i in members] if has_priors else None
        self.adams = [Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def q(self, critics: list[Parameters], priors: list[Parameters] | None, s: np.ndarray, a: np.ndarray) -> Any:
        found = []
        for i, critic in enumerate(critics):
            # The prior's part is a number, never a function of what is being differentiated.
            prior = self.config.prior_scale * q_of(priors[i], s, a.real).real if priors else 0.0
            found.append(q_of(critic, s, a) + prior)
        return np.array(found)

    def update(
        self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, draws: Any
    ) -> None:
        c, soft = self.config, self.soft
        self.t += 1
        beta = self.schedule.value(self.t)
        soft.tune(s, draws.here)
        a2, _ = sample(soft.network, s2, draws.there)
        next_q = self.q(self.targets, self.target_priors, s2, a2)
        u2 = spread(next_q)
        y = [r + c.discount * (1 - terminal) * (next_q[i] - c.beta_in * u2) for i in range(c.critics)]
        n = len(r)
        here, _ = sample(soft.network, s, draws.ood[:, :n])
        there, _ = sample(soft.network, s2, draws.ood[:, n:])
        q_here = self.q(self.critics, self.priors, s, here)
        q_there = self.q(self.critics, self.priors, s2, there)
        y_here = np.maximum(q_here - beta * spread(q_here), 0)
        y_there = np.maximum(q_there - c.beta_next * spread(q_there), 0)
        assert (y_here == 0).any(), "the bound at 0 must take part in the comparison"
        slopes = []
        for i, critic in enumerate(self.critics):

            def loss(p: Parameters, i: int = i) -> Any:
                prior = [self.priors[i]] if self.priors else None
                error = ((self.q([p], prior, s, a)[0] - y[i]) ** 2).mean()
                one = (self.q([p], prior, s, here)[0] - y_here[i]) ** 2
                two = (self.q([p], prior, s2, there)[0] - y_there[i]) ** 2
                return error + (one.sum() + two.sum()) / (one.size + two.size)

            slopes.append(gradient(loss, critic))
        for critic, adam, slope, followed in zip(self.critics, self.adams, slopes, self.targets, strict=True):
            adam.step(critic, slope)
            follow(followed, critic, c.tau)
        value = lambda actions: smallest(self.q(self.critics, self.priors, s, actions), 0)  # noqa: E731
        soft.network_adam.step(soft.network, soft.actor_gradient(soft.alpha, [], s, draws.here, value))
        self.schedule.record(self.t, q_here.mean())


SMALL: dict[str, Any] = {
    "hidden": (6, 5, 4),
    "critics": 3,
    "ood_actions": 2,
    "critic_learning_rate": 1e-3,
    "actor_learning_rate": 1e-3,
}


def louder(state: Any) -> Any:
    """Critics start so near to 0 that their disagreement would hardly be felt."""

    def bigger(tree: Any) -> Any:
        return jax.tree.map(lambda p: 4 * p, tree)

    return state._replace(
        critics=bigger(state.critics), target_critics=jax.tree.map(lambda p: 5 * p, state.target_critics),
        priors=bigger(state.priors), target_priors=bigger(state.target_priors),
    )  # fmt: skip


def run_both(config: Any, reference_config: Any = None, updates: int = 4) -> Any:
    with jax.enable_x64(True):
        state, reference = train_both(pbrl, Reference, config, reference_config, updates, prepare=louder)
        if config.prior_scale > 0:
            for i in range(config.critics):
                assert difference(arrays(state.priors, i), reference.priors[i]) == 0
                assert difference(arrays(state.target_priors, i), reference.target_priors[i]) == 0
        expected = reference.schedule.value(reference.t + 1)
        return max(largest_difference(state, reference), abs(float(pbrl.beta_ood(config, state)) - expected))


@pytest.mark.parametrize(
    "config",
    [
        pbrl.Config(**SMALL),
        pbrl.Config(**(SMALL | {"beta_in": 0.5, "beta_next": 0.7, "discount": 0.9, "tau": 0.1})),
        pbrl.Config(**(SMALL | {"beta_ood_updates": 3, "beta_ood_end": 0.1})),
        pbrl.PriorConfig(**SMALL),
    ],
    ids=["defaults", "other weights", "schedule ends", "priors"],
)
def test_updates_agree(config: Any) -> None:
    assert run_both(config) < 1e-8


@pytest.mark.parametrize("wrong", [{"beta_in": 0.02}, {"beta_ood": 5.1}, {"beta_next": 0.11}], ids=str)
def test_the_reference_notices_a_wrong_setting(wrong: dict[str, Any]) -> None:
    assert run_both(pbrl.Config(**SMALL), pbrl.Config(**(SMALL | wrong)), updates=1) > 1e-6


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beta_ood_divisor": 1.3},
        {"beta_ood": 2.0, "beta_ood_end": 2.0, "beta_ood_divisor": 1.0},
        {"beta_ood_divisor": 1.0},
    ],
    ids=["falling", "down to the floor", "constant (expert)", "stays 1 (medium-expert)"],
)
def test_the_schedule_of_beta_is_the_published_one(options: dict[str, Any]) -> None:
    """Hundreds of updates of the schedule alone, with Q rising and falling."""
    with jax.enable_x64(True):
        config = pbrl.Config(**(SMALL | {"beta_ood_updates": 100, "record_every": 4} | options))
        state = started(pbrl, config, SHAPES)
        steps = 800
        rng = np.random.default_rng(0)
        q = 10 * np.sin(np.arange(steps) / 60) + rng.normal(size=steps)

        def step(state: Any, q: jax.Array) -> Any:
            weight = pbrl.beta_ood(config, state)
            state = pbrl.remember(config, state, q)
            return state._replace(step=state.step + 1), weight

        _, found = jax.jit(lambda state: jax.lax.scan(step, state, jnp.asarray(q)))(state)
        schedule, expected = Schedule(config), []
        for t in range(1, steps + 1):
            expected.append(schedule.value(t))
            schedule.record(t, q[t - 1])
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        if config.beta_ood_divisor > 1:
            assert expected[-1] < 0.7, "Q fell, and β must have"
        if config.beta_ood_divisor > 1.1:
            assert 0.2 / config.beta_ood_divisor < expected[-1] <= 0.2


@pytest.mark.parametrize("name", ["pbrl", "pbrl-prior"])
@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("hopper-medium-v2", (5.0, 1.0, 1.01)),
        ("d4rl:walker2d-medium-replay-v2", (5.0, 1.0, 1.01)),
        ("replica:halfcheetah-random", (5.0, 1.0, 1.01)),
        ("replica:hopper-medium-expert", (5.0, 1.0, 1.0)),
        ("hopper-expert-v2", (2.0, 2.0, 1.0)),
    ],
)
def test_every_kind_of_data_has_its_published_schedule(
    name: str, dataset: str, expected: tuple[float, float, float]
) -> None:
    config = make_config(get_algorithm(name), preset(name, dataset))
    assert (config.beta_ood, config.beta_ood_end, config.beta_ood_divisor) == expected
    assert config.prior_scale == (1.0 if name == "pbrl-prior" else 0.0)
