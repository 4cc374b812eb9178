"""What every algorithm promises, asked of each by name."""

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import score_rl
from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.registry import algorithm_names, get_algorithm
from score_rl.algorithms.settings import limits_of, make_config
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.errors import InputError
from score_rl.store.checkpoints import from_arrays, to_arrays

NAMES = algorithm_names()
# SCORE's ablations change what is computed and stored: they make the same promises.
VARIANTS: dict[str, Any] = {
    "score (fix)": ("score", {"constraint": "fix"}),
    "score (mmd, both penalties)": ("score", {"constraint": "mmd", "penalty": "here+next", "next_beta": 0.2}),
    "score (dropout)": ("score", {"uncertainty": "dropout"}),
    "score (min-q, no constraint)": ("score", {"uncertainty": "min-q", "constraint": "none"}),
}
CHARACTERISTICS = {"policy-constrained", "value-penalised", "uncertainty-aware", "OOD sampling", "model-based"}
OBSERVATIONS, ACTIONS = 11, 3  # hopper's
WINDOW = 12  # updates; a multiple of every cycle
# Whatever costs time and changes no promise, where an algorithm has such a setting.
SMALL: dict[str, Any] = {
    "hidden": (32, 32), "vae_hidden": (32, 32), "batch_size": 32, "critics": 3, "ood_actions": 3, "target_samples": 3,
    "acting_samples": 10, "passes": 5, "dropout_passes": 3, "warmup_steps": 5, "sampled_actions": 3,
    "rollouts": 16, "rollout_every": 6, "models": 3, "elites": 2, "dynamics_hidden": (16, 16, 16, 16), "paths": 4,
    "horizon": 6, "fisher_iterations": 4,
}  # fmt: skip


def small_settings(algorithm: Algorithm) -> dict[str, Any]:
    fields = {field.name for field in dataclasses.fields(algorithm.Config)}
    return {name: value for name, value in SMALL.items() if name in fields}


@cache
def noise_dataset() -> Dataset:
    """Random transitions in hopper's shapes: nothing to learn, everything to compute."""
    rng, rows = np.random.default_rng(0), 400
    ends = np.arange(1, rows + 1)
    return make_dataset(
        "noise",
        observations=rng.normal(1, 2, (rows, OBSERVATIONS)),
        actions=rng.uniform(-1, 1, (rows, ACTIONS)),
        rewards=rng.normal(size=rows),
        next_observations=rng.normal(1, 2, (rows, OBSERVATIONS)),
        terminals=ends % 50 == 0,
        timeouts=(ends % 80 == 0) & (ends % 50 != 0),
        environment="hopper",
    )


def run_of(name: str, seed: int, **settings: Any) -> Run:
    algorithm = get_algorithm(name)
    config = make_config(algorithm, small_settings(algorithm) | settings)
    return Run(f"seed={seed}", algorithm, noise_dataset(), seed, config)


