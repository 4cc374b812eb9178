"""Judging in groups gives what judging all together gives; threads share the cores."""

import threading
import time
from collections.abc import Callable
from typing import Any, Never

import numpy as np
import pytest

from score_rl.envs.interface import Environment
from score_rl.rollout import episodes as rollouts
from score_rl.rollout.episodes import Judgement, episode_generators, judge, judge_in_groups, policy_groups

POLICIES, EPISODES = 5, 3


def generators() -> list[list[np.random.Generator]]:
    return [episode_generators(f"policy {n}", 0, EPISODES) for n in range(POLICIES)]


def act_of(group: Any) -> Callable[..., Any]:
    """Linear policies, each its own."""
    weights = np.stack([np.random.default_rng(n).normal(size=(11, 3)) for n in range(POLICIES)])[group]
    return lambda observations: np.tanh(observations @ weights).astype(np.float32)


def test_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    together = judge("hopper", act_of(slice(None)), generators())
    monkeypatch.setattr(rollouts, "EPISODES_PER_GROUP", 5)
    for threads in (1, 2, 3):
        apart = judge_in_groups("hopper", act_of, generators(), threads=threads)
        np.testing.assert_array_equal(apart.lengths, together.lengths)
        np.testing.assert_allclose(apart.returns, together.returns, rtol=1e-9)
    assert len(set(together.lengths.flatten())) > 1


@pytest.mark.parametrize(
    ("policies", "episodes", "cores", "number"),
    [(1, 10, 16, 1), (15, 10, 16, 3), (15, 10, 2, 2), (75, 10, 16, 16), (75, 10, 4, 4), (3, 100, 16, 3)],
)
def test_groups_cover_every_policy_once_and_are_even(policies: int, episodes: int, cores: int, number: int) -> None:
    groups = policy_groups(policies, episodes, cores)
    sizes = [group.stop - group.start for group in groups]
    assert len(groups) == number
    assert [n for group in groups for n in range(group.start, group.stop)] == list(range(policies))
    assert max(sizes) - min(sizes) <= 1


def test_threads_of_all_groups_together_are_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "EPISODES_PER_GROUP", 5)
    seen = []
    real = rollouts.make_environment

    def watched(*arguments: Any, threads: int, **options: Any) -> Environment:
        seen.append(threads)
        return real(*arguments, threads=threads, **options)

    monkeypatch.setattr(rollouts, "make_environment", watched)
    judge_in_groups("hopper", act_of, generators(), threads=8)
    assert sorted(seen) == [2, 3, 3]


def test_a_failing_group_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "EPISODES_PER_GROUP", 5)

    def broken(group: Any) -> Callable[..., Any]:
        if group.start == 0:  # not the first: what is told must be the cause all the same
            return act_of(group)

        def fail(observations: np.ndarray) -> Never:
            raise RuntimeError("the policy is broken")

        return fail

    slow = lambda group: lambda observations: (time.sleep(0.05), broken(group)(observations))[1]  # noqa: E731
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="the policy is broken"):
        judge_in_groups("hopper", slow, generators(), threads=3)
    assert time.monotonic() - began < 5
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("episodes")]


def test_stopping_reaches_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "EPISODES_PER_GROUP", 5)
    asked = iter(range(10))
    with pytest.raises(InterruptedError):
        judge_in_groups("hopper", act_of, generators(), threads=3, stop=lambda: next(asked, 10) >= 9)


@pytest.mark.parametrize("with_noise", [False, True])
def test_environments_of_which_few_can_be_made_play_in_rounds(
    with_noise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    real = rollouts.make_environment

    def watched(name: str, slots: int, **options: Any) -> Environment:
        made.append(slots)
        return real(name, slots, **options)

    def act(observations: np.ndarray) -> np.ndarray:
        assert observations.shape[-1] == 3 + with_noise
        return np.tanh(observations.sum(axis=-1, keepdims=True) * np.arange(1, POLICIES + 1)[:, None, None])

    monkeypatch.setattr(rollouts, "make_environment", watched)
    together = judge("Pendulum-v1", act, generators(), with_noise=with_noise)
    rounds = judge("gymnasium:Pendulum-v1", act, generators(), with_noise=with_noise)
    assert made == [POLICIES * EPISODES, POLICIES]
    np.testing.assert_array_equal(rounds.returns, together.returns)
    assert len(set(together.returns.flatten())) == POLICIES * EPISODES
    assert not together.measures_success
    assert together.scores() is None


def test_success_is_the_score_where_it_is_measured() -> None:
    zeros = np.zeros((1, 4))
    judgement = Judgement("hopper", zeros, zeros.astype(int), np.array([[1.0, 0, 1, 1]]))
    assert judgement.summary(0)["success"] == judgement.summary(0)["score"] == 75
    silent = Judgement("hopper", zeros, zeros.astype(int), np.full((1, 4), np.nan))
    assert "success" not in silent.summary(0)
    assert silent.summary(0)["score"] == pytest.approx(0.627, abs=0.01)  # hopper's normalised score of a return of 0
