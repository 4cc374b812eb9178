"""UWAC against a plain float64 transcription: dropout, its variance, the weight, spectral normalisation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import bear, uwac
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.nets.dropout import Masks, dropout
from score_rl.nets.kernels.launching import ProgramShape
from score_rl.nets.kernels.passes import DropoutPasses
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, start
from tests.parity.test_bcq import decode, vae_arrays, vae_loss
from tests.parity.test_bear import Reference as BearReference
from tests.parity.test_bear import latent_action, mmd

OBSERVATIONS, ACTIONS, SIZE, LATENT = 3, 2, 5, 4
SMALL: dict[str, Any] = {
    "hidden": (6, 5),
    "vae_hidden": (5, 4),
    "target_samples": 2,
    "acting_samples": 6,
    "tau": 0.1,
    "passes": 4,
}


def masks_of(config: Any, key: jax.Array, rows: int, passes: Any = None, members: int = 2) -> Any:
    """[pass][layer][member, row or 1, unit] of True where a unit is kept, drawn as the method draws them."""
    keys = [key] if passes is None else list(jax.random.split(key, passes))
    rows = rows if config.dropout_masks == "row" else 1
    found = []
    for pass_key in keys:
        bits = [
            jax.random.bits(jax.random.fold_in(pass_key, layer), (members, rows, width), jnp.uint16)
            for layer, width in enumerate(config.hidden)
        ]
        found.append([np.asarray(b) < (1 - config.dropout) * 65536 for b in bits])
    return found


def dropped(parameters: Parameters, x: np.ndarray, masks: Any, member: int, rate: float) -> Any:
    """One pass; `masks` of every layer and member."""
    for layer in range(0, len(parameters), 2):
        x = x @ parameters[layer] + parameters[layer + 1]
        if layer < len(parameters) - 2:
            x = ref.relu(x) * masks[layer // 2][member] / (1 - rate)
    return x[:, 0]


def statistics(parameters: Parameters, x: np.ndarray, passes: Any, member: int, rate: float) -> Any:
    q = np.array([dropped(parameters, x, masks, member, rate) for masks in passes])
    mean = q.sum(0) / len(q)
    return mean, ((q - mean) ** 2).sum(0) / (len(q) - 1)


def divided(parameters: Parameters, vectors: Any) -> Any:
    """Each weight by the length of its image of a unit vector."""
    result = list(parameters)
    for layer, vector in enumerate(vectors):
        weight = result[2 * layer]
        result[2 * layer] = weight / np.sqrt(((weight @ vector) ** 2).sum())
    return result


def iterated(parameters: Parameters, vectors: Any) -> Any:
    result = []
    for layer, vector in enumerate(vectors):
        left = parameters[2 * layer] @ vector
        right = parameters[2 * layer].T @ (left / np.sqrt((left**2).sum()))
        result.append(right / np.sqrt((right**2).sum()))
    return result


class Reference(BearReference):
    def __init__(self, config: Any, state: Any) -> None:
        super().__init__(config, state.bear)
        self.power = [[np.array(v[i]) for v in state.power] for i in range(2)]
        self.target_power = [[np.array(v[i]) for v in state.target_power] for i in range(2)]

    def update(  # type: ignore[override]
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        noise: Any,
        target_masks: Any,
        critic_masks: Any,
        actor_masks: Any,
    ) -> None:
        c, n = self.config, len(r)
        self.vae_adam.step(self.vae, gradient(lambda p: vae_loss(p, s, a, noise.vae, c.kl_weight), self.vae))
        self.power = [iterated(p, v) for p, v in zip(self.critics, self.power, strict=True)]
        self.target_power = [iterated(p, v) for p, v in zip(self.target_critics, self.target_power, strict=True)]

        rows = np.concatenate([beside(s2, np.tanh(latent_action(self.actor, s2, e))) for e in noise.next_actions])
        (q1, v1), (q2, v2) = (
            statistics(divided(self.target_critics[i], self.target_power[i]), rows, target_masks, i, c.dropout)
            for i in range(2)
        )
        soft = c.soft_clipping * np.minimum(q1, q2) + (1 - c.soft_clipping) * np.maximum(q1, q2)
        y = r + c.discount * (1 - terminal) * soft.reshape(-1, n).max(0)
        self.weight = np.clip(np.exp(-c.beta * (v1 + v2).reshape(-1, n).max(0)), c.smallest_weight, c.largest_weight)

        def critic_loss(i: int) -> Any:
            return lambda p: (
                (
                    (self.weight * (dropped(divided(p, self.power[i]), beside(s, a), critic_masks, i, c.dropout) - y))
                    ** 2
                ).sum()
                / n
            )

        critic_gradients = [gradient(critic_loss(i), self.critics[i]) for i in range(2)]
        proposed = np.array([decode(self.vae, s, np.clip(z, -0.5, 0.5)) for z in noise.proposals])
        alpha = np.exp(float(self.log_alpha))
        online = [divided(self.critics[i], self.power[i]) for i in range(2)]

        def actor_loss(parameters: Parameters) -> Any:
            actions = [latent_action(parameters, s, e) for e in noise.actions]
            gap = mmd(proposed, actions, c.mmd_kernel, c.mmd_sigma).sum() / n - c.mmd_threshold
            self.gap, loss = gap.real, alpha * gap
            if self.updates >= c.warmup_steps:
                x = beside(s, np.tanh(actions[0]))
                (q1, v1), (q2, v2) = (statistics(online[i], x, actor_masks, i, c.dropout) for i in range(2))
                weight = np.clip(np.exp(-c.beta * (v1 + v2).real), c.smallest_weight, c.largest_weight)
                loss = loss - (weight * ref.smallest(np.array([q1, q2]), 0)).sum() / n
            return loss

        self.actor_adam.step(self.actor, gradient(actor_loss, self.actor))
        for i in range(2):
            self.critic_adams[i].step(self.critics[i], critic_gradients[i])
            follow(self.target_critics[i], self.critics[i], c.tau)
        self.alpha_adam.step([self.log_alpha], [np.array(-alpha * self.gap)])
        self.updates += 1


@pytest.mark.parametrize(
    "options",
    [
        {"dropout_masks": "row"},
        {"dropout_masks": "pass", "spectral_norm": False, "dropout": 0.3, "smallest_weight": 0.6},
    ],
    ids=str,
)
def test_updates_agree_in_float64(options: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config = uwac.Config(**SMALL, **{"mmd_samples": 2, "warmup_steps": 1, "beta": 2.0} | options)
        state = start(uwac, config, Shapes(OBSERVATIONS, ACTIONS))
        rng = np.random.default_rng(2)
        base = state.bear
        critics, actor = jax.tree.map(lambda p: p + 0.6 * rng.normal(size=p.shape), (base.critics, base.actor))
        state = state._replace(bear=base._replace(critics=critics, target_critics=critics, actor=actor))
        reference = Reference(config, state)
        before, step = arrays(actor), jax.jit(uwac.update, static_argnums=4)
        for number, (s, a, r, s2, terminal) in enumerate(ref.batches(3, SIZE, OBSERVATIONS, ACTIONS)):
            key = jax.random.key(number)
            noise_key, target_key, critic_key, actor_key = jax.random.split(key, 4)
            batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
            reference.update(
                s, a, r, s2, terminal,
                jax.tree.map(np.asarray, bear.draw_noise(config, state.bear, batch, noise_key)),
                masks_of(config, target_key, 2 * SIZE, 4),
                masks_of(config, critic_key, SIZE)[0],
                masks_of(config, actor_key, SIZE, 4),
            )  # fmt: skip
            state, metrics = step(config, state, batch, key, 0)
            np.testing.assert_allclose(metrics["weight"], reference.weight.mean(), rtol=1e-9)
            assert 0.01 < metrics["weight"] < 0.99
        base = state.bear
        assert difference([base.log_alpha], [reference.log_alpha]) < 1e-9
        assert difference(vae_arrays(base.vae), reference.vae) < 1e-9
        assert difference(arrays(base.actor), reference.actor) < 1e-8
        for i in range(2):
            assert difference(arrays(base.critics, i), reference.critics[i]) < 1e-8
            assert difference(arrays(base.target_critics, i), reference.target_critics[i]) < 1e-8
        assert difference(before, reference.actor) > 1e-4


@pytest.mark.parametrize("rate", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
def test_an_update_whose_passes_are_kernels(rate: float) -> None:
    """Without dropout it is the same update; with it, the weight is one of the same distribution."""
    options = SMALL | {"hidden": (64, 64), "mmd_samples": 2, "warmup_steps": 0, "passes": 50}
    config = uwac.Config(**options, dropout=rate)
    state = uwac.init(config, Shapes(OBSERVATIONS, ACTIONS), jax.random.key(0))
    s, a, r, s2, terminal = (
        jnp.asarray(x, jnp.float32) for x in next(iter(ref.batches(1, SIZE, OBSERVATIONS, ACTIONS)))
    )
    batch, small = Batch(s, a, r, s2, terminal, jnp.arange(SIZE)), ProgramShape(64, 4, 1, 2)
    plain = Arithmetic("bfloat16", emulated=True)
    results = []
    for chosen in (plain, plain._replace(passes=DropoutPasses(values=small, slopes=small, interpret=True))):
        with arithmetic(chosen):
            results.append(
                jax.jit(lambda state, batch, key: uwac.update(config, state, batch, key, 0))(
                    state, batch, jax.random.key(1)
                )
            )
    (one, metrics), (other, other_metrics) = results
    tolerance = 0.01 if rate else 1e-3
    for name in ("weight", "actor_weight", "critic_loss", "q_target"):
        np.testing.assert_allclose(metrics[name], other_metrics[name], rtol=10 * tolerance, atol=tolerance)
    if rate:
        assert metrics["q_target"] != other_metrics["q_target"], "other masks"
    else:
        assert difference(arrays(one.bear.actor), arrays(other.bear.actor)) < 1e-4


def test_dropout_keeps_the_mean_and_the_rate() -> None:
    x = jnp.ones((2, 500, 64))
    cases: tuple[tuple[Masks, int], ...] = (("row", 500), ("pass", 1))
    for masks, rows in cases:
        found = np.asarray(dropout(x, jax.random.key(0), 0.1, masks))
        assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.9)}
        assert abs((found == 0).mean() - 0.1) < (0.005 if masks == "row" else 0.08)
        assert len(np.unique(found[0], axis=0)) == rows


@pytest.mark.parametrize("masks", ["row", "pass"])
def test_candidates_can_be_compared_with_dropout_on(masks: Masks) -> None:
    """As the published code does: the first critic's mean over passes decides."""
    with jax.enable_x64(True):
        config = uwac.Config(**SMALL, acting_passes=3, dropout=0.4, dropout_masks=masks, spectral_norm=False)
        state = start(uwac, config, Shapes(OBSERVATIONS, ACTIONS))
        rng = np.random.default_rng(5)
        critics = jax.tree.map(lambda p: p + rng.normal(size=p.shape), state.bear.critics)
        policy = uwac.ALGORITHM.policy(state._replace(bear=state.bear._replace(critics=critics)))
        s, key = jnp.asarray(rng.normal(size=(SIZE, OBSERVATIONS))), jax.random.key(7)
        candidates = np.asarray(bear.sampled_actions(config, policy.actor, s, key))
        rows = config.acting_samples * SIZE
        passes = masks_of(config, jax.random.fold_in(key, 1), rows, 3, members=1)
        x = beside(np.tile(s, (config.acting_samples, 1)), candidates.reshape(rows, ACTIONS))
        mean, _ = statistics(arrays(critics, 0), x, passes, 0, config.dropout)
        best = mean.reshape(config.acting_samples, SIZE).argmax(axis=0)
        found = np.asarray(uwac.act(config, policy, s, key))
        np.testing.assert_allclose(found, candidates[best, np.arange(SIZE)], rtol=1e-12)
        without = np.asarray(uwac.act(dataclasses.replace(config, acting_passes=0), policy, s, key))
        assert not np.allclose(found, without), "dropout changes what is best"
        np.testing.assert_array_equal(uwac.act(config, policy, s), uwac.act(config, policy, s))


def test_the_published_settings() -> None:
    config = uwac.Config()
    assert (config.beta, config.smallest_weight, config.largest_weight) == (0.5, 0.0, 1.0)
    assert (config.dropout, config.passes, config.dropout_masks, config.spectral_norm) == (0.1, 100, "row", True)
    assert (config.mmd_kernel, config.mmd_threshold, config.mmd_sigma) == ("gaussian", 0.07, 20.0)
    assert (config.actor_learning_rate, config.critic_learning_rate, config.warmup_steps) == (1e-4, 3e-4, 40_000)