class Trained:
    """A run alone: its program, its state at the start, after one window and after two, and what was measured.

    States are kept on the host: a window gives its input's memory away.
    """

    def __init__(self, name: str) -> None:
        self.settings: dict[str, Any]
        base, self.settings = VARIANTS.get(name, (name, {}))
        self.run = run_of(base, 3, **self.settings)
        self.algorithm, self.config = self.run.algorithm, self.run.config
        self.program = FleetProgram([self.run])
        self.shapes = self.program.state_shapes()
        self.start = to_arrays(self.program.init())
        self.halfway, _ = self.advance(self.start, 0)
        self.end, self.metrics = self.advance(self.halfway, WINDOW)
        self.state = jax.tree.map(lambda leaf: leaf[0], from_arrays(self.end, self.shapes))
        self.policy = self.algorithm.policy(self.state)
        self.act = jax.jit(lambda policy, observations, key: self.algorithm.act(self.config, policy, observations, key))

    def advance(self, arrays: dict[str, np.ndarray], start: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """A window from a stored state, stored again; and its metrics."""
        state = self.program.put(from_arrays(arrays, self.shapes))
        state, metrics = self.program.advance(state, start, WINDOW)
        return to_arrays(state), jax.device_get(metrics)


@cache
def trained(name: str) -> Trained:
    return Trained(name)


def observations(rows: int = 7, spread: float = 1.0, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, spread, (rows, OBSERVATIONS)).astype(np.float32)


SLOW_VARIANTS = [pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS]


def marked_slow(*slow: str) -> list[Any]:
    """All algorithms, some of them for the slow tests alone."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in NAMES]


@pytest.fixture(params=[*NAMES, *SLOW_VARIANTS])
def subject(request: Any) -> Trained:
    return trained(request.param)


# -- what is said about it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name: str) -> None:
    algorithm = get_algorithm(name)
    assert algorithm.name == name
    assert algorithm.title
    assert algorithm.summary
    assert algorithm.characteristics
    assert set(algorithm.characteristics) <= CHARACTERISTICS
    for field in dataclasses.fields(algorithm.Config):
        assert field.metadata.get("help"), f"{field.name} does not say where its default comes from"
    for needed in ("batch_size", "normalise_states", "reward_scaling"):
        assert hasattr(algorithm.Config(), needed)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_valid(name: str) -> None:
    algorithm = get_algorithm(name)
    assert make_config(algorithm, {}) == algorithm.Config()


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"batch_sise.*batch_size"):
        make_config(get_algorithm(name), {"batch_sise": 32})


@pytest.mark.parametrize("name", NAMES)
def test_settings_of_another_type_are_refused(name: str) -> None:
    algorithm = get_algorithm(name)
    wrong: dict[Any, list[Any]] = {bool: [1, "yes"], int: [2.5, "many", True], float: ["a lot", float("nan"), True]}
    for field in dataclasses.fields(algorithm.Config):
        for value in wrong.get(field.type, ["sometimes", ()]):  # the others are tuples of numbers and choices
            with pytest.raises(InputError, match=field.name):
                assert not make_config(algorithm, {field.name: value}), f"{field.name} = {value!r} was taken"


def just_outside(limits: Any, kind: Any) -> Iterator[Any]:
    """For each limit the nearest round number that it refuses, with the words that name the limit."""
    step = 1 if kind is int else 0.5
    if limits.minimum is not None:
        yield limits.minimum - step, str(limits.minimum)
    if limits.maximum is not None:
        yield limits.maximum + step, str(limits.maximum)
    if limits.above is not None:
        yield limits.above, f"above {limits.above}"
    if limits.below is not None:
        yield limits.below, f"below {limits.below}"


@pytest.mark.parametrize("name", NAMES)
def test_values_beyond_a_limit_are_refused_by_setting_value_and_limit(name: str) -> None:
    algorithm, held = get_algorithm(name), 0
    for field in dataclasses.fields(algorithm.Config):
        limits, default = limits_of(field), field.default
        many = get_origin(field.type) is tuple
        kind: Any = get_args(field.type)[0] if many else field.type
        assert (limits is not None) == (kind in (int, float)), field.name
        for number, limit in just_outside(limits, kind) if limits else ():
            value = (*cast(Any, default)[1:], kind(number)) if many else kind(number)
            said = f"{field.name} is {value}; {'each number' if many else 'it'} must be {limits}."
            assert limit in said
            with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
                make_config(algorithm, {field.name: value})
            held += 1
    assert held >= 3, "no limit was tried"


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("morel", {"least_log_std": 2.0}, "least_log_std is 2.0; it must be at most largest_log_std, 1.0."),
        ("mopo", {"elites": 8}, "elites is 8; it must be at most models, 7."),
        ("mopo", {"dynamics_hidden": (8, 8)}, "dynamics_decay has 5 numbers for 3 layers; give one for each."),
        ("uwac", {"largest_weight": 0.1, "smallest_weight": 0.2}, "it must be at least smallest_weight, 0.2."),
    ],
)
def test_settings_that_contradict_each_other_are_refused(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        make_config(get_algorithm(name), settings)


# -- training --------------------------------------------------------------------------------------------------------


def test_metrics_and_state_are_finite(subject: Trained) -> None:
    assert subject.metrics
    assert set(subject.algorithm.headline) <= set(subject.metrics)
    for name, values in subject.metrics.items():
        assert values.shape == (1,), name
        assert np.isfinite(values).all(), name
    for name, array in subject.end.items():
        assert np.isfinite(array).all(), name
        assert array.size, f"{name} is empty: over several devices JAX 0.11's compiler breaks down on it; use None"


def test_updates_move_the_policy(subject: Trained) -> None:
    start = jax.tree.map(lambda leaf: leaf[0], from_arrays(subject.start, subject.shapes))
    before, after = to_arrays(subject.algorithm.policy(start)), to_arrays(subject.policy)
    assert any((before[name] != after[name]).any() for name in before)


def test_the_same_key_gives_the_same_bits(subject: Trained) -> None:
    again, metrics = subject.advance(subject.advance(subject.start, 0)[0], WINDOW)
    for name, array in again.items():
        np.testing.assert_array_equal(array, subject.end[name], err_msg=name)
    for name, values in metrics.items():
        np.testing.assert_array_equal(values, subject.metrics[name], err_msg=name)


def test_a_state_survives_being_taken_apart_and_stored(subject: Trained) -> None:
    restored = from_arrays(subject.halfway, subject.shapes)
    found: Any = jax.tree.structure(restored)
    assert found == jax.tree.structure(subject.shapes)
    for name, array in to_arrays(restored).items():
        np.testing.assert_array_equal(array, subject.halfway[name], err_msg=name)


def test_training_that_was_stored_goes_on_as_if_nothing_had_been(subject: Trained) -> None:
    state = subject.program.put(from_arrays(subject.start, subject.shapes))
    for number in range(2):  # never leaves the device, unlike `subject.end`
        state, _ = subject.program.advance(state, number * WINDOW, WINDOW)
    for name, array in to_arrays(state).items():
        np.testing.assert_array_equal(array, subject.end[name], err_msg=name)


@pytest.mark.parametrize("subject", [*marked_slow("mopo", "morel", "uwac"), *SLOW_VARIANTS], indirect=True)
def test_a_run_alone_and_among_eight_others_is_the_same_run(subject: Trained) -> None:
    name, place = subject.algorithm.name, 4
    varied = {"discount": 0.9} if hasattr(subject.config, "discount") else {}
    others = [run_of(name, 10 + seed, **varied, **subject.settings) for seed in range(8)]
    program = FleetProgram([*others[:place], subject.run, *others[place:]])
    state: Any = program.init()
    metrics: dict[str, Any] = {}
    for number in range(2):
        state, metrics = program.advance(state, number * WINDOW, WINDOW)
    mine = {part: array[place] for part, array in to_arrays(state).items()}
    # What acting needs of a whole fleet is what it needs of each run.
    picked = to_arrays(subject.algorithm.policy(jax.tree.map(lambda leaf: leaf[place], state)))
    for part, array in to_arrays(program.policies(state)).items():
        np.testing.assert_array_equal(array[place], picked[part], err_msg=part)
    for part, expected in subject.end.items():
        if expected.dtype.kind == "f":
            apart = np.linalg.norm(mine[part] - expected[0])
            assert apart <= 1e-4 * max(float(np.linalg.norm(expected)), 1e-3), part
        else:
            np.testing.assert_array_equal(mine[part], expected[0], err_msg=part)
    for metric, values in metrics.items():
        np.testing.assert_allclose(values[place], subject.metrics[metric][0], rtol=1e-3, atol=1e-4, err_msg=metric)


# -- acting ----------------------------------------------------------------------------------------------------------


def test_actions_have_their_shape_and_respect_their_bounds(subject: Trained) -> None:
    for spread in (1.0, 100.0):
        for key in (None, jax.random.key(5)):
            actions = np.asarray(subject.act(subject.policy, observations(spread=spread), key))
            assert actions.shape == (7, ACTIONS)
            assert actions.dtype == np.float32
            assert np.isfinite(actions).all()
            assert np.abs(actions).max() <= 1


def test_acting_is_deterministic_unless_given_a_key(subject: Trained) -> None:
    seen = observations()
    first = np.asarray(subject.act(subject.policy, seen, None))
    np.testing.assert_array_equal(first, subject.act(subject.policy, seen, None))
    # The action is a function of the observation: neither its place nor its company matters.
    np.testing.assert_allclose(first[::-1], subject.act(subject.policy, seen[::-1], None), atol=1e-5)
    np.testing.assert_allclose(first[:1], subject.act(subject.policy, seen[:1], None), atol=1e-5)
    with_key = np.asarray(subject.act(subject.policy, seen, jax.random.key(5)))
    np.testing.assert_array_equal(with_key, subject.act(subject.policy, seen, jax.random.key(5)))


def test_uncertainty_is_one_finite_number_for_each_pair(subject: Trained) -> None:
    uncertainty = subject.algorithm.uncertainty
    if uncertainty is None:
        assert "uncertainty-aware" not in subject.algorithm.characteristics
        return
    measure = jax.jit(lambda s, o, a: uncertainty(subject.config, s, o, a))
    values = np.asarray(measure(subject.state, observations(), jnp.zeros((7, ACTIONS))))
    assert values.shape == (7,)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert values.max() > 0


def test_a_value_is_one_finite_number_for_each_pair(subject: Trained) -> None:
    """What a method that learns values says of actions differs from action to action."""
    algorithm, seen = subject.algorithm, observations()
    if algorithm.value is None:
        assert algorithm.name in ("bc", "morel")
        return
    value = jax.jit(lambda s, o, a: algorithm.value(subject.config, s, o, a))  # type: ignore[misc]
    still, far = (np.asarray(value(subject.state, seen, jnp.full((7, ACTIONS), x))) for x in (0.0, 1.0))
    assert still.shape == (7,)
    assert np.isfinite(still).all()
    assert (still != far).any()
    if algorithm.state_value is not None:
        assert np.asarray(algorithm.state_value(subject.config, subject.state, seen)).shape == (7,)


# -- learning --------------------------------------------------------------------------------------------------------

# Twice and more of what uniform actions reach, within a bounded number of updates of small networks. Where a method
# takes its time by design (a warm-up, a small learning rate) the design is compressed, not changed.
LEARNS = {"hidden": (64, 64), "vae_hidden": (64, 64), "batch_size": 64, "acting_samples": 20, "passes": 5}
FASTER: dict[str, Any] = {
    "rebrac": {"actor_bc_weight": 0.1, "critic_bc_weight": 0.1},
    "bear": {"warmup_steps": 1_000, "actor_learning_rate": 1e-3},
    "uwac": {
        "warmup_steps": 2_000, "actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3, "vae_learning_rate": 1e-3,
        "dropout_masks": "pass",
    },
    "mopo": {
        "actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3, "rollouts": 5_000, "dynamics_epochs": 40,
        "dynamics_hidden": (64, 64, 64, 64),
    },
    "morel": {"dynamics_hidden": (64, 64), "paths": 10, "horizon": 100},
    "cql": {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3},
    "pbrl-prior": {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3},
    "sac-n": {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3, "critics": 10},
    "edac": {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3, "critics": 10},
}  # fmt: skip
UPDATES = dict.fromkeys(NAMES, 4_000) | {"cql": 8_000, "mopo": 8_000, "sac-n": 12_000, "edac": 12_000}
UPDATES["morel"] = 100  # each of them a thousand steps in its model
# On narrow data these need tens of thousands of updates (SAC-N and EDAC hundreds of critics) before anything is to be
# seen, or come and go. On data of uniform actions they show it soon.
FROM_UNIFORM = ("cql", "pbrl-prior", "sac-n", "edac", "mopo")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name: str, tmp_path: Path) -> None:
    """20,000 transitions of Hopper: uniform actions return about 18, and a body that keeps standing 100 and more."""
    algorithm = get_algorithm(name)
    fields = {field.name for field in dataclasses.fields(algorithm.Config)}
    settings = {key: value for key, value in LEARNS.items() if key in fields} | FASTER.get(name, {})
    uniform = name in FROM_UNIFORM
    experiment = score_rl.train(
        "replica:hopper-random" if uniform else "replica:hopper-medium",
        algorithm=name,
        transitions=20_000,
        config=settings,
        steps=UPDATES[name],
        eval_every=UPDATES[name],
        eval_episodes=10,
        out=tmp_path / "run",
        quiet=True,
        tensorboard=False,
    )
    reached = experiment.metrics.last("evaluation/return")
    assert reached is not None
    assert reached > (100 if uniform else 150), f"{name} returns {reached:.0f} after {UPDATES[name]} updates"
