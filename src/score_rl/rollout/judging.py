"""Trained policies in fresh episodes: one run or many, by processes where there are cores for them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from score_rl.engine.runs import run_identity
from score_rl.errors import InputError
from score_rl.rollout.acting import write_down_acting
from score_rl.rollout.episodes import Judgement, episode_seeds, judge
from score_rl.rollout.instructions import NotPortable
from score_rl.rollout.processes import Judges, Question, worth_it

if TYPE_CHECKING:
    from score_rl.run.experiment import TrainedRun

RUNS_AT_ONCE = 8  # asked for together, so that processes done with one begin the next


def environment_of(run: "TrainedRun") -> str:
    environment = run.experiment.spec.environment or run.record.environment
    if environment in (None, "none"):
        raise InputError(
            f"{run.id} was trained without an environment, so there is nothing to act in; train it with --environment, "
            "or look at what docs/data.md says of judging without a simulator."
        )
    return str(environment)


def judge_runs(
    runs: "Sequence[TrainedRun]", episodes: int, *, physics: str | None = None, seed: int = 0
) -> "Iterator[tuple[TrainedRun, Judgement]]":
    """Each run with what its policy did, in their order, as soon as it is known."""
    if episodes < 1:
        raise InputError(f"episodes is {episodes}; it must be 1 or more.")
    environments = [environment_of(run) for run in runs]
    many = worth_it(environments, len(runs), episodes)
    return (_by_processes if many else _one_by_one)(runs, episodes, physics, seed)


def _seeds(run: "TrainedRun", episodes: int, seed: int) -> list[list[int]]:
    """Other episodes than those of training, whose seed is 0."""
    identity = run_identity(run.record.algorithm, run.record.checksum, run.seed)
    return episode_seeds(identity, run.step, episodes, seed + 1)


def _acts_by(run: "TrainedRun") -> tuple[Any, Any, Any]:
    """In the types that JAX would give them: settings are numbers of Python's own, which NumPy takes for float64."""
    acts_by = run.config, run.treatment, run.algorithm.policy(run.state)
    return jax.tree.map(lambda leaf: np.asarray(leaf, jax.dtypes.canonicalize_dtype(np.asarray(leaf).dtype)), acts_by)


def _one_by_one(
    runs: "Sequence[TrainedRun]", episodes: int, physics: str | None, seed: int
) -> "Iterator[tuple[TrainedRun, Judgement]]":
    for run in runs:
        yield run, _here(run, episodes, physics, seed)


def _here(run: "TrainedRun", episodes: int, physics: str | None, seed: int) -> Judgement:
    return judge(
        environment_of(run),
        lambda observations: run.policy(observations[0])[None],
        [[np.random.default_rng(numbers) for numbers in _seeds(run, episodes, seed)]],
        physics=physics or run.experiment.spec.physics,
    )


def _by_processes(
    runs: "Sequence[TrainedRun]", episodes: int, physics: str | None, seed: int
) -> "Iterator[tuple[TrainedRun, Judgement]]":
    """Runs that act alike share their processes; a policy that cannot be written down is judged here."""
    known: dict[Any, Judges | None] = {}

    def judges_for(run: "TrainedRun") -> Judges | None:
        leaves, structure = jax.tree.flatten(_acts_by(run))
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        place = physics or run.experiment.spec.physics
        key = (run.algorithm.name, structure, *shapes, place)
        if key not in known:
            config, treatment, policy = jax.tree.unflatten(structure, shapes)
            try:
                judges = Judges(
                    write_down_acting(run.algorithm, config, treatment, policy, run.record.observation_dim), place
                )
            except NotPortable:
                known[key] = None
            else:
                known[key] = judges
                stack.callback(judges.close)
        return known[key]

    def one(run: "TrainedRun") -> Judgement:
        judges = judges_for(run)
        if judges is None:
            return _here(run, episodes, physics, seed)
        numbers = jax.tree.leaves(_acts_by(run))
        question = Question(environment_of(run), numbers, _seeds(run, episodes, seed))
        (answer,) = judges.ask([question])
        return Judgement(question.environment, answer.returns[None], answer.lengths[None])

    with ThreadPoolExecutor(min(RUNS_AT_ONCE, len(runs))) as pool, ExitStack() as stack:
        for run in runs:
            judges_for(run)  # here, one after the other: threads would each start their own
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)  # first, where the rest is no longer wanted
        yield from zip(runs, pool.map(one, runs), strict=True)
