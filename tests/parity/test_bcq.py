"""BCQ against a plain float64 transcription: the VAE, the soft clipped double Q, the choice among candidates."""

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import bcq
from score_rl.algorithms.algorithm import Batch, Shapes
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, perceptron, start

OBSERVATIONS, ACTIONS, SIZE, LATENT = 3, 2, 6, 4


def vae_arrays(vae: Any) -> Any:
    return [*arrays(vae.encoder), *arrays(vae.decoder)]


def decode(vae: Any, s: np.ndarray, z: np.ndarray) -> Any:
    """The action before its tanh; the decoder is the second half of the VAE's arrays."""
    return perceptron(vae[len(vae) // 2 :], beside(s, z))


def vae_loss(vae: Any, s: np.ndarray, a: np.ndarray, noise: Any, kl_weight: float) -> Any:
    hidden = perceptron(vae[: len(vae) // 2], beside(s, a))
    mean, std = hidden[:, :LATENT], np.exp(ref.clip(hidden[:, LATENT:], -4, 15))
    error = ((np.tanh(decode(vae, s, mean + std * noise)) - a) ** 2).sum() / a.size
    divergence = -0.5 * (1 + np.log(std**2) - mean**2 - std**2).sum() / mean.size
    return error + kl_weight * divergence


def perturbed(c: Any, vae: Any, actor: Parameters, s: np.ndarray, noise: Any) -> Any:
    proposed = np.tanh(decode(vae, s, np.clip(noise, -0.5, 0.5)))
    return ref.clip(proposed + c.perturbation * np.tanh(perceptron(actor, beside(s, proposed))), -1, 1)


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config = config
        self.actor, self.critics = arrays(state.actor), [arrays(state.critics, i) for i in range(2)]
        self.target_actor = [p.copy() for p in self.actor]
        self.target_critics = [[p.copy() for p in critic] for critic in self.critics]
        self.vae = vae_arrays(state.vae)
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.critic_adams = [ref.Adam(critic, config.critic_learning_rate) for critic in self.critics]
        self.vae_adam = ref.Adam(self.vae, config.vae_learning_rate)

    def update(
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        vae_noise: Any,
        critic_noise: Any,
        actor_noise: Any,
    ) -> None:
        c, n = self.config, len(r)
        self.vae_adam.step(self.vae, gradient(lambda p: vae_loss(p, s, a, vae_noise, c.kl_weight), self.vae))
        y = np.empty(n)
        for row in range(n):
            best = -np.inf
            for noise in critic_noise[:, row]:
                a2 = perturbed(c, self.vae, self.target_actor, s2[row], noise)
                q1, q2 = (perceptron(critic, beside(s2[row], a2))[0] for critic in self.target_critics)
                best = max(best, c.soft_clipping * min(q1, q2) + (1 - c.soft_clipping) * max(q1, q2))
            y[row] = r[row] + c.discount * (1 - terminal[row]) * best
        for critic, adam in zip(self.critics, self.critic_adams, strict=True):
            adam.step(critic, gradient(lambda p: ((perceptron(p, beside(s, a))[:, 0] - y) ** 2).sum() / n, critic))

        def actor_loss(parameters: Parameters) -> Any:
            return -perceptron(self.critics[0], beside(s, perturbed(c, self.vae, parameters, s, actor_noise))).mean()

        self.actor_adam.step(self.actor, gradient(actor_loss, self.actor))
        follow(self.target_actor, self.actor, c.tau)
        for target, online in zip(self.target_critics, self.critics, strict=True):
            follow(target, online, c.tau)

    def act(self, s: np.ndarray, noise: Any) -> Any:
        actions = np.array([perturbed(self.config, self.vae, self.actor, s, z) for z in noise])
        return actions[np.argmax([perceptron(self.critics[0], beside(s, a))[0] for a in actions])]


@pytest.mark.parametrize("options", [{}, {"perturbation": 0.6, "soft_clipping": 0.4, "kl_weight": 1.0}], ids=str)
def test_updates_and_actions_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = bcq.Config(hidden=(6, 5), vae_hidden=(7, 6), target_samples=3, acting_samples=8, tau=0.1, **options)
        state = start(bcq, config, Shapes(OBSERVATIONS, ACTIONS))
        lowered = state.vae.encoder.biases[-1].at[LATENT].add(-4.5)  # where a log-standard deviation is clipped
        state = eqx.tree_at(lambda tree: tree.vae.encoder.biases[-1], state, lowered)
        reference = Reference(config, state)
        before = [*reference.actor, *reference.vae]
        before, step = [p.copy() for p in before], jax.jit(bcq.update, static_argnums=4)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(4, SIZE, OBSERVATIONS, ACTIONS)):
            key = jax.random.key(number)
            noise = np.asarray(jax.random.normal(key, (5 * SIZE * LATENT,))).reshape(5, SIZE, LATENT)
            reference.update(s, a, r, s2, terminal, noise[0], noise[1:4], noise[4])
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            state, _ = step(config, state, batch, key, 0)
        assert difference(vae_arrays(state.vae), reference.vae) < 1e-9
        assert difference(arrays(state.actor), reference.actor) < 1e-9
        assert difference(arrays(state.target_actor), reference.target_actor) < 1e-9
        for i in range(2):
            assert difference(arrays(state.critics, i), reference.critics[i]) < 1e-9
            assert difference(arrays(state.target_critics, i), reference.target_critics[i]) < 1e-9
        assert difference(before, [*reference.actor, *reference.vae]) > 1e-3

        policy = bcq.ALGORITHM.policy(state)
        noise = np.asarray(jax.random.normal(jax.random.key(0), (8, 1, LATENT)))[:, 0]
        expected = [reference.act(row, noise) for row in s]
        np.testing.assert_allclose(bcq.act(config, policy, s), expected, rtol=1e-7)
        noise = np.asarray(jax.random.normal(jax.random.key(7), (8, SIZE, LATENT)))
        expected = [reference.act(row, noise[:, i]) for i, row in enumerate(s)]
        np.testing.assert_allclose(bcq.act(config, policy, s, jax.random.key(7)), expected, rtol=1e-7)


def test_parameters_on_halfcheetah() -> None:
    def count(*sizes: int) -> int:
        return sum((i + 1) * o for i, o in pairwise(sizes))

    nets = count(23, 400, 300, 6) + 2 * count(23, 400, 300, 1)
    vae = count(23, 750, 750, 24) + count(29, 750, 750, 6)
    found = ref.parameter_count(bcq, bcq.Config(), Shapes(17, 6), "actor", "critics", "vae")
    assert found == nets + vae
