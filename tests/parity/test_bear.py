"""BEAR against a plain float64 transcription: both kernels, the warm-up, the dual ascent and its bounds."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import bear
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.presets import preset
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, perceptron, start
from tests.parity.test_bcq import decode, vae_arrays, vae_loss

OBSERVATIONS, ACTIONS, SIZE, LATENT = 3, 2, 6, 4
SMALL: dict[str, Any] = {"hidden": (6, 5), "vae_hidden": (7, 6), "target_samples": 3, "acting_samples": 8, "tau": 0.1}


def mmd(x: Sequence[np.ndarray] | np.ndarray, y: Sequence[np.ndarray] | np.ndarray, kernel: str, sigma: float) -> Any:
    """Of two sets of n actions in each of B states, [n, B, d]: B distances."""

    def mean(xs: Sequence[np.ndarray] | np.ndarray, ys: Sequence[np.ndarray] | np.ndarray) -> Any:
        gaps = [a - b for a in xs for b in ys]
        norms = [ref.absolute(g).sum(-1) if kernel == "laplacian" else (g**2).sum(-1) for g in gaps]
        return sum(np.exp(-norm / (2 * sigma)) for norm in norms) / len(gaps)

    return np.sqrt(mean(x, x) - 2 * mean(x, y) + mean(y, y) + 1e-6)


def latent_action(actor: Parameters, s: np.ndarray, noise: Any) -> Any:
    output = perceptron(actor, s)
    mean, log_std = output[..., :ACTIONS], ref.clip(output[..., ACTIONS:], -5, 2)
    return mean + np.exp(log_std) * noise


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.updates = config, int(state.step)
        self.actor, self.critics = arrays(state.actor), [arrays(state.critics, i) for i in range(2)]
        self.target_critics = [[p.copy() for p in critic] for critic in self.critics]
        self.vae, self.log_alpha = vae_arrays(state.vae), np.array(state.log_alpha)
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.critic_adams = [ref.Adam(critic, config.critic_learning_rate) for critic in self.critics]
        self.vae_adam = ref.Adam(self.vae, config.vae_learning_rate)
        self.alpha_adam = ref.Adam([self.log_alpha], config.alpha_learning_rate)

    def target_of(self, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, noise: Any) -> Any:
        c, y = self.config, np.empty(len(r))
        for row in range(len(r)):
            best = -np.inf
            for e in noise[:, row]:
                x = beside(s2[row], np.tanh(latent_action(self.actor, s2[row], e)))
                q1, q2 = (perceptron(critic, x)[0] for critic in self.target_critics)
                best = max(best, c.soft_clipping * min(q1, q2) + (1 - c.soft_clipping) * max(q1, q2))
            y[row] = r[row] + c.discount * (1 - terminal[row]) * best
        return y

    def update(
        self, s: np.ndarray, a: np.ndarray, r: np.ndarray, s2: np.ndarray, terminal: np.ndarray, noise: Any
    ) -> None:
        c, n = self.config, len(r)
        self.vae_adam.step(self.vae, gradient(lambda p: vae_loss(p, s, a, noise.vae, c.kl_weight), self.vae))
        y = self.target_of(r, s2, terminal, noise.next_actions)
        critic_gradients = [
            gradient(lambda p: ((perceptron(p, beside(s, a))[:, 0] - y) ** 2).sum() / n, critic)
            for critic in self.critics
        ]
        proposed = np.array([decode(self.vae, s, np.clip(z, -0.5, 0.5)) for z in noise.proposals])
        alpha = np.exp(float(self.log_alpha))

        def actor_loss(parameters: Parameters) -> Any:
            actions = [latent_action(parameters, s, e) for e in noise.actions]
            total = alpha * (mmd(proposed, actions, c.mmd_kernel, c.mmd_sigma) - c.mmd_threshold).sum()
            self.gap = (total / n).real / alpha
            if self.updates >= c.warmup_steps:
                q = np.array([perceptron(p, beside(s, np.tanh(actions[0])))[:, 0] for p in self.critics])
                total = total - ref.smallest(q, 0).sum()
            return total / n

        actor_gradients = gradient(actor_loss, self.actor)
        for critic, adam, slopes, target in zip(
            self.critics, self.critic_adams, critic_gradients, self.target_critics, strict=True
        ):
            adam.step(critic, slopes)
            follow(target, critic, c.tau)
        self.actor_adam.step(self.actor, actor_gradients)
        self.alpha_adam.step([self.log_alpha], [np.array(-alpha * self.gap)])
        self.log_alpha[...] = np.clip(self.log_alpha, -5, 10)
        self.updates += 1


@pytest.mark.parametrize(
    "options",
    [
        {"mmd_kernel": "laplacian", "warmup_steps": 2},
        {"mmd_kernel": "gaussian", "warmup_steps": 2, "mmd_sigma": 3.0, "mmd_samples": 2, "alpha_learning_rate": 0.3},
    ],
    ids=str,
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = bear.Config(**SMALL, **options)
        state = start(bear, config, Shapes(OBSERVATIONS, ACTIONS))
        rng = np.random.default_rng(2)
        # Away from the small last layers of a start; some log-standard deviations leave their range.
        critics, actor = jax.tree.map(lambda p: p + 0.4 * rng.normal(size=p.shape), (state.critics, state.actor))
        # The multiplier starts near its bound, so that the second case runs into it.
        state = state._replace(critics=critics, target_critics=critics, actor=actor, log_alpha=jnp.asarray(9.9))
        reference = Reference(config, state)
        before, step = arrays(state.actor), jax.jit(bear.update, static_argnums=4)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(4, SIZE, OBSERVATIONS, ACTIONS)):
            key = jax.random.key(number)
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            noise = jax.tree.map(np.asarray, bear.draw_noise(config, state, batch, key))
            assert noise.proposals.shape == (config.mmd_samples, SIZE, LATENT)
            reference.update(s, a, r, s2, terminal, noise)
            state, metrics = step(config, state, batch, key, 0)
            np.testing.assert_allclose(metrics["mmd"] - config.mmd_threshold, reference.gap, rtol=1e-9)
        assert difference([state.log_alpha], [reference.log_alpha]) < 1e-9
        assert (state.log_alpha == 10) == ("alpha_learning_rate" in options)
        assert difference(vae_arrays(state.vae), reference.vae) < 1e-9
        assert difference(arrays(state.actor), reference.actor) < 1e-8
        for i in range(2):
            assert difference(arrays(state.critics, i), reference.critics[i]) < 1e-9
            assert difference(arrays(state.target_critics, i), reference.target_critics[i]) < 1e-9
        assert difference(before, reference.actor) > 1e-4


def test_acting_takes_the_best_of_its_samples_by_the_first_critic() -> None:
    config = bear.Config(**SMALL)
    state = jax.jit(lambda key: bear.init(config, Shapes(OBSERVATIONS, ACTIONS), key))(jax.random.key(0))
    s = np.random.default_rng(0).normal(size=(5, OBSERVATIONS)).astype(np.float32)
    for key in (None, jax.random.key(4)):
        actions = np.asarray(jax.jit(bear.sampled_actions)(config, state.actor, s, key), dtype=np.float64)
        assert actions.shape == (8, 5, ACTIONS)
        critic = arrays(state.critics, 0)
        q = np.array([perceptron(critic, beside(s, a))[:, 0] for a in actions])
        expected = actions[q.argmax(0), np.arange(5)]
        found = jax.jit(bear.act)(config, bear.ALGORITHM.policy(state), s, key)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    fixed = np.asarray(jax.jit(bear.sampled_actions)(config, state.actor, np.repeat(s[:1], 5, axis=0), None))
    np.testing.assert_array_equal(fixed[:, 0], fixed[:, 2])


def test_the_kernel_of_each_task() -> None:
    assert bear.Config().mmd_kernel == "laplacian"
    assert preset("bear", "replica:halfcheetah-medium") == {"mmd_kernel": "gaussian"}
    assert preset("bear", "d4rl:hopper-medium-v2") == {}
