"""A heating control, and logs of it as a plant would keep them.

A room is heated through a valve and a pump. Six columns are measured: four temperatures and the wanted one in °C, and
the flow in l/h, which is a hundred times as large. Each row stands for 15 minutes. Two actions have bounds that are far
from ±1: the valve in [0, 250] steps of its motor, the pump in [600, 2400] turns per minute.

The reward of a step is minus a cost: discomfort, heat and electricity. An episode lasts 20 to 96 steps, a part of a
day. It ends because the recording stops, so there are no terminals. The logs come from a proportional controller that
heats too much, pumps too fast and is disturbed by noise. The optimum is far from it. `returns` says what any policy
truly earns.

Everything follows from a seed. Policies that are judged with one seed meet the same weather.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Policy = Callable[[np.ndarray], np.ndarray]  # (batch, 6) observations in the units of the logs -> (batch, 2) actions

OBSERVATIONS = ("temp_room", "temp_wall", "temp_supply", "temp_outside", "temp_wanted", "flow")
ACTIONS = ("valve", "pump")
UNITS: Mapping[str, str] = {
    "temp_room": "°C",
    "temp_wall": "°C",
    "temp_supply": "°C",
    "temp_outside": "°C",
    "temp_wanted": "°C",
    "flow": "l/h",
    "valve": "steps",
    "pump": "rpm",
}
ACTION_LOW, ACTION_HIGH = np.array([0.0, 600.0]), np.array([250.0, 2400.0])
SHORTEST, LONGEST = 20, 96  # steps of an episode
MINUTES = 15  # between two rows
DAY, NIGHT = 21.0, 17.0  # wanted temperatures
ROOM, WALL, SUPPLY, OUTSIDE, WANTED, FLOW = range(6)


@dataclass(frozen=True)
class Logs:
    """Rows in recording order: episode after episode, each in the order of time."""

    episode: np.ndarray  # the number of the episode of each row
    minute: np.ndarray  # since the beginning of the episode
    observations: np.ndarray  # (rows, 6)
    actions: np.ndarray  # (rows, 2)
    rewards: np.ndarray
    next_observations: np.ndarray  # (rows, 6); also after the last row of an episode, which the table does not have

    def __len__(self) -> int:
        return len(self.rewards)

    def table(self) -> dict[str, np.ndarray]:
        """The columns that a plant keeps: trip, t, the observations, the actions, r."""
        observed = {name: self.observations[:, number] for number, name in enumerate(OBSERVATIONS)}
        acted = {name: self.actions[:, number] for number, name in enumerate(ACTIONS)}
        return {"trip": self.episode, "t": self.minute, **observed, **acted, "r": self.rewards}

    @property
    def ends(self) -> np.ndarray:
        """The last row of each episode."""
        return np.append(self.episode[1:] != self.episode[:-1], True)


def record(episodes: int = 200, seed: int = 0, policy: Policy | None = None, noise: float = 1.0) -> Logs:
    """Logs of a policy that `noise` disturbs; of the plant's own controller unless another is given."""
    played = _play(policy or behaviour, episodes, seed, noise)
    trip, step = np.nonzero(played.lasts)
    return Logs(
        episode=trip,
        minute=step * MINUTES,
        observations=np.round(played.observations[trip, step], 3),
        actions=np.round(played.actions[trip, step], 2),
        rewards=np.round(played.rewards[trip, step], 5),
        next_observations=np.round(played.observations[trip, step + 1], 3),
    )


def returns(policy: Policy, episodes: int = 200, seed: int = 1, *, discount: float = 1.0) -> np.ndarray:
    """What each of so many episodes truly earns by the policy, its actions clipped to their bounds."""
    played = _play(policy, episodes, seed, noise=0.0)
    weights = discount ** np.arange(LONGEST)
    return np.asarray((played.rewards * played.lasts * weights).sum(axis=1))


def write_csv(path: Path, logs: Logs, order: Sequence[int] | np.ndarray | None = None) -> Path:
    """The table as text, with its rows in another order if one is given."""
    table = logs.table()
    rows = np.column_stack(list(table.values()))[slice(None) if order is None else np.asarray(order)]
    formats = ["%d", "%d", *["%.3f"] * len(OBSERVATIONS), *["%.2f"] * len(ACTIONS), "%.5f"]
    np.savetxt(path, rows, fmt=formats, delimiter=",", header=",".join(table), comments="")
    return path


