"""Judging policies by acting: many policies, many episodes, all environments stepped together."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from score_rl.envs import Environment, available_cores, make_environment, normalised_score

EPISODES_PER_GROUP = 40  # fewer, and groups would wait for Python's lock more than for physics

Actions = Callable[[Float[np.ndarray, "policies episodes observation"]], Float[np.ndarray, "policies episodes action"]]


class Judgement(NamedTuple):
    """Undiscounted returns of whole episodes, and their lengths."""

    environment: str
    returns: Float[np.ndarray, "policies episodes"]
    lengths: Int[np.ndarray, "policies episodes"]

    def scores(self) -> Float[np.ndarray, "policies episodes"] | None:
        """Normalised, in percent; None where the task has no reference."""
        return normalised_score(self.environment, self.returns)

    def summary(self, policy: int) -> dict[str, float]:
        """Mean and standard deviation over one policy's episodes.

        The deviation of a normalised score is taken over normalised episodes: put through the formula as if it
        were a return it would have the minimum subtracted.
        """
        numbers = {
            "return": float(self.returns[policy].mean()),
            "return_std": float(self.returns[policy].std()),
            "episode_length": float(self.lengths[policy].mean()),
        }
        scores = self.scores()
        if scores is not None:
            numbers |= {"score": float(scores[policy].mean()), "score_std": float(scores[policy].std())}
        return numbers


def episode_seeds(policy_name: str, step: int, episodes: int, seed: int = 0) -> list[list[int]]:
    """For the random numbers of a policy's episodes: from its name and age, never from its place among others."""
    digest = hashlib.sha256(policy_name.encode()).digest()
    base = int.from_bytes(digest[:8], "little")
    return [[base, step, seed, episode] for episode in range(episodes)]


def episode_generators(policy_name: str, step: int, episodes: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng(numbers) for numbers in episode_seeds(policy_name, step, episodes, seed)]


def judge(
    environment: str,
    act: Actions,
    generators: Sequence[Sequence[np.random.Generator]],
    *,
    physics: str = "d4rl",
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Judgement:
    """Run one episode for every generator: `generators[policy][episode]`.

    `act` maps the observations of all policies to their actions, in the environment's units. It always gets the
    full array, so that it compiles once; finished episodes are no longer stepped. `stop` is asked every step.
    """
    policies, episodes = len(generators), len(generators[0])
    env = make_environment(environment, policies * episodes, physics=physics, threads=threads)
    try:
        returns, lengths = whole_episodes(
            env,
            lambda observations: act(observations.reshape(policies, episodes, -1)).reshape(policies * episodes, -1),
            [generator for row in generators for generator in row],
            stop,
        )
    finally:
        env.close()
    return Judgement(environment, returns.reshape(policies, episodes), lengths.reshape(policies, episodes))


def whole_episodes(
    env: Environment,
    act: Callable[[Float[np.ndarray, "slots observation"]], Float[np.ndarray, "slots action"]],
    generators: Sequence[np.random.Generator],
    stop: Callable[[], bool],
) -> tuple[Float[np.ndarray, " episodes"], Int[np.ndarray, " episodes"]]:
    """Returns and lengths of one episode for every generator, in the first slots of an environment."""
    observations = np.zeros((env.slots, env.observation_dim), np.float32)
    alive = np.arange(len(generators))
    observations[alive] = env.reset(alive, generators)
    returns, lengths = np.zeros(len(generators)), np.zeros(len(generators), dtype=np.int64)
    while alive.size:
        if stop():
            raise InterruptedError("the judgement was stopped")
        actions = np.asarray(act(observations))
        step = env.step(alive, actions[alive].astype(np.float64))
        observations[alive] = step.observations
        returns[alive] += step.rewards
        lengths[alive] += 1
        alive = alive[~(step.terminals | step.timeouts)]
    return returns, lengths


def judge_in_groups(
    environment: str,
    act_of: Callable[[slice], Actions],
    generators: Sequence[Sequence[np.random.Generator]],
    *,
    physics: str = "d4rl",
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Judgement:
    """As `judge`, the policies in groups of their own thread: while one group acts, others use the cores for physics.

    Acting and the Python around a step use one core, so one group alone leaves the others idle meanwhile: on 16
    cores for more than half of the time. `act_of` gives the actions of some of the policies.
    """
    cores = threads or available_cores()
    groups = policy_groups(len(generators), len(generators[0]), cores)
    failures: list[BaseException] = []  # the first is the cause; the others were only stopped

    def one(number: int) -> Judgement:
        group = groups[number]
        own = cores // len(groups) + (number < cores % len(groups))
        try:
            return judge(
                environment,
                act_of(group),
                generators[group],
                physics=physics,
                threads=own,
                stop=lambda: stop() or bool(failures),
            )
        except BaseException as failure:
            failures.append(failure)
            raise

    if len(groups) == 1:
        return one(0)
    with ThreadPoolExecutor(max_workers=len(groups), thread_name_prefix="episodes") as pool:
        futures = [pool.submit(one, number) for number in range(len(groups))]
    if failures:
        raise failures[0]
    parts = [future.result() for future in futures]
    returns, lengths = (np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True))
    return Judgement(environment, returns, lengths)


def policy_groups(policies: int, episodes: int, cores: int) -> list[slice]:
    """Neighbouring policies, in groups of nearly equal size, no more of them than cores."""
    number = max(1, min(cores, policies, policies * episodes // EPISODES_PER_GROUP))
    ends = [policies * n // number for n in range(number + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]
