"""CQL against a plain float64 transcription: consecutive full updates, every option."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import cql
from score_rl.algorithms.algorithm import Shapes
from tests.parity.numpy_reference import Adam, Parameters, arrays, follow, gradient, smallest
from tests.parity.soft_reference import (
    SoftReference,
    all_q,
    batch_of,
    distribution,
    largest_difference,
    q_of,
    random_key,
    sample,
    started,
    train_both,
)


def cloning_loss(network: Parameters, alpha: float, s: np.ndarray, a: np.ndarray, noise: Any) -> Any:
    """E[α·log π(ã|s) - log π(a|s)], ã drawn and a recorded."""
    mean, log_std = distribution(network, s)
    x = np.arctanh(np.clip(a, -1 + 1e-6, 1 - 1e-6))
    normal = -0.5 * ((x - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    recorded = (normal - np.log(1 - np.tanh(x) ** 2)).sum(-1)
    return (alpha * sample(network, s, noise)[1] - recorded).mean()


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config = config
        self.soft = SoftReference(state.soft, config.actor_learning_rate)
        self.critics = [arrays(state.critics, i) for i in range(config.critics)]
        self.targets = [[p.copy() for p in critic] for critic in self.critics]
        self.adams = [Adam(critic, config.critic_learning_rate) for critic in self.critics]
        self.log_nu = [np.array(float(state.log_multiplier))]
        self.nu_adam = Adam(self.log_nu, config.critic_learning_rate)
        self.updates = 0

    def update(
        self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, draws: Any
    ) -> None:
        c, soft = self.config, self.soft
        soft.tune(s, draws.here)
        alpha = soft.alpha
        if self.updates < c.cloning_updates:
            actor_gradient = gradient(lambda network: cloning_loss(network, alpha, s, a, draws.here), soft.network)
        else:
            actor_gradient = soft.actor_gradient(alpha, self.critics, s, draws.here)
        self.updates += 1
        a2, log_prob2 = sample(soft.network, s2, draws.there)
        v2 = smallest(all_q(self.targets, s2, a2), 0)
        if c.entropy_backup:
            v2 = v2 - alpha * log_prob2
        y = r + c.discount * (1 - terminal) * v2
        kinds = [
            (draws.uniform, np.full((c.sampled_actions, len(r)), np.log(0.5 ** a.shape[1]))),
            sample(soft.network, s2, draws.many_there),
            sample(soft.network, s, draws.many_here),
        ]

        def weighted_gap(critic: Parameters) -> Any:
            exponentials = 0
            for actions, log_density in kinds:
                # The importance weight 1/μ stands beside exp(Q) when T = 1, and inside the power 1/T otherwise.
                exponentials = exponentials + np.exp((q_of(critic, s, actions) - log_density) / c.gap_temperature).sum(
                    0
                )
            return c.weight * (c.gap_temperature * np.log(exponentials) - q_of(critic, s, a)).mean()

        nu = np.exp(self.log_nu[0])

        def loss(critic: Parameters) -> Any:
            error = ((q_of(critic, s, a) - y) ** 2).mean()
            return error + (nu * (weighted_gap(critic) - c.target_gap) if c.lagrange else weighted_gap(critic))

        gradients = [gradient(loss, critic) for critic in self.critics]
        if c.lagrange:
            excess = np.mean([weighted_gap(critic) - c.target_gap for critic in self.critics])
            self.nu_adam.step(self.log_nu, gradient(lambda p: -np.exp(p[0]) * excess, self.log_nu))
        for critic, adam, slope, followed in zip(self.critics, self.adams, gradients, self.targets, strict=True):
            adam.step(critic, slope)
            follow(followed, critic, c.tau)
        soft.network_adam.step(soft.network, actor_gradient)


def run_both(config: Any, reference_config: Any = None, updates: int = 4) -> Any:
    with jax.enable_x64(True):
        state, reference = train_both(cql, Reference, config, reference_config, updates)
        multipliers = abs(float(state.log_multiplier) - float(reference.log_nu[0]))
        return max(largest_difference(state, reference), multipliers)


SMALL: dict[str, Any] = {
    "hidden": (6, 5, 4),
    "sampled_actions": 3,
    "critic_learning_rate": 1e-3,
    "actor_learning_rate": 1e-3,
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": 10.0, "discount": 0.9, "tau": 0.1, "gap_temperature": 0.5},
        {"lagrange": True, "entropy_backup": True, "weight": 1.0, "critics": 3, "orthogonal_init": True},
        {"cloning_updates": 2},
    ],
    ids=str,
)
def test_updates_agree(options: dict[str, Any]) -> None:
    assert run_both(cql.Config(**(SMALL | options))) < 1e-8


@pytest.mark.parametrize(
    "wrong", [{"weight": 5.1}, {"gap_temperature": 1.1}, {"entropy_backup": True}, {"cloning_updates": 1}], ids=str
)
def test_the_reference_notices_a_wrong_setting(wrong: dict[str, Any]) -> None:
    assert run_both(cql.Config(**SMALL), cql.Config(**(SMALL | wrong)), updates=1) > 1e-6


def test_the_soft_maximum_estimates_the_integral() -> None:
    """log of the mean importance weight against ∫exp Q(s, a) da on a grid, for all three kinds of actions."""
    with jax.enable_x64(True):
        config = cql.Config(hidden=(8, 8), sampled_actions=20_000)
        state = started(cql, config, Shapes(2, 1))
        critics = jax.tree.map(lambda p: 2 * p, state.critics)
        s = np.asarray([[0.3, -0.8]])
        batch = batch_of(s, np.zeros((1, 1)), np.zeros(1), 1.5 * s, np.zeros(1))
        draws = cql.draw(config, batch, random_key(1))
        actions, log_density = jax.jit(cql.sampled_actions)(state.soft.network, batch, draws)
        at = jax.jit(lambda actions: cql.values_of_many(critics, jnp.asarray(s), actions)[:, :, 0])
        q, log_density = np.asarray(at(actions)), np.asarray(log_density)[:, 0]
        integral = 2 * np.exp(at(np.linspace(-1, 1, 2001)[:, None, None])).mean(axis=1)
        for kind in range(3):
            part = slice(kind * 20_000, (kind + 1) * 20_000)
            np.testing.assert_allclose(np.exp(q[:, part] - log_density[part]).mean(axis=1), integral, rtol=0.05)
