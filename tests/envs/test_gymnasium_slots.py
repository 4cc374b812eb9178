"""Gymnasium environments through the slot interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from score_rl.envs import make_environment
from score_rl.envs.gymnasium_slots import DEFAULT_MAX_STEPS
from score_rl.errors import InputError


class Walk(gymnasium.Env):  # type: ignore[misc]
    """Counts its steps in its observation; a positive action ends the task."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.start, self.count = self.np_random.uniform(), 0
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return self._observe(), float(action[0]), bool(action[0] > 0), False, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.start, self.count], dtype=np.float32)


class Solvable(Walk):
    """Says from the third step on that it is solved."""

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, ended, truncated, _ = super().step(action)
        return observation, reward, ended, truncated, {"success": self.count >= 3}


class Unbounded(Walk):
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class NeedsMissingPackage(Walk):
    def __init__(self) -> None:
        raise gymnasium.error.DependencyNotInstalled("no such engine")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    environments = {
        "Walk": Walk,
        "Solvable": Solvable,
        "Unbounded": Unbounded,
        "NeedsMissingPackage": NeedsMissingPackage,
    }
    for name, made in environments.items():
        gymnasium.register(f"score_rl_tests/{name}-v0", entry_point=made)
    yield
    for name in environments:
        gymnasium.registry.pop(f"score_rl_tests/{name}-v0")


def generators(*seeds: int) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in seeds]


def test_pendulum_has_its_own_bounds_and_limit() -> None:
    environment = make_environment("Pendulum-v1", 3)
    assert (environment.observation_dim, environment.action_dim, environment.max_steps) == (3, 1, 200)
    np.testing.assert_array_equal(environment.action_low, [-2.0])
    np.testing.assert_array_equal(environment.action_high, [2.0])
    environment.close()


def test_pendulum_steps_as_gymnasium_steps_it() -> None:
    environment, slots = make_environment("Pendulum-v1", 2), np.arange(2)
    observations = environment.reset(slots, generators(1, 2))
    assert observations.dtype == np.float64
    alone = gymnasium.make("Pendulum-v1")
    expected, _ = alone.reset(seed=int(np.random.default_rng(2).integers(2**31)))
    np.testing.assert_array_equal(observations[1], expected)
    for number in range(1, 201):
        actions = np.full((2, 1), 2.0 * np.sin(number))
        step = environment.step(slots, actions)
        expected, reward, _, truncated, _ = alone.step(actions[1].astype(np.float32))
        np.testing.assert_array_equal(step.observations[1], expected)
        assert step.rewards[1] == reward
        assert step.timeouts[1] == truncated == (number == 200)
        assert not step.terminals.any()
    environment.close()
    alone.close()


def test_subsets_are_stepped_and_reset_on_their_own() -> None:
    environment = make_environment("score_rl_tests/Walk-v0", 3)
    start = environment.reset(np.arange(3), generators(0, 1, 2))
    for _ in range(4):
        environment.step(np.array([2, 0]), -np.ones((2, 1)))
    step = environment.step(np.array([0, 1]), np.array([[0.5], [-0.5]]))
    np.testing.assert_array_equal(step.observations[:, 1], [5, 1])
    np.testing.assert_array_equal(step.terminals, [True, False])
    np.testing.assert_array_equal(step.rewards, [0.5, -0.5])
    again = environment.reset(np.array([0]), generators(2))
    np.testing.assert_array_equal(again[0], start[2])  # the same generator gives the same start in any slot
    step = environment.step(np.arange(3), -np.ones((3, 1)))
    np.testing.assert_array_equal(step.observations[:, 1], [1, 2, 5])
    assert environment.reset(np.array([], dtype=int), []).shape == (0, 2)
    environment.close()


def test_an_environment_without_a_limit_gets_one() -> None:
    environment = make_environment("score_rl_tests/Walk-v0", 1)
    assert environment.max_steps == DEFAULT_MAX_STEPS
    environment.reset(np.array([0]), generators(0))
    ends = [environment.step(np.array([0]), -np.ones((1, 1))).timeouts[0] for _ in range(DEFAULT_MAX_STEPS)]
    assert ends == [False] * (DEFAULT_MAX_STEPS - 1) + [True]
    environment.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Pendulm-v1", "unknown environment 'Pendulm-v1': did you mean 'Pendulum-v1'"),
        ("hoper", "did you mean .*'hopper'"),
        ("no_such_module:Thing-v0", "needs the module .no_such_module., which is neither installed nor in"),
        ("CartPole-v1", r"action space Discrete\(2\), but only one-dimensional boxes"),
        ("score_rl_tests/Unbounded-v0", "unbounded actions"),
        ("score_rl_tests/NeedsMissingPackage-v0", "not installed .no such engine"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_environment(name, 1)


def test_success_is_told_where_the_environment_tells_it() -> None:
    solvable, walk = (make_environment(f"score_rl_tests/{name}-v0", 2) for name in ("Solvable", "Walk"))
    both, told = np.arange(2), []
    for environment in (solvable, walk):
        environment.reset(both, generators(0, 1))
    for slots in (both, both, both[:1], both):  # the second stands still once
        step = solvable.step(slots, np.full((len(slots), 1), -1.0))
        assert step.successes is not None
        told.append(step.successes.tolist())
        assert walk.step(slots, np.full((len(slots), 1), -1.0)).successes is None
    assert told == [[False, False], [False, False], [True], [True, True]]


def test_a_name_can_say_which_module_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "score_rl_tests/ByModule-v0"
    text = f"import gymnasium\ngymnasium.register({name!r}, entry_point='gymnasium.envs.classic_control:PendulumEnv')\n"
    (tmp_path / "knows_it.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="unknown environment"):
        make_environment(name, 1)
    assert make_environment(f"knows_it:{name}", 1).observation_dim == 3
    with pytest.raises(InputError, match="neither installed nor in"):
        make_environment(f"knows_nothing:{name}", 1)
    gymnasium.registry.pop(name)
