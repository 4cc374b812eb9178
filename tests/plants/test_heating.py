"""The simulated plant: other tests rely on what it promises."""

from pathlib import Path

import numpy as np

from tests.plants import heating


def test_logs_follow_from_the_seed() -> None:
    first, again, other = heating.record(20, seed=3), heating.record(20, seed=3), heating.record(20, seed=4)
    for name, values in first.table().items():
        np.testing.assert_array_equal(values, again.table()[name])
    assert not np.array_equal(first.observations[:100], other.observations[:100])


def test_episodes_have_the_promised_lengths_and_actions_their_bounds() -> None:
    logs = heating.record(200)
    lengths = np.bincount(logs.episode)
    assert len(lengths) == 200
    assert lengths.min() >= heating.SHORTEST
    assert lengths.max() <= heating.LONGEST
    assert (logs.actions >= heating.ACTION_LOW).all()
    assert (logs.actions <= heating.ACTION_HIGH).all()
    span = logs.actions.max(axis=0) - logs.actions.min(axis=0)
    assert (span > 0.8 * (heating.ACTION_HIGH - heating.ACTION_LOW)).all()


def test_next_observations_are_those_of_the_following_row() -> None:
    logs = heating.record(20)
    inside = ~logs.ends
    np.testing.assert_array_equal(logs.next_observations[inside], logs.observations[1:][inside[:-1]])


def test_returns_rank_the_controllers_and_agree_with_the_logs() -> None:
    good, behaviour, poor = (heating.returns(p).mean() for p in (heating.good, heating.behaviour, heating.poor))
    assert good > behaviour + 20 > poor + 40
    logs = heating.record(200, seed=1, noise=0.0)
    recorded = np.bincount(logs.episode, logs.rewards)
    np.testing.assert_allclose(recorded, heating.returns(heating.behaviour, 200, seed=1), atol=1e-3)


def test_the_csv_holds_the_table_in_the_order_asked_for(tmp_path: Path) -> None:
    logs = heating.record(3)
    order = np.random.default_rng(0).permutation(len(logs))
    read = np.genfromtxt(heating.write_csv(tmp_path / "logs.csv", logs, order), delimiter=",", names=True)
    for name, values in logs.table().items():
        np.testing.assert_allclose(read[name], values[order], atol=1e-9)
