"""How recorded rewards are counted, against sums done by hand."""

import numpy as np
import pytest

from score_rl.data.dataset import Dataset, make_dataset
from score_rl.judge.evidence import FEW, PIECES, Evidence, bootstrap_units, in_pieces

G = 0.5


def recording(lengths: list[int], terminal_rows: tuple[int, ...] = (), rewards: list[float] | None = None) -> Dataset:
    rows = sum(lengths)
    ends = np.zeros(rows)
    ends[np.cumsum(lengths) - 1] = 1
    terminals = np.zeros(rows)
    terminals[list(terminal_rows)] = 1
    return make_dataset(
        "short",
        observations=np.arange(rows, dtype=float)[:, None],
        actions=np.zeros((rows, 1)),
        rewards=np.arange(1.0, rows + 1) if rewards is None else np.array(rewards),
        next_observations=np.arange(1.0, rows + 1)[:, None],
        terminals=terminals,
        trajectory_ends=ends,
    )


def test_a_recording_that_stopped_is_averaged_over_its_own_time() -> None:
    evidence = Evidence(recording([2, 3]), G)
    np.testing.assert_allclose(evidence.earned, [1 + G * 2, 3 + G * 4 + G**2 * 5])
    np.testing.assert_allclose(evidence.time, [1 + G, 1 + G + G**2])
    assert evidence.recorded_value() == pytest.approx((2 + 3 + 2 + 1.25) / (1.5 + 1.75))


def test_after_a_terminal_nothing_is_earned_for_ever() -> None:
    evidence = Evidence(recording([2, 3], terminal_rows=(1,)), G)
    np.testing.assert_allclose(evidence.time, [1 / (1 - G), 1 + G + G**2])
    assert evidence.ended.tolist() == [True, False]


def test_rows_behind_a_terminal_inside_a_trajectory_do_not_count() -> None:
    evidence = Evidence(recording([2, 4], terminal_rows=(3, 5)), G)
    assert evidence.lengths.tolist() == [2, 2]
    assert evidence.counts.tolist() == [True] * 4 + [False] * 2
    np.testing.assert_allclose(evidence.earned, [2, 3 + G * 4])
    np.testing.assert_allclose(evidence.time, [1.5, 1 / (1 - G)])


def test_a_recording_in_one_go_is_cut_into_pieces_of_a_horizon_or_more() -> None:
    whole = recording([1000])
    cut = in_pieces(whole, 0.99)
    lengths = np.diff(cut.trajectories, axis=1)[:, 0]
    assert lengths.min() >= 100
    assert len(lengths) == 10
    assert cut.trajectories[0, 0] == 0
    assert cut.trajectories[-1, 1] == 1000
    assert len(in_pieces(recording([1000]), 0.9).trajectories) == PIECES
    assert len(in_pieces(recording([30]), 0.99).trajectories) == 1, "shorter than a horizon"


def test_many_trajectories_are_left_alone() -> None:
    many = recording([200] * FEW)
    assert in_pieces(many, 0.9) is many


def test_there_is_always_enough_to_draw_a_bootstrap_sample_from() -> None:
    assert len(np.unique(bootstrap_units(recording([1000])))) == PIECES
    many = recording([3] * 50)
    np.testing.assert_array_equal(bootstrap_units(many), np.repeat(np.arange(50), 3))
    units = bootstrap_units(recording([500, 10]))
    assert not set(units[:500]) & set(units[500:]), "no unit holds rows of two trajectories"
