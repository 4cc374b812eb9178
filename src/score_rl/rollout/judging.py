"""Trained policies in fresh episodes: one or many, by processes where there are cores for them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.algorithm import Algorithm
from score_rl.envs import is_module_named
from score_rl.errors import InputError
from score_rl.rollout.acting import COSTLY, batched_playing, host_device, operations_to_act, write_down_acting
from score_rl.rollout.episodes import Judgement, judge
from score_rl.rollout.instructions import NotPortable
from score_rl.rollout.policies import PolicyToPlay
from score_rl.rollout.processes import MOST_DEATHS, DiedError, Judges, Question, episodes_together, worth_it

POLICIES_AT_ONCE = 8  # asked for together, so that processes done with one begin the next


def judge_policies(policies: Sequence[PolicyToPlay]) -> Iterator[Judgement]:
    """What each policy did, in their order, as soon as it is known."""
    environments = [policy.environment for policy in policies]
    episodes = max((policy.episodes for policy in policies), default=0)
    if worth_it(environments, len(policies), episodes):
        return _by_processes(policies)
    return map(_here, policies)


def _here(policy: PolicyToPlay) -> Judgement:
    inputs = policy.acting_inputs()
    device = acting_device(policy.algorithm, inputs, policy.observation_dim)
    config, treatment, numbers = jax.device_put(jax.tree.map(lambda leaf: leaf[None], inputs), device)
    act = batched_playing(policy.algorithm)
    return judge(
        policy.environment,
        lambda observations: np.asarray(act(config, treatment, numbers, observations)),
        [[np.random.default_rng(numbers) for numbers in policy.episode_seeds()]],
        physics=policy.physics,
        with_noise=policy.algorithm.act_on_noise is not None,
    )


def acting_device(algorithm: Algorithm, inputs: Any, observation_dim: int) -> jax.Device:
    """The CPU, which steps the physics too; for policies that weigh many candidates, an accelerator if there is one."""
    accelerator = jax.local_devices()[0]
    if accelerator.platform == "cpu" or operations_to_act(algorithm, inputs, observation_dim) <= COSTLY:
        return host_device()
    return accelerator


def _by_processes(policies: Sequence[PolicyToPlay]) -> Iterator[Judgement]:
    """Policies that act alike share their processes; a policy that cannot be written down is judged here."""
    known: dict[Any, Judges | None] = {}

    def judges_for(policy: PolicyToPlay) -> Judges | None:
        leaves, structure = jax.tree.flatten(policy.acting_inputs())
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        key = (policy.algorithm.name, structure, *shapes, policy.physics, is_module_named(policy.environment))
        if key not in known:
            config, treatment, numbers = jax.tree.unflatten(structure, shapes)
            together = episodes_together([policy.environment])
            width = policy.observation_dim
            try:
                judges = Judges(
                    write_down_acting(policy.algorithm, config, treatment, numbers, width, together),
                    policy.physics,
                    together=together,
                    with_noise=policy.algorithm.act_on_noise is not None,
                )
            except NotPortable:
                known[key] = None
            else:
                known[key] = judges
                stack.callback(judges.close)
        return known[key]

    def one(policy: PolicyToPlay) -> Judgement:
        judges = judges_for(policy)
        if judges is None:
            return _here(policy)
        question = Question(policy.environment, jax.tree.leaves(policy.acting_inputs()), policy.episode_seeds())
        (answer,) = judges.ask([question])
        if isinstance(answer, DiedError):
            raise InputError(
                f"the policy {policy.identity} after update {policy.step:,} could not be judged: {MOST_DEATHS} "
                f"processes died of it ({answer}); is there enough memory for them?"
            ) from answer
        return Judgement(question.environment, *(column[None] for column in answer))

    with ThreadPoolExecutor(min(POLICIES_AT_ONCE, len(policies))) as pool, ExitStack() as stack:
        for policy in policies:
            judges_for(policy)  # here, one after the other: threads would each start their own
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)  # first, where the rest is no longer wanted
        yield from pool.map(one, policies)
