"""Names, normalised scores and the rules by which tasks end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.envs import TASKS, normalised_score, task_of, terminates


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("hopper", "hopper"),
        ("hopper-medium-v2", "hopper"),
        ("replica:walker2d-medium-replay", "walker2d"),
        ("d4rl:halfcheetah-random-v2", "halfcheetah"),
        ("Hopper-v5", None),
        ("hoppers", None),
        ("Pendulum-v1", None),
        ("", None),
    ],
)
def test_task_of_a_name(name: str, task: str | None) -> None:
    assert task_of(name) == task


def test_normalised_score_is_0_at_random_and_100_at_expert() -> None:
    for task in TASKS.values():
        ends = normalised_score(task.name, np.array([task.random_return, task.expert_return]))
        assert ends == pytest.approx(np.array([0.0, 100.0]))


def test_normalised_score_of_a_published_mean() -> None:
    score = normalised_score("hopper-medium-v2", np.array([1422.056]))
    assert score == pytest.approx(np.array([44.32]), abs=0.01)


def test_no_reference_no_score() -> None:
    assert normalised_score("Pendulum-v1", np.zeros(3)) is None


def observation(task: str, height: float, angle: float, others: float = 0.0) -> np.ndarray:
    return np.array([height, angle, *[others] * (TASKS[task].observation_dim - 2)])


@pytest.mark.parametrize(
    ("task", "height", "angle", "others", "ends"),
    [
        ("hopper", 1.2, 0.0, 0.0, False),
        ("hopper", 0.7, 0.0, 0.0, True),
        ("hopper", 1.2, 0.2, 0.0, True),
        ("hopper", 1.2, -0.2, 0.0, True),
        ("hopper", 1.2, 0.0, 100.0, True),
        ("hopper", 1.2, 0.0, np.nan, True),
        ("walker2d", 1.2, 0.9, 500.0, False),
        ("walker2d", 0.8, 0.0, 0.0, True),
        ("walker2d", 2.0, 0.0, 0.0, True),
        ("walker2d", 1.2, -1.0, 0.0, True),
        ("walker2d", np.nan, 0.0, 0.0, True),
        ("halfcheetah", -5.0, 9.0, 500.0, False),
    ],
)
def test_where_a_task_ends(task: str, height: float, angle: float, others: float, ends: bool) -> None:
    assert bool(terminates(task, observation(task, height, angle, others))) is ends


@pytest.mark.parametrize("task", TASKS)
def test_the_rule_is_the_same_in_numpy_and_compiled_jax(task: str) -> None:
    generator = np.random.default_rng(0)
    observations = generator.normal(0.6, 0.6, (4, 50, TASKS[task].observation_dim)).astype(np.float32)
    compiled = jax.jit(lambda values: terminates(task, values))(jnp.asarray(observations))
    expected = terminates(task, observations)
    assert expected.shape == (4, 50)
    assert expected.dtype == bool
    np.testing.assert_array_equal(np.asarray(compiled), expected)


def test_no_rule_for_an_unknown_task() -> None:
    with pytest.raises(ValueError, match="Pendulum"):
        terminates("Pendulum-v1", np.zeros(3))
