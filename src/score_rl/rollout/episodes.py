"""Judging policies by acting: many policies, many episodes, all environments stepped together."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from score_rl.envs import Environment, available_cores, is_module_named, make_environment, normalised_score

MOST_MADE = 8  # of environments that take a hundred MB each
EPISODES_PER_GROUP = 40  # fewer, and groups would wait for Python's lock more than for physics

Actions = Callable[[Float[np.ndarray, "policies episodes observation"]], Float[np.ndarray, "policies episodes action"]]


class Played(NamedTuple):
    """What some episodes came to."""

    returns: Float[np.ndarray, " episodes"]
    lengths: Int[np.ndarray, " episodes"]
    successes: Float[np.ndarray, " episodes"]  # 1 where the task was solved, else 0; NaN where nobody says


class Judgement(NamedTuple):
    """Undiscounted returns of whole episodes, their lengths, and which of them solved the task."""

    environment: str
    returns: Float[np.ndarray, "policies episodes"]
    lengths: Int[np.ndarray, "policies episodes"]
    successes: Float[np.ndarray, "policies episodes"] | None = None  # NaN or None where nobody says

    @property
    def measures_success(self) -> bool:
        """Whether the environment says if its task was solved: then that is what counts."""
        return self.successes is not None and not np.isnan(self.successes).any()

    def scores(self) -> Float[np.ndarray, "policies episodes"] | None:
        """In percent: success where the environment says it, else normalised; None where the task has no reference."""
        if self.successes is not None and self.measures_success:
            return 100 * self.successes
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
        if self.measures_success:
            numbers["success"] = numbers["score"]
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
    with_noise: bool = False,
) -> Judgement:
    """Run one episode for every generator: `generators[policy][episode]`.

    `act` maps the observations of all policies to their actions, in the environment's units. It always gets the
    full array, so that it compiles once; finished episodes are no longer stepped. `stop` is asked every step.
    """
    policies, episodes = len(generators), len(generators[0])
    together = _together(environment, policies, episodes)
    env = make_environment(environment, policies * together, physics=physics, threads=threads)
    try:
        rounds = [
            whole_episodes(
                env,
                lambda observations: act(observations.reshape(policies, together, -1)).reshape(policies * together, -1),
                [generator for row in generators for generator in row[start : start + together]],
                stop,
                with_noise=with_noise,
            )
            for start in range(0, episodes, together)
        ]
    finally:
        env.close()
    columns = ([column.reshape(policies, together) for column in columns] for columns in zip(*rounds, strict=True))
    return Judgement(environment, *(np.concatenate(column, axis=1) for column in columns))


def _together(environment: str, policies: int, episodes: int) -> int:
    """How many episodes of each policy are stepped at once: all, but of environments of which few can be made a part
    into which all can be divided."""
    if not is_module_named(environment):
        return episodes
    return max(n for n in range(1, episodes + 1) if episodes % n == 0 and (n == 1 or n * policies <= MOST_MADE))


def whole_episodes(
    env: Environment,
    act: Callable[[Float[np.ndarray, "slots observation"]], Float[np.ndarray, "slots action"]],
    generators: Sequence[np.random.Generator],
    stop: Callable[[], bool],
    *,
    with_noise: bool = False,
) -> Played:
    """One episode for every generator, in the first slots of an environment.

    With noise, standard normal numbers stand behind every observation, as many as an action has. An episode is a
    success if the environment said so in any of its steps.
    """
    seen = env.observation_dim
    observations = np.zeros((env.slots, seen + (env.action_dim if with_noise else 0)), np.float32)
    alive = np.arange(len(generators))
    observations[alive, :seen] = env.reset(alive, generators)
    returns, lengths = np.zeros(len(generators)), np.zeros(len(generators), dtype=np.int64)
    successes = np.full(len(generators), np.nan)
    while alive.size:
        if stop():
            raise InterruptedError("the judgement was stopped")
        if with_noise:
            for slot in alive:
                observations[slot, seen:] = generators[int(slot)].standard_normal(env.action_dim, np.float32)
        actions = np.asarray(act(observations))
        step = env.step(alive, actions[alive].astype(np.float64))
        observations[alive, :seen] = step.observations
        returns[alive] += step.rewards
        lengths[alive] += 1
        if step.successes is not None:
            successes[alive] = np.fmax(successes[alive], step.successes)
        alive = alive[~(step.terminals | step.timeouts)]
    return Played(returns, lengths, successes)


def judge_in_groups(
    environment: str,
    act_of: Callable[[slice], Actions],
    generators: Sequence[Sequence[np.random.Generator]],
    *,
    physics: str = "d4rl",
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    with_noise: bool = False,
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
                with_noise=with_noise,
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
    columns = zip(*((part.returns, part.lengths, part.successes) for part in parts), strict=True)
    return Judgement(environment, *map(np.concatenate, columns))


def policy_groups(policies: int, episodes: int, cores: int) -> list[slice]:
    """Neighbouring policies, in groups of nearly equal size, no more of them than cores."""
    number = max(1, min(cores, policies, policies * episodes // EPISODES_PER_GROUP))
    ends = [policies * n // number for n in range(number + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]