def controller(gain: float, offset: float, pump: float) -> Policy:
    """A valve that opens with what the room lacks and with the cold outside, and a pump that runs at one speed."""

    def act(observations: np.ndarray) -> np.ndarray:
        lacking = observations[:, WANTED] - observations[:, ROOM]
        cold = observations[:, WANTED] - observations[:, OUTSIDE]
        valve = offset + gain * lacking + 4.0 * cold
        return clipped(np.column_stack([valve, np.full(len(valve), pump)]))

    return act


def clipped(actions: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(actions, ACTION_LOW, ACTION_HIGH))


behaviour = controller(gain=25.0, offset=60.0, pump=1900.0)  # what wrote the logs: too warm, and pumps too fast
good = controller(gain=100.0, offset=45.0, pump=1000.0)
poor = controller(gain=5.0, offset=110.0, pump=2300.0)  # hardly looks at the room


@dataclass(frozen=True)
class _Played:
    observations: np.ndarray  # (episodes, LONGEST + 1, 6)
    actions: np.ndarray  # (episodes, LONGEST, 2)
    rewards: np.ndarray  # (episodes, LONGEST)
    lasts: np.ndarray  # (episodes, LONGEST): whether the episode still goes on at that step


def _play(policy: Policy, episodes: int, seed: int, noise: float) -> _Played:
    """All episodes side by side, one step after the other."""
    weather, disturbance = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    lengths = weather.integers(SHORTEST, LONGEST + 1, episodes)
    observations = np.empty((episodes, LONGEST + 1, len(OBSERVATIONS)))
    actions = np.empty((episodes, LONGEST, len(ACTIONS)))
    rewards = np.empty((episodes, LONGEST))
    state = observations[:, 0] = _first(weather, episodes)
    wander = np.zeros((episodes, len(ACTIONS)))
    for step in range(LONGEST):
        wander = 0.7 * wander + disturbance.normal(size=wander.shape) * noise * (20.0, 220.0)
        actions[:, step] = clipped(np.asarray(policy(state), np.float64) + wander)
        state, rewards[:, step] = _advance(state, actions[:, step], weather)
        observations[:, step + 1] = state
    return _Played(observations, actions, rewards, np.arange(LONGEST) < lengths[:, None])


def _first(weather: np.random.Generator, episodes: int) -> np.ndarray:
    state = np.empty((episodes, len(OBSERVATIONS)))
    state[:, ROOM] = weather.normal(19.0, 1.5, episodes)
    state[:, WALL] = state[:, ROOM] - weather.uniform(0.0, 2.0, episodes)
    state[:, SUPPLY] = weather.uniform(30.0, 50.0, episodes)
    state[:, OUTSIDE] = weather.normal(4.0, 4.0, episodes)
    state[:, WANTED] = np.where(weather.random(episodes) < 0.6, DAY, NIGHT)
    state[:, FLOW] = weather.uniform(1200.0, 2800.0, episodes)
    return state


def _advance(state: np.ndarray, actions: np.ndarray, weather: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The state 15 minutes later, and what these minutes cost."""
    valve, pump = actions.T
    later = np.empty_like(state)
    later[:, SUPPLY] = state[:, SUPPLY] + 0.6 * (25.0 + 0.2 * valve - state[:, SUPPLY])
    later[:, FLOW] = state[:, FLOW] + 0.7 * (1.3 * pump - state[:, FLOW])
    heat = (later[:, SUPPLY] - state[:, ROOM]) * later[:, FLOW] / (later[:, FLOW] + 1500.0)
    noise = weather.normal(size=(3, len(state)))
    later[:, ROOM] = (
        state[:, ROOM]
        + 0.06 * heat
        + 0.15 * (state[:, WALL] - state[:, ROOM])
        + 0.05 * (state[:, OUTSIDE] - state[:, ROOM])
        + 0.05 * noise[0]
    )
    later[:, WALL] = state[:, WALL] + 0.05 * (state[:, ROOM] - state[:, WALL]) + 0.02 * noise[1]
    later[:, OUTSIDE] = state[:, OUTSIDE] + 0.02 * (4.0 - state[:, OUTSIDE]) + 0.3 * noise[2]
    switches = weather.random(len(state)) < 0.03
    later[:, WANTED] = np.where(switches, DAY + NIGHT - state[:, WANTED], state[:, WANTED])
    discomfort = np.square(later[:, ROOM] - state[:, WANTED])
    cost = 0.3 * discomfort + 0.01 * heat + 0.6 * (pump / 2400.0) ** 3
    return later, -cost
