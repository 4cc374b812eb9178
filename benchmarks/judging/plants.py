"""Three more simulated plants, of different character: each writes logs and knows what any policy truly earns.

tank         two coupled tanks; the level of the second is to follow a wanted one. Costs, and no terminals.
inventory    a store orders goods that arrive two days later; demand has seasons. Profits, and no terminals.
balance      a cart balances a pole by a force. One for each step that it stands; it falls, so there are terminals.

Logs come from a plain controller disturbed by noise that wanders. Everything follows from a seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from score_rl.data.dataset import Dataset, make_dataset

Policy = Callable[[np.ndarray], np.ndarray]  # (batch, observation) -> (batch, action), in the units of the logs
Rng = np.random.Generator


@dataclass(frozen=True)
class Plant:
    """Observations are the whole state. All episodes are stepped side by side."""

    name: str
    low: np.ndarray  # of the actions
    high: np.ndarray
    horizon: int
    noise: float  # of the logs, in half-ranges
    first: Callable[[Rng, int], np.ndarray]
    advance: Callable[[np.ndarray, np.ndarray, Rng], tuple[np.ndarray, np.ndarray, np.ndarray]]  # ..., reward, terminal
    behaviour: Policy


@dataclass(frozen=True)
class Played:
    """Episodes by steps."""

    states: np.ndarray  # (episodes, horizon + 1, observation)
    actions: np.ndarray
    rewards: np.ndarray  # 0 after the end
    terminals: np.ndarray
    lasts: np.ndarray  # whether the episode still goes on at that step

    @property
    def returns(self) -> np.ndarray:
        return np.asarray(self.rewards.sum(axis=1))


def play(plant: Plant, policy: Policy, episodes: int, seed: int, *, noise: float = 0.0) -> Played:
    """All policies that are played with one seed meet the same chances."""
    chance, disturbance = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    width, half = len(plant.low), (plant.high - plant.low) / 2
    state = plant.first(chance, episodes)
    states, going, wander = [state], np.ones(episodes, bool), np.zeros((episodes, width))
    rows: list[tuple[np.ndarray, ...]] = []
    for _ in range(plant.horizon):
        wander = 0.6 * wander + disturbance.normal(size=wander.shape) * noise * half
        actions = np.clip(np.asarray(policy(state), np.float64) + wander, plant.low, plant.high)
        following, rewards, terminals = plant.advance(state, actions, chance)
        rows.append((actions, rewards * going, terminals & going, going))
        going, state = going & ~terminals, following
        states.append(state)
    actions, rewards, terminals, lasts = (np.stack(column, axis=1) for column in zip(*rows, strict=True))
    return Played(np.stack(states, axis=1), actions, rewards, terminals, lasts)


def record(plant: Plant, episodes: int, seed: int) -> Dataset:
    """Logs of the plant's own controller."""
    played = play(plant, plant.behaviour, episodes, seed, noise=plant.noise)
    episode, step = np.nonzero(played.lasts)
    terminals = played.terminals[episode, step]
    ends = np.append(episode[1:] != episode[:-1], True)
    return make_dataset(
        plant.name,
        observations=played.states[episode, step],
        actions=played.actions[episode, step],
        rewards=played.rewards[episode, step],
        next_observations=played.states[episode, step + 1],
        terminals=terminals,
        timeouts=ends & ~terminals,
        action_bounds=(plant.low, plant.high),
    )


# -- tank: levels in cm, outflow by Torricelli's law --------------------------------------------------------------


def _tank_first(rng: Rng, number: int) -> np.ndarray:
    return np.column_stack([rng.uniform(5, 25, (number, 2)), rng.uniform(8, 22, number), rng.normal(0, 1, number)])


