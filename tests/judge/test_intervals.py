"""Intervals hold the truth as often as they say, and differences are taken in pairs."""

import numpy as np
import pytest

from score_rl.judge.intervals import RESAMPLES, from_resamples, of_members, trajectory_counts


def test_nine_of_ten_intervals_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for trial in range(300):
        sample = rng.normal(2.0, 1.0, (2, 1, 40))
        sample[1] += 1.0
        policy, behaviour = of_members(sample, seed=trial)
        inside += policy.low < 2.0 < policy.high
        assert policy.difference == pytest.approx(policy.value - behaviour.value)
    assert 0.83 < inside / 300 < 0.95


def test_what_all_trajectories_share_cancels_in_differences() -> None:
    shared = np.random.default_rng(0).normal(0, 10, 30)
    policy, behaviour = of_members(np.stack([shared + 0.5, shared])[:, None])
    assert policy.high - policy.low > 4
    assert [policy.difference_low, policy.difference_high] == pytest.approx([0.5, 0.5])
    assert (policy.sign, behaviour.sign) == (1, 0)


def test_members_that_disagree_widen_the_interval_and_the_least_is_pessimistic() -> None:
    values = np.zeros((2, 4, 10))
    values[0] = np.arange(4.0)[:, None]
    plain, _ = of_members(values)
    least, _ = of_members(values, pessimistic=True)
    assert (plain.value, plain.low, plain.high) == pytest.approx((1.5, 0.0, 3.0))
    assert plain.sign == 0
    assert (least.value, least.low, least.high) == (0.0, 0.0, 0.0)


def test_a_single_trajectory_has_the_spread_of_the_members_alone() -> None:
    policy, _ = of_members(np.arange(6.0).reshape(2, 3, 1))
    assert (policy.low, policy.high) == (0.0, 2.0)


def test_resamples_draw_as_many_trajectories_as_there_are() -> None:
    counts = trajectory_counts(7)
    assert counts.shape == (RESAMPLES, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(1, abs=0.2)
    assert counts.max() > 1


def test_an_interval_that_leaves_out_0_has_a_sign() -> None:
    drawn = np.stack([np.linspace(1, 2, 101), np.zeros(101)], axis=1)
    above, _ = from_resamples(np.array([1.5, 0.0]), drawn)
    below, _ = from_resamples(np.array([-1.5, 0.0]), -drawn)
    assert (above.sign, below.sign) == (1, -1)
