"""FQL against a plain float64 transcription: the flow, its distillation and the critics, all at the same parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import fql
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.presets import preset
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, start
from tests.parity.test_rebrac import critic_arrays

OBSERVATIONS, ACTIONS, SIZE = 4, 2, 8


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def network(parameters: Parameters, *inputs: np.ndarray) -> np.ndarray:
    x = beside(*inputs)
    for layer in range(0, len(parameters) - 2, 2):
        x = gelu(x @ parameters[layer] + parameters[layer + 1])
    return x @ parameters[-2] + parameters[-1]


def critic(parameters: Parameters, *inputs: np.ndarray) -> Any:
    x = beside(*inputs)
    for layer in range(0, len(parameters) - 2, 4):
        w, b, scale, shift = parameters[layer : layer + 4]
        x = gelu(x @ w + b)
        mean = x.sum(-1, keepdims=True) / x.shape[-1]
        variance = (x**2).sum(-1, keepdims=True) / x.shape[-1] - mean**2
        x = (x - mean) / np.sqrt(variance + 1e-6) * scale + shift
    return (x @ parameters[-2] + parameters[-1])[:, 0]


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config = config
        self.flow, self.actor = arrays(state.actors.flow), arrays(state.actors.one_step)
        self.critics = [critic_arrays(state.critics, i) for i in range(2)]
        self.targets = [[p.copy() for p in c] for c in self.critics]
        self.adams = {id(n): ref.Adam(n, config.learning_rate) for n in (self.flow, self.actor, *self.critics)}

    def update(self, s: Any, a: Any, r: Any, s2: Any, terminal: Any, draws: fql.Draws) -> None:
        c = self.config
        z2, x0, t, z = (np.asarray(each) for each in draws)
        a2 = np.clip(network(self.actor, s2, z2), -1, 1)
        next_q = np.array([critic(p, s2, a2) for p in self.targets])
        y = r + c.discount * (1 - terminal) * (next_q.min(0) if c.target_value == "min" else next_q.mean(0))
        slopes = [gradient(lambda p: ((critic(p, s, a) - y) ** 2).sum() / (2 * SIZE), q) for q in self.critics]

        goal = z.copy()
        for k in range(c.flow_steps):
            goal += network(self.flow, s, goal, np.full((SIZE, 1), k / c.flow_steps)) / c.flow_steps
        goal = np.clip(goal, -1, 1)

        def q_of(actions: np.ndarray) -> Any:
            inside = ref.clip(actions, -1, 1)
            return sum(critic(p, s, inside) for p in self.critics) / 2

        scale = 1 / np.abs(q_of(network(self.actor, s, z))).mean() if c.normalise_value else 1.0

        def actor_loss(p: Parameters) -> Any:
            mine = network(p, s, z)
            return c.alpha * ((mine - goal) ** 2).sum() / mine.size - scale * q_of(mine).sum() / SIZE

        def flow_loss(p: Parameters) -> Any:
            return ((network(p, s, (1 - t) * x0 + t * a, t) - (a - x0)) ** 2).sum() / a.size

        moves = [(self.flow, gradient(flow_loss, self.flow)), (self.actor, gradient(actor_loss, self.actor))]
        for target, online in zip(self.targets, self.critics, strict=True):
            follow(target, online, c.tau)
        for parameters, slope in [*moves, *zip(self.critics, slopes, strict=True)]:
            self.adams[id(parameters)].step(parameters, slope)


@pytest.mark.parametrize(
    "options", [{}, {"alpha": 0.3, "target_value": "min", "normalise_value": True, "flow_steps": 3}], ids=str
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = fql.Config(hidden=(6, 5), tau=0.1, learning_rate=3e-3, **options)
        state = start(fql, config, Shapes(OBSERVATIONS, ACTIONS))
        rng = np.random.default_rng(1)
        # Away from the even scales of a start, and with some actions beyond ±1.
        moved = jax.tree.map(lambda p: p + 0.3 * rng.normal(size=p.shape), (state.critics, state.actors))
        state = state._replace(critics=moved[0], target_critics=moved[0], actors=moved[1])
        reference, before = Reference(config, state), arrays(state.actors.one_step)
        step = jax.jit(fql.learn)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(5, SIZE, OBSERVATIONS, ACTIONS)):
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            draws = fql.draw(batch, jax.random.key(number))
            reference.update(s, a, r, s2, terminal, draws)
            state, _ = step(config, state, batch, draws)
        assert difference(arrays(state.actors.flow), reference.flow) < 1e-9
        assert difference(arrays(state.actors.one_step), reference.actor) < 1e-9
        for i in range(2):
            assert difference(critic_arrays(state.critics, i), reference.critics[i]) < 1e-9
            assert difference(critic_arrays(state.target_critics, i), reference.targets[i]) < 1e-9
        assert difference(before, reference.actor) > 1e-4


def test_draws_are_what_the_equations_say() -> None:
    batch = Batch(*(jnp.zeros((4000, n)) for n in (3, 2)), *(jnp.zeros(4000) for _ in range(4)))
    draws = fql.draw(batch, jax.random.key(0))
    for noise in (draws.next_noise, draws.start, draws.noise):
        assert abs(float(noise.mean())) < 0.05
        assert abs(float(noise.std()) - 1) < 0.03
    assert draws.times.shape == (4000, 1)
    assert 0 <= float(draws.times.min()) < 0.01 < 0.99 < float(draws.times.max()) < 1
    assert not np.allclose(draws.noise, draws.start)


def test_the_authors_weights_are_found_by_data_set() -> None:
    assert preset("fql", "ogbench:cube-double-play-singletask-task3")["alpha"] == 300
    assert preset("fql", "ogbench:puzzle-4x4-play-singletask-task1")["alpha"] == 1000
    assert preset("fql", "ogbench:humanoidmaze-large-navigate-singletask-task1") == {"alpha": 30.0, "discount": 0.995}
    assert preset("fql", "replica:hopper-medium") == {}
