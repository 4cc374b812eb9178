"""The plants that choices are measured on: what the measurement relies on."""

import numpy as np
import pytest

from benchmarks.judging.plants import BALANCE, INVENTORY, PLANTS, TANK, Plant, play, record

BETTER = {
    "tank": lambda s: np.column_stack(
        [3 + (s[:, 2] - s[:, 1]) + 0.15 * s[:, 2] - 0.1 * (s[:, 0] - 8), 0.6 + 0.1 * (s[:, 2] - s[:, 1])]
    ),
    "inventory": lambda s: 100 + 45 * np.sin(np.arctan2(s[:, 4], s[:, 5]) + 0.5)[:, None] - s[:, :3].sum(1)[:, None],
    "balance": lambda s: (s @ np.array([0.15, 0.25, 3.0, 0.6]))[:, None],
}


@pytest.mark.parametrize("plant", [TANK, INVENTORY, BALANCE], ids=lambda plant: plant.name)
def test_logs_are_as_good_as_their_controller_and_can_be_bettered(plant: Plant) -> None:
    logs = record(plant, 100, seed=0)
    returns, _ = logs.returns()
    noisy = play(plant, plant.behaviour, 200, 1, noise=plant.noise).returns.mean()
    assert returns.mean() == pytest.approx(noisy, rel=0.25)
    middle = (plant.low + plant.high) / 2
    ruined = play(plant, lambda seen: np.tile(middle, (len(seen), 1)), 100, 1).returns.mean()
    better = play(plant, BETTER[plant.name], 100, 1).returns.mean()
    assert better > noisy > ruined
    assert (logs.actions >= plant.low).all()
    assert (logs.actions <= plant.high).all()


def test_the_same_seed_gives_the_same_logs() -> None:
    for plant in PLANTS.values():
        np.testing.assert_array_equal(record(plant, 5, 3).observations, record(plant, 5, 3).observations)
        assert not np.array_equal(record(plant, 5, 3).observations[:5], record(plant, 5, 4).observations[:5])


def test_nothing_is_earned_after_a_fall_and_only_balance_falls() -> None:
    played = play(BALANCE, BALANCE.behaviour, 50, 0, noise=BALANCE.noise)
    fallen = played.terminals.any(axis=1)
    assert fallen.any()
    assert (played.rewards[~played.lasts] == 0).all()
    assert record(BALANCE, 50, 0).terminals.sum() == fallen.sum()
    assert not record(TANK, 20, 0).terminals.any()
    assert not record(INVENTORY, 20, 0).terminals.any()
