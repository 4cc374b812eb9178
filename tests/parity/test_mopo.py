"""MOPO against a plain float64 transcription: rollouts in the model and consecutive full updates."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from score_rl.algorithms import mopo, mopo_model
from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.mopo import Config, State
from score_rl.algorithms.mopo_model import Learned
from tests.parity.numpy_reference import Adam, arrays, batches, beside, difference, follow, gradient, smallest
from tests.parity.soft_reference import SoftReference, all_q, batch_of, compiled, q_of, random_key, sample, started
from tests.parity.test_mopo_model import HOPPER, SHAPES, SMALL, columns, data_of, gaussian

# -- rollouts ----------------------------------------------------------------------------------------------------------


def random_learned(config: Any, shapes: Shapes, seed: int = 5) -> Learned:
    """Networks that disagree, with a spread of variances, and elites out of order."""
    rng = np.random.default_rng(seed)
    networks, bounds = mopo_model.init_dynamics(config, shapes, random_key(seed))
    networks = jax.tree.map(lambda p: jnp.asarray(p + 0.3 * rng.normal(size=p.shape)), networks)
    # The third outcome, hopper's angle, hardly moves: else every rollout would end at once.
    quiet = jnp.ones(2 * (1 + shapes.observation)).at[2].set(0.05)
    last = networks.weights[-1] * quiet[None, None], networks.biases[-1] * quiet[None]
    networks = mopo.Perceptron((*networks.weights[:-1], last[0]), (*networks.biases[:-1], last[1]))
    bounds = jax.tree.map(lambda b: jnp.asarray(b, jnp.float64), bounds)
    bounds = bounds._replace(largest=bounds.largest.at[2].set(-4.0))
    width = sum(shapes)
    scaler = mopo.Scaler(jnp.asarray(rng.normal(size=width)), jnp.asarray(1 + rng.uniform(size=width)))
    return mopo_model.Learned(mopo_model.GaussianDynamics(networks, bounds, scaler), jnp.asarray([2, 0]))


def outcome_of(
    config: Any, learned: Learned, s: np.ndarray, a: np.ndarray, choice: np.ndarray, noise: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r̂, s', uncertainty: row by row."""
    networks = [arrays(learned.dynamics.networks, i) for i in range(config.models)]
    bounds = [np.asarray(b) for b in learned.dynamics.bounds]
    x = (beside(s, a) - np.asarray(learned.dynamics.scaler.mean)) / np.asarray(learned.dynamics.scaler.scale)
    rewards, following, uncertainties = [], [], []
    for row in range(len(s)):
        predicted = [gaussian(network, bounds, x[row]) for network in networks]
        uncertain = max(np.linalg.norm(np.sqrt(np.exp(log_variance))) for _, log_variance in predicted)
        mean, log_variance = predicted[int(learned.elites[choice[row]])]
        drawn = mean + np.sqrt(np.exp(log_variance)) * noise[row]
        rewards.append(drawn[0] - config.penalty * uncertain)
        following.append(s[row] + drawn[1:])
        uncertainties.append(uncertain)
    return np.array(rewards), np.array(following), np.array(uncertainties)


def hopper_ends(s: np.ndarray) -> bool:
    return not (s[0] > 0.7 and abs(s[1]) < 0.2 and (np.abs(s[1:]) < 100).all())


def test_rollouts_agree() -> None:
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
            alive, uncertainties = np.arange(config.rollouts), []
            for step_key in jax.random.split(rest, config.rollout_length):
                action_key, choice_key, noise_key = jax.random.split(step_key, 3)
                noise = np.asarray(jax.random.normal(action_key, (config.rollouts, 3), jnp.float64))[alive]
                choice = np.asarray(jax.random.randint(choice_key, (config.rollouts,), 0, config.elites))[alive]
                blur = np.asarray(jax.random.normal(noise_key, (config.rollouts, 12), jnp.float64))[alive]
                a, _ = sample(arrays(state.soft.network), s, noise)
                r, s2, uncertain = outcome_of(config, learned, s, a, choice, blur)
                ends = np.array([hopper_ends(row) for row in s2])
                stored += list(beside(s, a, r[:, None], s2, ends[:, None].astype(float)))
                uncertainties += list(uncertain)
                alive, s, ended = alive[~ends], s2[~ends], ended + ends.sum()
            state, metrics = refresh(state, key)
            np.testing.assert_allclose(metrics["uncertainty"], np.mean(uncertainties), rtol=1e-10)
            np.testing.assert_allclose(metrics["imagined_steps"], len(uncertainties) / config.rollouts, rtol=1e-10)
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
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.soft = config, SoftReference(state.soft, config.actor_learning_rate)
        self.critics = [arrays(state.critics, i) for i in range(config.critics)]
        self.targets = [[p.copy() for p in critic] for critic in self.critics]
        self.adams = [Adam(critic, config.critic_learning_rate) for critic in self.critics]

    def update(
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        here: np.ndarray,
        there: np.ndarray,
    ) -> None:
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


def train_both(config: Any, expected_config: Config | None = None, updates: int = 4) -> tuple[State, Reference]:
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
        s, a, r, s2, terminal = mixed
        reference.update(s, a, r, s2, terminal, draws.here, draws.there)
        state, metrics = step(config, state, batch, key, 0)
        assert all(np.isfinite(value) for value in metrics.values())
    return state, reference


def largest_difference(state: Any, reference: Any) -> float:
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


def test_updates_agree() -> None:
    with jax.enable_x64(True):
        assert largest_difference(*train_both(mopo.Config(**SMALL))) < 1e-8


def test_the_reference_notices_a_wrong_setting() -> None:
    with jax.enable_x64(True):
        right, wrong = mopo.Config(**SMALL), mopo.Config(**(SMALL | {"discount": 0.98}))
        assert largest_difference(*train_both(right, wrong, updates=1)) > 1e-6


# -- settings ----------------------------------------------------------------------------------------------------------


def test_presets_are_the_tables() -> None:
    from score_rl.algorithms.presets import preset

    assert preset("mopo", "d4rl:hopper-medium-v2") == {"task": "hopper", "rollout_length": 5, "penalty": 5.0}
    assert preset("mopo", "replica:walker2d-medium") == {"task": "walker2d", "rollout_length": 5, "penalty": 0.5}
    assert preset("mopo", "walker2d-medium-replay-v2") == {"task": "walker2d", "rollout_length": 1, "penalty": 2.5}
    assert preset("mopo", "hopper-medium-replay") == {"task": "hopper", "rollout_length": 5, "penalty": 2.5}
    assert preset("mopo", "my-logs", "hopper") == {"task": "hopper"}
    assert preset("mopo", "my-logs") == preset("mopo", "my-logs", "ant") == {}
    assert preset("mopo", "halfcheetah-medium-expert") == {"task": "halfcheetah", "rollout_length": 5, "penalty": 2.5}
    assert preset("mopo", "halfcheetah-random-v2") == {"task": "halfcheetah", "rollout_length": 5, "penalty": 0.5}
