"""A fleet's policies outside the training program: on the host's CPU, while the device trains on.

Where there are cores for it, processes of their own act and step physics (`processes.py`); on few cores, for few
episodes and for policies that draw candidates, threads do.

Policies that weigh a hundred candidates for every action (BCQ's way) would keep a CPU busy for longer than training
takes: they act on the training device, and training waits meanwhile.
"""

import functools
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.algorithm import Algorithm
from score_rl.data.treatment import Treatment
from score_rl.engine.program import FleetProgram
from score_rl.rollout import processes
from score_rl.rollout.episodes import Judgement, Played, episode_generators, episode_seeds, judge_in_groups
from score_rl.rollout.instructions import Instructions, NotPortable, write_down
from score_rl.rollout.processes import Judges, Question
from score_rl.store.metrics import Row
from score_rl.store.request import ExperimentSpec

COSTLY = 3e7  # operations for one action above which it is chosen on the training device; a plain actor needs 3e5
Act = Callable[[np.ndarray], np.ndarray]


def host_device() -> jax.Device:
    """The CPU where JAX may use it: acting there leaves the accelerator to training."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS excludes it: then acting shares the accelerator
        return jax.local_devices()[0]


def acting(algorithm: Algorithm) -> Any:
    """Of one policy; observations and actions in the environment's units."""

    def act(config: Any, treatment: Treatment, policy: Any, observations: Any) -> Any:
        return treatment.action_out(algorithm.act(config, policy, treatment.observe(observations)))

    return act


def playing(algorithm: Algorithm) -> Any:
    """As `acting`, for episodes that are judged. Noise stands behind the observations of a method that acts on it."""
    act_on_noise = algorithm.act_on_noise
    if act_on_noise is None:
        return acting(algorithm)

    def act(config: Any, treatment: Treatment, policy: Any, observations: Any) -> Any:
        width = treatment.observation_mean.shape[0]
        seen, noise = observations[..., :width], observations[..., width:]
        return treatment.action_out(act_on_noise(config, policy, treatment.observe(seen), noise))

    return act


@functools.cache
def batched_playing(algorithm: Algorithm) -> Any:
    """As `batched_act`, for episodes that are judged."""
    return jax.jit(jax.vmap(playing(algorithm)))


@functools.cache
def batched_act(algorithm: Algorithm) -> Any:
    """Policies, settings and treatments stacked; compiled once for all stacks of the same shapes."""
    return jax.jit(jax.vmap(acting(algorithm)))


def write_down_acting(
    algorithm: Algorithm,
    config: Any,
    treatment: Any,
    policy: Any,
    observation_dim: int,
    together: int = processes.EPISODES_TOGETHER,
) -> Instructions:
    """How a policy of such shapes acts on so many episodes, for a process without JAX; its numbers are the leaves of
    settings, treatment and policy."""
    numbers, structure = jax.tree.flatten((config, treatment, policy))

    def flat(numbers: list[Any], observations: Any) -> Any:
        return playing(algorithm)(*jax.tree.unflatten(structure, numbers), observations)

    noise = 0 if algorithm.act_on_noise is None else treatment.action_centre.shape[-1]
    seen = jax.ShapeDtypeStruct((together, observation_dim + noise), np.float32)
    return write_down(flat, numbers, seen)


def write_down_fleet(program: FleetProgram, together: int = processes.EPISODES_TOGETHER) -> Instructions:
    """How one of a fleet's policies acts."""
    policies = jax.eval_shape(lambda: program.algorithm.policy(program.init()))
    config, treatment, policy = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype),
        (program.inputs.config, program.inputs.treatment, policies),
    )
    return write_down_acting(program.algorithm, config, treatment, policy, program.shapes.observation, together)


def runs_on_device(tree: Any, chosen: Collection[int], device: jax.Device) -> Any:
    """These runs of a stacked tree, on a device."""
    return jax.device_put(jax.tree.map(lambda leaf: leaf[np.asarray(chosen)], tree), device)


def operations_to_act(algorithm: Algorithm, inputs: Any, observation_dim: int) -> float:
    """For one action of one policy, as the compiler counts them. `inputs` are settings, treatment and policy."""

    def alone(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype)

    seen = jax.ShapeDtypeStruct((1, 1, observation_dim), np.float32)
    with jax.default_device(host_device()):
        lowered = batched_act(algorithm).lower(*jax.tree.map(alone, inputs), seen)
        return float(lowered.cost_analysis()["flops"])


