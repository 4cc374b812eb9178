"""The data sets that the judge is measured on: recorded behaviour, and a way to learn what any policy truly earns."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.sources.replica import KINDS
from score_rl.envs import make_environment
from tests.plants import heating

from .plants import PLANTS, Plant, record
from .truth import Truth, by_processes, in_environment, in_heating, in_plant

EPISODES = 200  # of the logs of a plant
Controller = Callable[[np.ndarray], np.ndarray]  # (batch, observation) -> (batch, action)


@dataclasses.dataclass(frozen=True)
class TrustSet:
    """One data set, and how policies trained on it are played."""

    name: str
    load: Callable[[int | None], Dataset]  # given a number of rows, where that can be chosen
    truth: Truth


def heating_logs(episodes: int = EPISODES) -> Dataset:
    """Logs of the heating control."""
    recorded = heating.record(episodes, seed=0)
    return make_dataset(
        "heating",
        observations=recorded.observations,
        actions=recorded.actions,
        rewards=recorded.rewards,
        terminals=np.zeros(len(recorded)),
        timeouts=recorded.ends,
        action_bounds=(heating.ACTION_LOW, heating.ACTION_HIGH),
    )


def pendulum_controller(observations: np.ndarray) -> np.ndarray:
    """Swings up by adding energy, and holds weakly at the top."""
    cosine, sine, speed = observations.T
    missing = 5.0 - (speed**2 / 6 + 5.0 * cosine)
    held = -(6.0 * np.arctan2(sine, cosine) + 1.0 * speed)
    return np.where(cosine > 0.9, held, 0.6 * np.sign(speed) * missing)[:, None]


def car_controller(observations: np.ndarray) -> np.ndarray:
    """Pushes the way the car rolls."""
    return 0.7 * np.sign(observations[:, 1:2] + 1e-6)


def recorded(environment: str, controller: Controller, noise: float, episodes: int, seed: int = 0) -> Dataset:
    """Logs of a controller in a Gymnasium environment, its actions disturbed by noise that wanders."""
    env = make_environment(environment, episodes)
    rng, slots = np.random.default_rng(seed), np.arange(episodes)
    low, high = env.action_low, env.action_high
    seen = env.reset(slots, [np.random.default_rng([seed, slot]) for slot in range(episodes)])
    wander = np.zeros((episodes, env.action_dim))
    columns: list[list[tuple[np.ndarray, ...]]] = [[] for _ in slots]
    while slots.size:
        wander[slots] = 0.6 * wander[slots] + rng.normal(size=(len(slots), env.action_dim)) * noise
        actions = np.clip(controller(seen) + wander[slots], low, high)
        step = env.step(slots, actions)
        for row, slot in enumerate(slots):
            marks = (step.terminals[row], step.timeouts[row])
            columns[slot].append((seen[row], actions[row], step.rewards[row], step.observations[row], *marks))
        going = ~(step.terminals | step.timeouts)
        slots, seen = slots[going], step.observations[going]
    env.close()
    arrays = [np.array(column) for column in zip(*(row for episode in columns for row in episode), strict=True)]
    states, acts, rewards, following, terminals, timeouts = arrays
    return make_dataset(
        environment,
        observations=states,
        actions=acts,
        rewards=rewards,
        next_observations=following,
        terminals=terminals,
        timeouts=timeouts,
        action_bounds=(low, high),
        environment=environment,
    )


def _of_plant(plant: Plant) -> TrustSet:
    return TrustSet(plant.name, lambda rows: record(plant, EPISODES, seed=0), in_plant(plant))


def _named(name: str, environment: str | None) -> TrustSet:
    """A data set of the catalogue; without an environment here, worker processes step the one that it names."""

    def load(rows: int | None) -> Dataset:
        return load_dataset(name, transitions=rows, progress=False)

    return TrustSet(name, load, by_processes if environment is None else in_environment(environment))


SMALL_SETS: Mapping[str, TrustSet] = {
    each.name: each
    for each in (
        TrustSet("heating", lambda rows: heating_logs(), in_heating),
        TrustSet(
            "Pendulum-v1",
            lambda rows: recorded("Pendulum-v1", pendulum_controller, 0.8, 60),
            in_environment("Pendulum-v1"),
        ),
        TrustSet(
            "MountainCarContinuous-v0",
            lambda rows: recorded("MountainCarContinuous-v0", car_controller, 0.4, 80),
            in_environment("MountainCarContinuous-v0"),
        ),
        *(_of_plant(plant) for plant in PLANTS.values()),
        _named("replica:hopper-medium", "hopper"),
        _named("replica:halfcheetah-medium-replay", "halfcheetah"),
        _named("replica:walker2d-medium-replay", "walker2d"),
    )
}
OGBENCH = [f"ogbench:{suite}-play-singletask-task{task}" for suite in ("cube-single", "scene") for task in range(1, 6)]
FULL_SETS: Mapping[str, TrustSet] = {
    **{
        f"replica:{task}-{kind}": _named(f"replica:{task}-{kind}", task)
        for task in ("halfcheetah", "hopper", "walker2d")
        for kind in KINDS
    },
    **{name: _named(name, None) for name in OGBENCH},
}
