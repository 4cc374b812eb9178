"""ReBRAC against a plain float64 transcription: layer normalisation, both constraints, the target actor's lag."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import rebrac
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.presets import preset
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import (
    Parameters,
    arrays,
    beside,
    difference,
    follow,
    gradient,
    perceptron,
    relu,
    start,
)

OBSERVATIONS, ACTIONS, SIZE = 4, 2, 10


def critic_arrays(net: Any, member: int) -> Any:
    """[weight, bias, scale, shift, ..., weight, bias]."""
    found = []
    for layer, (weight, bias) in enumerate(zip(net.layers.weights, net.layers.biases, strict=True)):
        found += [weight[member], bias[member]]
        if layer < len(net.scales):
            found += [net.scales[layer][member], net.shifts[layer][member]]
    return [np.array(p, dtype=np.float64) for p in found]


def critic(parameters: Parameters, x: np.ndarray) -> Any:
    *hidden, weight, bias = parameters
    for layer in range(0, len(hidden), 4):
        w, b, scale, shift = hidden[layer : layer + 4]
        x = relu(x @ w + b)
        mean = x.sum(-1, keepdims=True) / x.shape[-1]
        variance = (x**2).sum(-1, keepdims=True) / x.shape[-1] - mean**2
        x = (x - mean) / np.sqrt(variance + 1e-6) * scale + shift
    return (x @ weight + bias)[:, 0]


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.updates = config, 0
        self.actor, self.critics = arrays(state.actor), [critic_arrays(state.critics, i) for i in range(2)]
        self.target_actor = [p.copy() for p in self.actor]
        self.target_critics = [[p.copy() for p in c] for c in self.critics]
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.critic_adams = [ref.Adam(c, config.critic_learning_rate) for c in self.critics]

    def update(
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        recorded: Any,
        followed: Any,
        noise: Any,
    ) -> None:
        c = self.config
        smoothing = np.clip(c.target_noise * noise, -c.target_noise_clip, c.target_noise_clip)
        a2 = np.clip(np.tanh(perceptron(self.target_actor, s2)) + smoothing, -1, 1)
        smaller = np.minimum(*(critic(p, beside(s2, a2)) for p in self.target_critics))
        y = r + c.discount * (1 - terminal) * (smaller - c.critic_bc_weight * ((a2 - recorded) ** 2).sum(1))
        rows = (terminal == 1) | (followed == 1)
        x, y = beside(s, a)[rows], y[rows]
        for parameters, adam in zip(self.critics, self.critic_adams, strict=True):
            adam.step(parameters, gradient(lambda p: ((critic(p, x) - y) ** 2).sum() / len(y), parameters))
        if self.updates % c.actor_delay == 0:
            before = [p.copy() for p in self.actor]

            def q_of(pi: np.ndarray) -> Any:
                return ref.smallest(np.array([critic(p, beside(s, pi)) for p in self.critics]), 0)

            scale = 1 / np.abs(q_of(np.tanh(perceptron(self.actor, s)))).mean()

            def loss(parameters: Parameters) -> Any:
                pi = np.tanh(perceptron(parameters, s))
                return (c.actor_bc_weight * ((pi - a) ** 2).sum(1) - scale * q_of(pi)).sum() / len(r)

            self.actor_adam.step(self.actor, gradient(loss, self.actor))
            follow(self.target_actor, before, c.tau)
            for target, online in zip(self.target_critics, self.critics, strict=True):
                follow(target, online, c.tau)
        self.updates += 1


@pytest.mark.parametrize("options", [{}, {"actor_delay": 1, "actor_bc_weight": 0.3, "critic_bc_weight": 0.1}], ids=str)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = rebrac.Config(hidden=(7, 6), tau=0.1, **options)
        state = start(rebrac, config, Shapes(OBSERVATIONS, ACTIONS))
        rng = np.random.default_rng(1)
        # Away from the small last layers and the even scales of a start: nothing is nearly equal.
        critics = jax.tree.map(lambda p: p + 0.3 * rng.normal(size=p.shape), state.critics)
        state = state._replace(critics=critics, target_critics=critics)
        reference = Reference(config, state)
        before, step = arrays(state.actor), jax.jit(rebrac.update, static_argnums=4)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(6, SIZE, OBSERVATIONS, ACTIONS)):
            key = jax.random.key(number)
            noise = np.asarray(jax.random.normal(key, a.shape, jnp.float64))
            recorded = rng.uniform(-1, 1, a.shape)
            followed = ((rng.uniform(size=SIZE) < 0.7) & (terminal == 0)).astype(float)
            reference.update(s, a, r, s2, terminal, recorded, followed, noise)
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE), recorded, followed)
            state, _ = step(config, state, batch, key, number % config.actor_delay)
        assert difference(arrays(state.actor), reference.actor) < 1e-9
        assert difference(arrays(state.target_actor), reference.target_actor) < 1e-9
        for i in range(2):
            assert difference(critic_arrays(state.critics, i), reference.critics[i]) < 1e-9
            assert difference(critic_arrays(state.target_critics, i), reference.target_critics[i]) < 1e-9
        assert difference(before, reference.actor) > 1e-4


def test_the_authors_weights_are_found_by_data_set() -> None:
    assert preset("rebrac", "d4rl:hopper-medium-replay-v2") == {"actor_bc_weight": 0.05, "critic_bc_weight": 0.5}
    assert preset("rebrac", "replica:walker2d-medium") == {"actor_bc_weight": 0.05, "critic_bc_weight": 0.1}
    assert preset("rebrac", "replica:halfcheetah-medium-expert") == {"actor_bc_weight": 0.01, "critic_bc_weight": 0.1}
