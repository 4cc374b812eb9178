"""Recording: the same rows whatever the machine, whole episodes, and no favour to short ones."""

from dataclasses import dataclass

import numpy as np
import pytest

from score_rl.data.collection.policies import SquashedGaussian, UniformActions, ladder_catalogue, ladder_policies
from score_rl.data.collection.recorder import Rows, collect
from score_rl.data.trajectories import split_trajectories
from score_rl.envs import TASKS, terminates
from score_rl.errors import InputError


def medium(task: str) -> SquashedGaussian:
    return ladder_policies(task, [ladder_catalogue()[task]["medium_step"]])[0]


def equal(first: Rows, second: Rows) -> bool:
    return all(np.array_equal(column, getattr(second, name)) for name, column in vars(first).items())


@pytest.mark.parametrize("task", TASKS)
def test_rows_follow_from_the_seed_and_from_nothing_else(task: str) -> None:
    policy = medium(task)
    first = collect(task, [(policy, 1500)], seed=1, threads=1)
    assert equal(first, collect(task, [(policy, 1500)], seed=1, threads=3))
    assert not np.array_equal(first.actions, collect(task, [(policy, 1500)], seed=2).actions)


def test_a_stream_does_not_depend_on_those_before_it() -> None:
    """Stream 1 is the same whatever stream 0 records: its episodes have generators of their own."""
    policy, uniform = medium("hopper"), UniformActions(3)
    one = collect("hopper", [(uniform, 300), (policy, 700)], seed=0).part(300, 1000)
    other = collect("hopper", [(policy, 500), (policy, 700)], seed=0).part(500, 1200)
    assert equal(one, other)


def test_episodes_are_whole_except_the_last() -> None:
    rows = collect("hopper", [(UniformActions(3), 5000)], seed=0)
    episodes = split_trajectories(rows.terminals | rows.timeouts)
    assert len(episodes) > 100
    assert rows.terminals[episodes[:-1, 1] - 1].all()  # a random hopper falls long before 1,000 steps
    assert rows.timeouts[-1] or rows.terminals[-1]
    assert not rows.timeouts[:-1].any()
    # Inside an episode each step starts where the one before it ended; a new episode starts near the home position.
    inside = ~(rows.terminals | rows.timeouts)[:-1]
    np.testing.assert_array_equal(rows.next_observations[:-1][inside], rows.observations[1:][inside])
    assert (np.abs(rows.qvel[episodes[:, 0]]) <= 5e-3).all()
    np.testing.assert_array_equal(terminates("hopper", rows.next_observations), rows.terminals)
    np.testing.assert_array_equal(rows.observations[:, :5], rows.qpos[:, 1:].astype(np.float32))


def test_running_together_records_what_running_in_turn_would() -> None:
    """The first rows of a long stream are the rows of a short one: which episodes are kept, and in which order,
    does not depend on how many run at once or on which of them end first."""
    long = collect("hopper", [(UniformActions(3), 6000)], seed=4)
    short = collect("hopper", [(UniformActions(3), 900)], seed=4)
    kept = int(split_trajectories(short.terminals | short.timeouts)[-1, 0])  # the last one may be cut
    assert equal(short.part(0, kept), long.part(0, kept))


def test_a_timeout_is_recorded_at_the_step_limit() -> None:
    rows = collect("halfcheetah", [(UniformActions(6), 2100)], seed=0)
    np.testing.assert_array_equal(np.flatnonzero(rows.timeouts), [999, 1999, 2099])
    assert not rows.terminals.any()


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="the seed -1 is negative"):
        collect("hopper", [(UniformActions(3), 10)], seed=-1)


def test_one_row() -> None:
    rows = collect("hopper", [(UniformActions(3), 1)], seed=0)
    assert len(rows) == 1
    assert rows.timeouts[0]


def test_progress_counts_every_row() -> None:
    seen: list[int] = []
    collect("hopper", [(UniformActions(3), 700), (UniformActions(3), 300)], seed=0, on_rows=seen.append)
    assert sum(seen) == 1000
    assert min(seen) >= 0


@dataclass(frozen=True)
class LongOrShort:
    """Falls at once in about half of the episodes, decided by the episode's own first noise."""

    action_dim: int = 3

    def draw(self, generator: np.random.Generator, steps: int) -> np.ndarray:
        return np.full((steps, 3), generator.random() < 0.5, dtype=np.float32)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where(noise > 0, np.float32(1.0), np.float32(0.0)), np.zeros(len(noise), np.float32)


def test_short_episodes_are_no_more_likely_to_be_kept() -> None:
    rows = collect("hopper", [(LongOrShort(), 4000)], seed=0)
    episodes = split_trajectories(rows.terminals | rows.timeouts)[:-1]
    lengths = episodes[:, 1] - episodes[:, 0]
    short = rows.actions[episodes[:, 0], 0] > 0
    assert lengths[short].mean() < 0.7 * lengths[~short].mean()
    assert 0.35 < short.mean() < 0.65


def test_log_probabilities_are_those_of_a_squashed_gaussian() -> None:
    policy = medium("walker2d")
    rows = collect("walker2d", [(policy, 400)], seed=0)
    hidden = rows.observations.astype(np.float64)
    for layer in ("fc0", "fc1"):
        weight, bias = policy.weights[layer]
        hidden = np.maximum(hidden @ weight.T + bias, 0.0)
    mean, log_std = (hidden @ policy.weights[k][0].T + policy.weights[k][1] for k in ("last_fc", "last_fc_log_std"))
    log_std = np.clip(log_std, -5.0, 2.0)
    inside = (np.abs(rows.actions) < 0.99).all(axis=1)
    before = np.arctanh(rows.actions[inside].astype(np.float64))
    noise = (before - mean[inside]) / np.exp(log_std[inside])
    density = -0.5 * noise**2 - log_std[inside] - 0.5 * np.log(2 * np.pi)
    expected = (density - np.log1p(-np.square(rows.actions[inside], dtype=np.float64))).sum(axis=1)
    assert inside.sum() > 100
    np.testing.assert_allclose(rows.action_log_probs[inside], expected, atol=5e-3)


def test_uniform_actions_fill_the_box_evenly() -> None:
    rows = collect("halfcheetah", [(UniformActions(6), 3000)], seed=0)
    counts = np.histogram(rows.actions, bins=10, range=(-1, 1))[0]
    assert counts.sum() == 18_000
    assert np.abs(counts - 1800).max() < 6 * np.sqrt(1800 * 0.9)
    np.testing.assert_allclose(rows.action_log_probs, -6 * np.log(2), rtol=1e-6)
