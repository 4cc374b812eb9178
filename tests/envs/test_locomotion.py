"""The batched locomotion tasks against Gymnasium's own, and against themselves."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.envs import TASKS, make_environment
from score_rl.envs.locomotion import Locomotion
from score_rl.errors import InputError

GYMNASIUM_MODULES = {
    "hopper": ("hopper_v4", "HopperEnv"),
    "halfcheetah": ("half_cheetah_v4", "HalfCheetahEnv"),
    "walker2d": ("walker2d_v4", "Walker2dEnv"),
}


def generators(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, number]) for number in range(count)]


def locomotion(task: str, slots: int, **options: Any) -> Locomotion:
    made = make_environment(task, slots, **options)
    assert isinstance(made, Locomotion)
    return made


@pytest.fixture
def gymnasium_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes Gymnasium's own v4 environment, which has the models and rewards that D4RL had."""
    if importlib.util.find_spec("imageio") is None:  # Gymnasium imports it for rendering only
        monkeypatch.setitem(sys.modules, "imageio", types.ModuleType("imageio"))
    monkeypatch.chdir(tmp_path)  # MuJoCo may write its log file here
    made = []

    def make(task: str) -> Any:
        module, name = GYMNASIUM_MODULES[task]
        made.append(getattr(importlib.import_module(f"gymnasium.envs.mujoco.{module}"), name)())
        return made[-1]

    yield make
    for environment in made:
        environment.close()


@pytest.mark.parametrize("task", TASKS)
def test_stock_physics_steps_as_gymnasium_does(task: str, gymnasium_task: Any) -> None:
    theirs, ours, only = gymnasium_task(task), locomotion(task, 1, physics="stock"), np.array([0])
    actor = np.random.default_rng(1)
    theirs.reset(seed=0)
    ends = 0
    for _ in range(150):
        qpos, qvel = theirs.data.qpos.copy(), theirs.data.qvel.copy()
        before = ours.set_state(only, qpos, qvel)
        np.testing.assert_array_equal(before[0], theirs._get_obs())
        theirs.set_state(qpos, qvel)
        action = actor.uniform(-1.3, 1.3, ours.action_dim)  # the control is clipped, its cost is not
        observation, reward, terminated, _, _ = theirs.step(action)
        step = ours.step(only, action[None])
        np.testing.assert_allclose(step.observations[0], observation, rtol=1e-12, atol=5e-12)
        np.testing.assert_allclose(step.rewards[0], reward, rtol=0, atol=1e-11)
        assert step.terminals[0] == terminated
        if terminated:
            ends += 1
            theirs.reset()
    assert (ends > 0) == (task != "halfcheetah")


@pytest.mark.parametrize("task", TASKS)
def test_starts_as_gymnasium_does_from_the_same_seed(task: str, gymnasium_task: Any) -> None:
    expected, _ = gymnasium_task(task).reset(seed=5)
    found = locomotion(task, 2).reset(np.array([1]), [np.random.default_rng(5)])
    np.testing.assert_allclose(found, expected[None], atol=1e-15)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("physics", "cap"), [("d4rl", 1.0), ("stock", 4.0 / 3.0)])