def operations_per_action(program: FleetProgram) -> float:
    """Of one run's policy."""
    policies = jax.eval_shape(lambda: program.algorithm.policy(program.init()))
    inputs = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype),
        (program.inputs.config, program.inputs.treatment, policies),
    )
    return operations_to_act(program.algorithm, inputs, program.shapes.observation)


class FleetActor:
    """Judges a fleet's policies in the environments of its data sets."""

    def __init__(self, program: FleetProgram, spec: ExperimentSpec) -> None:
        self.runs, self.spec = program.runs, spec
        self._act = batched_playing(program.algorithm)
        self._with_noise = program.algorithm.act_on_noise is not None
        trains_on = program.devices.first
        self.training_waits = trains_on.platform != "cpu" and operations_per_action(program) > COSTLY
        self._device = trains_on if self.training_waits else host_device()
        self._fixed = jax.device_get((program.inputs.config, program.inputs.treatment))
        self._cancelled = threading.Event()
        environments = [spec.environment or run.dataset.environment for run in self.runs]
        self.environments = {
            name: [place for place, other in enumerate(environments) if other == name]
            for name in dict.fromkeys(environments)
            if name not in (None, "none")
        }
        self._judges: Judges | None = None
        self.given_up: list[str] = []  # evaluations that processes died of, until somebody has said so
        self.threads_because: str | None = None  # what keeps processes from judging though there are cores for them
        if not self.training_waits and processes.worth_it(list(self.environments), len(self.runs), spec.eval_episodes):
            try:
                beside = trains_on.platform != "cpu"
                together = processes.episodes_together(list(self.environments))
                told = write_down_fleet(program, together)
                self._judges = Judges(told, spec.physics, together=together, beside=beside, with_noise=self._with_noise)
            except NotPortable as reason:
                self.threads_because = str(reason)

    @property
    def can_judge(self) -> bool:
        return bool(self.environments)

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        """End the processes that judge, if there are any."""
        if self._judges is not None:
            self._judges.close()

    @property
    def judgements_at_once(self) -> int:
        """With processes, those that are done with one judgement begin the next."""
        return 1 if self._judges is None else 3

    @property
    def pids(self) -> list[int]:
        """Of the processes that judge."""
        return self._judges.pids if self._judges is not None else []

    def judge(self, policies: Any, step: int, alive: Collection[str]) -> list[Row]:
        """The rows to store for these policies, taken at `step`."""
        living = {
            environment: here
            for environment, places in self.environments.items()
            if (here := [place for place in places if self.runs[place].id in alive])
        }
        if self._judges is not None:
            judged = self._by_processes(self._judges, living, policies, step)
        else:
            judged = {name: (here, self._by_threads(name, policies, here, step)) for name, here in living.items()}
        rows = []
        for here, judgement in judged.values():
            for number, place in enumerate(here):
                summary = judgement.summary(number)
                rows += [Row(self.runs[place].id, step, f"evaluation/{name}", value) for name, value in summary.items()]
        return rows

    def _by_processes(
        self, judges: Judges, living: Mapping[str, list[int]], policies: Any, step: int
    ) -> dict[str, tuple[list[int], Judgement]]:
        """All environments at once: a process takes whatever policy is next. Without the policies that killed it."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves((*self._fixed, policies))]
        seeds = [episode_seeds(run.identity, step, self.spec.eval_episodes) for run in self.runs]
        questions = [
            Question(name, [leaf[place] for leaf in leaves], seeds[place])
            for name, here in living.items()
            for place in here
        ]
        answers = iter(judges.ask(questions, self._cancelled.is_set))
        judged: dict[str, list[tuple[int, Played]]] = {name: [] for name in living}
        for name, here in living.items():
            for place in here:
                answer = next(answers)
                if isinstance(answer, Played):
                    judged[name].append((place, answer))
                else:
                    self.given_up.append(f"{self.runs[place].id} after update {step:,} ({answer})")
        return {
            name: (
                [place for place, _ in mine],
                Judgement(name, *map(np.stack, zip(*(a for _, a in mine), strict=True))),
            )
            for name, mine in judged.items()
            if mine
        }

    def _by_threads(self, environment: str, policies: Any, places: list[int], step: int) -> Judgement:
        def act_of(group: slice) -> Act:
            (config, treatment), chosen = (
                runs_on_device(tree, places[group], self._device) for tree in (self._fixed, policies)
            )
            return lambda observations: np.asarray(self._act(config, treatment, chosen, observations))

        return judge_in_groups(
            environment,
            act_of,
            [episode_generators(self.runs[p].identity, step, self.spec.eval_episodes) for p in places],
            physics=self.spec.physics,
            stop=self._cancelled.is_set,
            with_noise=self._with_noise,
        )