def _tank_advance(state: np.ndarray, actions: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second, wanted, leak = state.T
    pump, valve = actions.T
    through = valve * 1.1 * np.sqrt(np.maximum(first, 0))
    later_first = np.clip(first + 0.5 * (0.55 * pump - through) + 0.05 * rng.normal(size=len(first)), 0, 30)
    outflow = 0.5 * np.sqrt(np.maximum(second, 0)) + 0.2 * leak
    later_second = np.clip(second + 0.5 * (through - outflow) + 0.05 * rng.normal(size=len(first)), 0, 30)
    changes = rng.random(len(first)) < 0.02
    later_wanted = np.where(changes, rng.uniform(8, 22, len(first)), wanted)
    later_leak = 0.95 * leak + 0.3 * rng.normal(size=len(first))
    cost = 0.05 * (later_second - wanted) ** 2 + 0.02 * pump**2 + 0.5 * (later_first > 28)
    later = np.column_stack([later_first, later_second, later_wanted, later_leak])
    return later, -cost, np.zeros(len(first), bool)


def _tank_behaviour(observations: np.ndarray) -> np.ndarray:
    """Looks at the second level alone, with too much water in the first."""
    lacking = observations[:, 2] - observations[:, 1]
    return np.column_stack([4.5 + 0.25 * lacking, np.clip(0.5 + 0.02 * lacking, 0.1, 1.0)])


TANK = Plant("tank", np.array([0.0, 0.0]), np.array([10.0, 1.0]), 80, 0.25, _tank_first, _tank_advance, _tank_behaviour)

# -- inventory: pieces, and money of 100 --------------------------------------------------------------------------


def _inventory_first(rng: Rng, number: int) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi, number)
    pieces = rng.uniform(0, 80, (number, 3))
    return np.column_stack([pieces, np.full(number, 30.0), np.sin(angle), np.cos(angle)])


def _inventory_advance(state: np.ndarray, actions: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    stock, tomorrow, after, _, sine, cosine = state.T
    order = actions[:, 0]
    demand = rng.poisson(30 + 18 * sine).astype(float)
    sold = np.minimum(stock, demand)
    later_stock = stock - sold + tomorrow
    earned = 10 * sold - 5 * order - 0.4 * later_stock - 4 * (demand - sold)
    turn = 2 * np.pi / 30
    later_sine = sine * np.cos(turn) + cosine * np.sin(turn)
    later_cosine = cosine * np.cos(turn) - sine * np.sin(turn)
    later = np.column_stack([later_stock, after, order, demand, later_sine, later_cosine])
    return later, earned / 100, np.zeros(len(stock), bool)


def _inventory_behaviour(observations: np.ndarray) -> np.ndarray:
    """Fills up to one level, whatever the season."""
    return np.clip(150 - observations[:, :3].sum(axis=1), 0, 120)[:, None]


INVENTORY = Plant(
    "inventory", np.array([0.0]), np.array([120.0]), 60, 0.3, _inventory_first, _inventory_advance, _inventory_behaviour
)

# -- balance: metres, radians, seconds ----------------------------------------------------------------------------


def _balance_first(rng: Rng, number: int) -> np.ndarray:
    return rng.normal(0, (0.3, 0.1, 0.05, 0.1), (number, 4))


def _balance_advance(state: np.ndarray, actions: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place, speed, angle, turning = state.T
    force, step, length = 12 * actions[:, 0], 0.04, 0.5
    sine, cosine = np.sin(angle), np.cos(angle)
    pushed = (force + 0.1 * length * turning**2 * sine) / 1.1
    bending = (9.8 * sine - cosine * pushed) / (length * (4 / 3 - 0.1 * cosine**2 / 1.1))
    gaining = pushed - 0.1 * length * bending * cosine / 1.1
    gust = 0.15 * rng.normal(size=len(place))
    later = np.column_stack(
        [place + step * speed, speed + step * gaining, angle + step * turning, turning + step * bending + gust]
    )
    fallen = (np.abs(later[:, 2]) > 0.35) | (np.abs(later[:, 0]) > 2.4)
    reward = 1.0 - 0.15 * later[:, 0] ** 2 - 0.2 * actions[:, 0] ** 2
    return later, np.where(fallen, 0.0, reward), fallen


def _balance_behaviour(observations: np.ndarray) -> np.ndarray:
    """Holds the pole, and lets the cart drift."""
    return np.clip(observations @ np.array([0.02, 0.1, 2.2, 0.45]), -1, 1)[:, None]


BALANCE = Plant(
    "balance", np.array([-1.0]), np.array([1.0]), 150, 0.35, _balance_first, _balance_advance, _balance_behaviour
)
PLANTS: Mapping[str, Any] = {plant.name: plant for plant in (TANK, INVENTORY, BALANCE)}
