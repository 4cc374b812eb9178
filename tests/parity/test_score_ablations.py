"""SCORE's ablations against a plain float64 transcription: every constraint, uncertainty and penalty."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.algorithms import score
from score_rl.algorithms.algorithm import Batch, Shapes
from score_rl.algorithms.score import Config, State
from score_rl.algorithms.score_ablations import ABLATIONS, chosen_ablations
from score_rl.algorithms.settings import make_config
from score_rl.errors import InputError
from tests.parity import numpy_reference as ref
from tests.parity.numpy_reference import Parameters, arrays, beside, difference, follow, gradient, perceptron, start
from tests.parity.test_bcq import decode, perturbed, vae_arrays, vae_loss
from tests.parity.test_bear import latent_action, mmd
from tests.parity.test_uwac import dropped, statistics

OBSERVATIONS, ACTIONS, SIZE, LATENT, MEMBERS = 3, 2, 6, 4, 3
SMALL: dict[str, Any] = {
    "hidden": (6, 5), "vae_hidden": (7, 6), "critics": MEMBERS, "target_samples": 3, "acting_samples": 8, "tau": 0.1,
    "dropout_passes": 4, "bc_decay_every": 2, "bc_decay": 0.5,
}  # fmt: skip


def masks_of(config: Any, key: jax.Array, rows: int, passes: Any = None) -> Any:
    """[pass][layer][member, row or 1, unit] of True where a unit is kept, drawn as the method draws them."""
    keys = [key] if passes is None else list(jax.random.split(key, passes))
    return [
        [
            np.asarray(jax.random.bits(jax.random.fold_in(one, layer), (MEMBERS, rows, width), jnp.uint16))
            < (1 - config.dropout) * 65536
            for layer, width in enumerate(config.hidden)
        ]
        for one in keys
    ]


class Reference:
    def __init__(self, config: Any, state: Any) -> None:
        self.config, self.updates = config, 0
        self.actor, self.critics = arrays(state.actor), [arrays(state.critics, i) for i in range(MEMBERS)]
        self.target_actor = [p.copy() for p in self.actor]
        self.target_critics = [[p.copy() for p in critic] for critic in self.critics]
        self.actor_adam = ref.Adam(self.actor, config.actor_learning_rate)
        self.critic_adams = [ref.Adam(critic, config.critic_learning_rate) for critic in self.critics]
        self.log_multiplier = np.zeros(())
        if state.behaviour is not None:
            self.vae = vae_arrays(state.behaviour.vae)
            self.vae_adam = ref.Adam(self.vae, 1e-3)
            self.multiplier_adam = ref.Adam([self.log_multiplier], 1e-3)

    def next_action(self, s2: np.ndarray, noise: Any) -> np.ndarray:
        c = self.config
        if c.constraint == "fix":
            actions = np.array([perturbed(c, self.vae, self.target_actor, s2, z) for z in noise.actions[1]])
            q = [[perceptron(p, beside(s2, a))[:, 0] for p in self.target_critics] for a in actions]
            return actions[np.min(q, axis=1).argmax(0), np.arange(len(s2))]
        if c.constraint == "mmd":
            return np.tanh(latent_action(self.target_actor, s2, noise.actions[1]))
        smoothing = np.clip(c.target_noise * noise.actions, -c.target_noise_clip, c.target_noise_clip)
        return np.clip(np.tanh(perceptron(self.target_actor, s2)) + smoothing, -1, 1)

    def deviation(self, critics: list[list[np.ndarray]], x: np.ndarray, masks: Any) -> np.ndarray:
        """u of each row."""
        if self.config.uncertainty != "dropout":
            return np.std([perceptron(p, x)[:, 0] for p in critics], axis=0)
        return np.mean(
            [np.sqrt(statistics(p, x, masks, i, self.config.dropout)[1]) for i, p in enumerate(critics)], axis=0
        )

    def update(
        self,
        s: np.ndarray,
        a: np.ndarray,
        r: np.ndarray,
        s2: np.ndarray,
        terminal: np.ndarray,
        noise: Any,
        masks: Any,
    ) -> None:
        c, n = self.config, len(r)
        here, there, once = masks
        if c.constraint in ("fix", "mmd"):
            self.vae_adam.step(self.vae, gradient(lambda p: vae_loss(p, s, a, noise.actions[0], 0.5), self.vae))
        x, x2 = beside(s, a), beside(s2, self.next_action(s2, noise))
        following = np.array([perceptron(p, x2)[:, 0] for p in self.target_critics])
        self.uncertainty = self.deviation(self.critics, x, here)
        y = np.empty((MEMBERS, n))
        for i in range(MEMBERS):
            if c.uncertainty == "min-q":
                y[i] = r + c.discount * (1 - terminal) * following.min(0)
                continue
            value = following[i].copy()
            if c.penalty == "here+next":
                value -= c.next_beta * self.deviation(self.target_critics, x2, there)
            y[i] = r + c.discount * (1 - terminal) * value - c.beta * self.uncertainty

        def critic_loss(i: int) -> Callable[..., Any]:
            if c.uncertainty == "dropout":
                return lambda p: ((dropped(p, x, once[0], i, c.dropout) - y[i]) ** 2).sum() / n
            return lambda p: ((perceptron(p, x)[:, 0] - y[i]) ** 2).sum() / n

        for i, (critic, adam) in enumerate(zip(self.critics, self.critic_adams, strict=True)):
            adam.step(critic, gradient(critic_loss(i), critic))
        if self.updates % c.actor_delay == 0:
            self.improve(s, a, noise)
        self.updates += 1

    def improve(self, s: np.ndarray, a: np.ndarray, noise: Any) -> None:
        c, n = self.config, len(s)
        multiplier, weight = np.exp(float(self.log_multiplier)), c.bc_weight * c.bc_decay ** (self.updates // 2)

        def own(parameters: Parameters) -> tuple[Any, ...]:
            if c.constraint == "fix":
                return perturbed(c, self.vae, parameters, s, noise.actions[2][0]), 0
            if c.constraint == "mmd":
                actions = [latent_action(parameters, s, e) for e in noise.actions[2]]
                proposed = [decode(self.vae, s, np.clip(z, -0.5, 0.5)) for z in noise.actions[3]]
                gap = mmd(proposed, actions, c.mmd_kernel, c.mmd_sigma).sum() / n - c.mmd_threshold
                self.gap = gap.real
                return np.tanh(actions[0]), multiplier * gap
            actions = np.tanh(perceptron(parameters, s))
            if c.constraint == "none":
                return actions, 0
            return actions, weight * ((actions - a) ** 2).sum() / a.size

        def value(actions: np.ndarray) -> np.ndarray:
            return ref.smallest(np.array([perceptron(p, beside(s, actions))[:, 0] for p in self.critics]), 0)

        scale = c.alpha / np.abs(value(own(self.actor)[0])).mean()

        def actor_loss(parameters: Parameters) -> Any:
            actions, term = own(parameters)
            return -scale * value(actions).sum() / n + term

        self.actor_adam.step(self.actor, gradient(actor_loss, self.actor))
        if c.constraint == "mmd":
            self.multiplier_adam.step([self.log_multiplier], [np.array(-multiplier * self.gap)])
        follow(self.target_actor, self.actor, c.tau)
        for target, online in zip(self.target_critics, self.critics, strict=True):
            follow(target, online, c.tau)

    def act(self, s: np.ndarray, noise: Any) -> Any:
        c = self.config
        if c.constraint == "fix":
            actions = [perturbed(c, self.vae, self.actor, s, z) for z in noise]
        else:
            actions = [np.tanh(latent_action(self.actor, s, e)) for e in noise]
        q = [min(perceptron(p, beside(s, a))[0] for p in self.critics) for a in actions]
        return actions[int(np.argmax(q))]


VARIANTS = [
    {},
    {"constraint": "none"},
    {"bc_weight": 0.0, "beta": 0.0},
    {"constraint": "fix", "perturbation": 0.3},
    {"constraint": "mmd", "mmd_sigma": 3.0, "mmd_threshold": 0.3},
    {"constraint": "mmd", "mmd_kernel": "gaussian"},
    {"uncertainty": "dropout", "dropout": 0.3},
    {"uncertainty": "min-q"},
    {"penalty": "here+next", "beta": 0.0, "next_beta": 0.7},
    {"penalty": "here+next", "next_beta": 0.7},
    {"penalty": "here+next", "next_beta": 0.7, "uncertainty": "dropout", "constraint": "fix"},
]


def both(
    settings: dict[str, Any], reference_settings: dict[str, Any] | None = None, updates: int = 4
) -> tuple[Config, State, Reference, np.ndarray]:
    """Method and reference after the same updates."""
    config = score.Config(**SMALL, **settings)
    state = start(score, config, Shapes(OBSERVATIONS, ACTIONS))
    reference = Reference(
        score.Config(**SMALL, **(settings if reference_settings is None else reference_settings)), state
    )
    step = jax.jit(score.update, static_argnums=4)
    for number, (s, a, r, s2, terminal) in enumerate(ref.batches(updates, SIZE, OBSERVATIONS, ACTIONS)):
        key = jax.random.key(number)
        batch = Batch(s, a, r, s2, terminal, jnp.arange(SIZE))
        noise = score.draw(config, state, batch, key)
        masks = (None, None, None)
        if noise.dropout is not None:
            masks = (
                masks_of(config, noise.dropout.here, 1, config.dropout_passes),
                masks_of(config, noise.dropout.there, 1, config.dropout_passes),
                masks_of(config, noise.dropout.once, SIZE),
            )
        reference.update(s, a, r, s2, terminal, jax.tree.map(np.asarray, noise._replace(dropout=None)), masks)
        state, metrics = step(config, state, batch, key, number % config.actor_delay)
        if reference_settings is None:
            np.testing.assert_allclose(metrics["uncertainty"], reference.uncertainty.mean(), rtol=1e-8)
    return config, state, reference, s


def apart(state: Any, reference: Any) -> Any:
    worst = difference(arrays(state.actor), reference.actor)
    worst = max(worst, difference(arrays(state.target_actor), reference.target_actor))
    for i in range(MEMBERS):
        worst = max(worst, difference(arrays(state.critics, i), reference.critics[i]))
        worst = max(worst, difference(arrays(state.target_critics, i), reference.target_critics[i]))
    if state.behaviour is not None:
        worst = max(worst, difference(vae_arrays(state.behaviour.vae), reference.vae))
        worst = max(worst, abs(float(state.behaviour.log_multiplier - reference.log_multiplier)))
    return worst


def test_ablations_name_functions_that_can_be_replaced() -> None:
    """A name that `score.py` does not have would change nothing, and nobody would notice."""
    choices = {field.name: field for field in dataclasses.fields(score.Config)}
    for (setting, value), ablation in ABLATIONS.items():
        kind = choices[setting].type
        assert value in (get_args(kind) or (True, False)), setting
        assert value != choices[setting].default, f"{setting} {value} is the paper's SCORE"
        for name in ablation:
            function = getattr(score, name)
            assert function.__module__ == "score_rl.algorithms.score", name
            assert hasattr(function, "__wrapped__"), f"{name} is not replaceable"
            assert set(inspect.signature(ablation[name]).parameters) >= {"replaced", "config"}
    assert not list(chosen_ablations(score.Config()))


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_updates_agree_in_float64(settings: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        config, state, reference, s = both(settings)
        assert apart(state, reference) < 1e-8
        assert (float(reference.log_multiplier) != 0) == (config.constraint == "mmd")
        if config.constraint not in ("fix", "mmd"):
            return
        width = LATENT if config.constraint == "fix" else ACTIONS
        noise = np.asarray(jax.random.normal(jax.random.key(0), (8, 1, width)))[:, 0]
        expected = [reference.act(row, noise) for row in s]
        np.testing.assert_allclose(score.act(config, score.policy(state), jnp.asarray(s)), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("settings", "other"),
    [
        ({"penalty": "here+next", "next_beta": 0.7}, {"penalty": "here+next", "next_beta": 0.8}),
        ({"uncertainty": "min-q"}, {}),
        ({"constraint": "none"}, {}),
    ],
    ids=str,
)
def test_the_comparison_can_fail(settings: dict[str, Any], other: dict[str, Any]) -> None:
    with jax.enable_x64(True):
        _, state, reference, _ = both(settings, other, updates=4)
        assert apart(state, reference) > 1e-5


def test_the_minimum_leaves_no_penalty() -> None:
    with jax.enable_x64(True):
        _, state, _, _ = both({"uncertainty": "min-q", "penalty": "here+next", "next_beta": 0.7})
        _, alone, _, _ = both({"uncertainty": "min-q"})
        assert difference(arrays(state.actor), arrays(alone.actor)) < 1e-12


def test_without_cloning_the_norm_of_its_error_does_not_matter() -> None:
    with jax.enable_x64(True):
        _, state, _, _ = both({"constraint": "none", "bc_norm": "sum"}, {"constraint": "none"})
        _, alone, _, _ = both({"constraint": "none"})
        assert difference(arrays(state.actor), arrays(alone.actor)) < 1e-12


def test_without_cloning_is_a_weight_of_zero() -> None:
    with jax.enable_x64(True):
        _, state, _, _ = both({"constraint": "none"})
        _, weightless, _, _ = both({"bc_weight": 0.0})
        assert difference(arrays(state.actor), arrays(weightless.actor)) < 1e-12


@pytest.mark.parametrize(
    "settings",
    [
        {"next_beta": 0.1},
        {"constraint": "fix", "spectral_norm": True},
        {"uncertainty": "dropout", "spectral_norm": True},
        {"dropout": 1.0},
        {"dropout_passes": 1},
        {"mmd_sigma": 0.0},
        {"constraint": "sometimes"},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        make_config(score.ALGORITHM, settings)
