"""What policies truly earn: their episodes in the simulator that the judge never sees."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from score_rl.data.dataset import Dataset
from score_rl.envs import Environment, make_environment
from score_rl.judge.candidates import Candidates, TrainedPolicy
from score_rl.rollout.judging import judge_policies
from score_rl.rollout.policies import PolicyToPlay
from tests.plants import heating

from .plants import Plant, play

AT_ONCE = 8  # policies whose episodes are stepped together


@dataclasses.dataclass(frozen=True)
class Earned:
    """Means over episodes."""

    score: float  # undiscounted return, or success in percent where the task has one: what policies are ranked by
    per_step: float | None  # discounted, as the judge counts it; None where only scores are known


Truth = Callable[[Mapping[str, TrainedPolicy], Dataset, int, float], list[Earned]]


def in_heating(policies: Mapping[str, TrainedPolicy], dataset: Dataset, episodes: int, discount: float) -> list[Earned]:
    """All policies meet the same weather, in episodes as long as those of the logs."""
    logged = heating.record(episodes, seed=1)  # for the lengths of these episodes alone
    lengths = np.bincount(logged.episode)
    time = ((1 - discount**lengths) / (1 - discount)).sum()
    found = []
    for name, policy in policies.items():
        alone = Candidates({name: policy}, dataset.action_low, dataset.action_high)

        def act(observations: np.ndarray, alone: Candidates = alone) -> np.ndarray:
            return alone.act_on(observations)[0]

        earned = heating.returns(act, episodes, seed=1, discount=discount).sum()
        found.append(Earned(float(heating.returns(act, episodes, seed=1).mean()), float(earned / time)))
    return found


def in_plant(plant: Plant) -> Truth:
    """All policies meet the same chances."""

    def truth(policies: Mapping[str, TrainedPolicy], dataset: Dataset, episodes: int, discount: float) -> list[Earned]:
        found = []
        for name, policy in policies.items():
            alone = Candidates({name: policy}, dataset.action_low, dataset.action_high)

            def act(observations: np.ndarray, alone: Candidates = alone) -> np.ndarray:
                return alone.act_on(observations)[0]

            played = play(plant, act, episodes, 1)
            weights = discount ** np.arange(plant.horizon) * played.lasts
            ended = played.terminals.any(axis=1)
            time = np.where(ended, 1 / (1 - discount), weights.sum(axis=1))  # nothing is earned after it, for ever
            earned = (weights * played.rewards).sum()
            found.append(Earned(float(played.returns.mean()), float(earned / time.sum())))
        return found

    return truth


def in_environment(name: str) -> Truth:
    """Episodes in a simulator that this package can step. All policies begin in the same states."""

    def truth(policies: Mapping[str, TrainedPolicy], dataset: Dataset, episodes: int, discount: float) -> list[Earned]:
        names = list(policies)
        groups = [names[first : first + AT_ONCE] for first in range(0, len(names), AT_ONCE)]
        found = []
        for group in groups:
            env = make_environment(name, len(group) * episodes)
            try:
                found += _played(env, {each: policies[each] for each in group}, dataset, episodes, discount)
            finally:
                env.close()
        return found

    return truth


def _played(
    env: Environment, policies: Mapping[str, TrainedPolicy], dataset: Dataset, episodes: int, discount: float
) -> list[Earned]:
    number = len(policies)
    candidates = Candidates(policies, dataset.action_low, dataset.action_high)
    seen = np.zeros((env.slots, env.observation_dim), np.float32)
    slots = np.arange(env.slots)
    seen[slots] = env.reset(slots, [np.random.default_rng([1, slot % episodes]) for slot in range(env.slots)])
    returns, earned, time, at = (np.zeros(env.slots) for _ in range(4))
    while slots.size:
        actions = candidates.act(seen.reshape(number, episodes, -1)).reshape(env.slots, -1)
        step = env.step(slots, actions[slots].astype(np.float64))
        seen[slots] = step.observations
        returns[slots] += step.rewards
        earned[slots] += discount ** at[slots] * step.rewards
        time[slots] += discount ** at[slots]
        at[slots] += 1
        time[slots[step.terminals]] = 1 / (1 - discount)  # nothing is earned after it, for ever
        slots = slots[~(step.terminals | step.timeouts)]
    score, sums, times = (column.reshape(number, episodes).mean(axis=1) for column in (returns, earned, time))
    return [Earned(float(a), float(b)) for a, b in zip(score, sums / times, strict=True)]


def by_processes(
    policies: Mapping[str, TrainedPolicy], dataset: Dataset, episodes: int, discount: float
) -> list[Earned]:
    """Episodes in worker processes, for simulators that take long. They tell success, and nothing per step."""
    asked = [
        PolicyToPlay(
            *policy, environment=str(dataset.environment), physics="d4rl", identity=name, step=0, episodes=episodes
        )
        for name, policy in policies.items()
    ]
    judged = judge_policies(asked)
    return [Earned(each.summary(0).get("score", each.summary(0)["return"]), None) for each in judged]