def test_masses(task: str, physics: str, cap: float) -> None:
    """A capsule's two half spheres have 4/3 of a radius of its cylinder; MuJoCo 2.0 counted one radius."""
    model = locomotion(task, 1, physics=physics).model
    radius, half_length = model.geom_size[:, 0], model.geom_size[:, 1]
    geom_mass = 1000.0 * np.pi * radius**2 * (2.0 * half_length + cap * radius)
    expected = np.bincount(model.geom_bodyid, geom_mass)[1:]
    if task == "halfcheetah":
        expected *= 14.0 / expected.sum()
    np.testing.assert_allclose(model.body_mass[1:], expected, rtol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_dimensions_and_bounds(task: str) -> None:
    environment = locomotion(task, 3)
    assert environment.observation_dim == TASKS[task].observation_dim
    assert environment.reset(np.arange(3), generators(3)).shape == (3, environment.observation_dim)
    np.testing.assert_array_equal(environment.action_low, -np.ones(environment.action_dim, np.float32))
    np.testing.assert_array_equal(environment.action_high, np.ones(environment.action_dim, np.float32))
    assert environment.action_low.dtype == np.float32
    assert environment.qpos.shape == environment.qvel.shape == (3, TASKS[task].positions)


def roll(environment: Locomotion, steps: int, parts: list[np.ndarray]) -> np.ndarray:
    """Final states after stepping all slots, part by part, with actions that depend on slot and step alone."""
    slots = np.arange(environment.slots)
    environment.reset(slots, generators(environment.slots))
    actor = np.random.default_rng(3)
    for _ in range(steps):
        actions = actor.uniform(-1, 1, (environment.slots, environment.action_dim))
        for part in parts:
            environment.step(part, actions[part])
    states = np.concatenate([environment.qpos, environment.qvel], axis=1)
    environment.close()
    return states


@pytest.mark.parametrize("task", TASKS)
def test_stepping_subsets_equals_stepping_all(task: str) -> None:
    whole = roll(locomotion(task, 7), 20, [np.arange(7)])
    parts = roll(locomotion(task, 7), 20, [np.array([5, 1]), np.array([], dtype=int), np.array([0, 2, 3, 4, 6])])
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_the_result(threads: int) -> None:
    alone = roll(locomotion("walker2d", 9, threads=1), 15, [np.arange(9)])
    np.testing.assert_array_equal(roll(locomotion("walker2d", 9, threads=threads), 15, [np.arange(9)]), alone)


def test_other_slots_stand_still() -> None:
    environment = locomotion("hopper", 4)
    environment.reset(np.arange(4), generators(4))
    before = environment.qpos.copy()
    environment.step(np.array([2]), np.ones((1, 3)))
    changed = (environment.qpos != before).any(axis=1)
    np.testing.assert_array_equal(changed, [False, False, True, False])


def test_results_come_in_the_order_of_the_slots_given() -> None:
    environment = locomotion("hopper", 3)
    environment.reset(np.arange(3), generators(3))
    step = environment.step(np.array([2, 0]), np.array([[1.0, 0, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(step.observations[:, :5], environment.qpos[[2, 0], 1:])
    assert not np.array_equal(step.observations[0], step.observations[1])


def test_observed_velocities_are_clipped_and_the_state_is_not() -> None:
    environment = locomotion("hopper", 1)
    qvel = np.array([[30.0, 0, 0, 0, -20.0, 0]])
    observed = environment.set_state(np.array([0]), environment.model.qpos0[None], qvel)
    np.testing.assert_array_equal(observed[0, 5:], np.clip(qvel[0], -10, 10))
    np.testing.assert_array_equal(environment.qvel, qvel)


def test_hopper_ends_on_an_extreme_velocity_that_its_observation_hides() -> None:
    environment = locomotion("hopper", 1)
    qvel = np.zeros((1, 6))
    qvel[0, 0] = 150.0
    environment.set_state(np.array([0]), environment.model.qpos0[None], qvel)
    step = environment.step(np.array([0]), np.zeros((1, 3)))
    assert np.abs(step.observations[0, 5:]).max() <= 10.0
    assert step.terminals[0]


def test_an_episode_times_out_after_1000_steps_and_a_reset_starts_anew() -> None:
    environment, slots = locomotion("halfcheetah", 2), np.arange(2)
    environment.reset(slots, generators(2))
    still = np.zeros((2, 6))
    for number in range(1, 1001):
        if number == 501:
            environment.reset(slots[1:], generators(1))
        step = environment.step(slots, still)
        assert not step.terminals.any()
        np.testing.assert_array_equal(step.timeouts, [number == 1000, False])


def test_wrong_action_shape_is_refused() -> None:
    environment = locomotion("hopper", 2)
    environment.reset(np.arange(2), generators(2))
    with pytest.raises(ValueError, match=r"\(2, 4\), expected \(2, 3\)"):
        environment.step(np.arange(2), np.zeros((2, 4)))


def test_unknown_physics() -> None:
    with pytest.raises(InputError, match="unknown physics 'stok': did you mean 'stock'"):
        make_environment("hopper", 1, physics="stok")


def test_loading_a_model_writes_no_log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for task in TASKS:
        locomotion(task, 1).close()
    assert list(tmp_path.iterdir()) == []
