"""Records many episodes at once.

The rows do not depend on how many episodes ran at once, nor on the number of cores. Episodes are numbered. Episode k of
stream j draws its start and its actions from a generator of its own, seeded with (seed, j, k). Episodes are kept in the
order of their numbers and run to their ends. The stream is cut at exactly the rows asked for.

One environment, run again and again, would record the same: only the last episode is partial, and short episodes are no
more likely to be kept than long ones. They would be if episodes were kept in the order in which they finish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from score_rl.data.collection.policies import Policy
from score_rl.envs.tasks import TASKS, Task
from score_rl.errors import InputError

if TYPE_CHECKING:
    from score_rl.envs.locomotion import Locomotion

MAX_SLOTS = 256
NOISE_BLOCK = 64  # steps of noise drawn at a time


@dataclass(frozen=True)
class Rows:
    """Recorded steps, as columns."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    next_observations: np.ndarray
    terminals: np.ndarray
    timeouts: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    action_log_probs: np.ndarray

    def part(self, start: int, stop: int) -> "Rows":
        """Some of the rows, as views: a stream fills its share in place."""
        return Rows(**{name: column[start:stop] for name, column in vars(self).items()})

    def stored(self) -> dict[str, np.ndarray]:
        """The columns under D4RL's keys."""
        infos = ("qpos", "qvel", "action_log_probs")
        return {f"infos/{name}" if name in infos else name: column for name, column in vars(self).items()}

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in vars(self).values())

    def __len__(self) -> int:
        return len(self.rewards)


def empty_rows(task: Task, *shape: int) -> Rows:
    """Columns for rows of this task in D4RL's types, with these leading dimensions."""
    return Rows(
        observations=np.zeros((*shape, task.observation_dim), np.float32),
        actions=np.zeros((*shape, task.action_dim), np.float32),
        rewards=np.zeros(shape, np.float32),
        next_observations=np.zeros((*shape, task.observation_dim), np.float32),
        terminals=np.zeros(shape, bool),
        timeouts=np.zeros(shape, bool),
        qpos=np.zeros((*shape, task.positions)),
        qvel=np.zeros((*shape, task.positions)),
        action_log_probs=np.zeros(shape, np.float32),
    )


def collect(
    task: str,
    streams: Sequence[tuple[Policy, int]],
    *,
    seed: int,
    physics: str = "d4rl",
    threads: int | None = None,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Rows:
    """Record one stream after the other.

    A stream is a policy and its number of rows. `on_rows` is told how many rows were added.
    """
    from score_rl.envs.locomotion import Locomotion

    if seed < 0:
        raise InputError(f"the seed {seed} is negative, but a recording needs one of 0 or more.")
    rows = empty_rows(TASKS[task], sum(count for _, count in streams))
    slots = max(_slots(count) for _, count in streams)
    environment = Locomotion(TASKS[task], slots, physics=physics, threads=threads)
    start = 0
    try:
        # A BLAS with several threads would take the cores from the physics and halve its speed.
        with threadpool_limits(limits=1, user_api="blas"):
            for number, (policy, count) in enumerate(streams):
                _Stream(environment, policy, rows.part(start, start + count), (seed, number)).run(on_rows)
                start += count
    finally:
        environment.close()
    return rows


def _slots(rows: int) -> int:
    """How many episodes run at once. It follows from the rows alone, never from the machine."""
    return min(MAX_SLOTS, max(4, -(-rows // 1000)))


class _Stream:
    """One policy's episodes, run in as many slots as its rows need."""

    def __init__(self, environment: "Locomotion", policy: Policy, rows: Rows, seed: tuple[int, int]) -> None:
        self.environment, self.policy, self.rows, self.seed = environment, policy, rows, seed
        slots = _slots(len(rows))
        self.episode = np.full(slots, -1)  # the number of the episode in each slot, -1 for none
        self.step = np.zeros(slots, dtype=np.int64)
        self.generators = [np.random.default_rng(0)] * slots  # replaced when an episode starts
        self.observations = np.zeros((slots, environment.observation_dim), np.float32)
        self.noise = np.zeros((slots, NOISE_BLOCK, environment.action_dim), np.float32)
        self.record = empty_rows(environment.task, slots, environment.max_steps)
        self.started = 0  # episodes
        self.stepped = 0  # steps, over all episodes started
        self.finished: dict[int, Rows] = {}  # whole episodes that wait for one before them
        self.kept_episodes = self.kept_rows = 0

    def run(self, on_rows: Callable[[int], None]) -> None:
        """Step until the rows are full."""
        while self.kept_rows < len(self.rows):
            before = self.kept_rows
            self._start_episodes()
            self._step_slots(np.flatnonzero(self.episode >= 0))
            self._keep_finished()
            if self.stepped >= len(self.rows):
                self._stop_unneeded()
            on_rows(self.kept_rows - before)

    def _start_episodes(self) -> None:
        free = np.flatnonzero(self.episode < 0)
        if len(free) == 0 or self.stepped >= len(self.rows):
            return
        for slot in free:
            entropy = np.random.SeedSequence((*self.seed, self.started))
            self.generators[slot] = np.random.default_rng(entropy)
            self.episode[slot], self.step[slot] = self.started, 0
            self.started += 1
        self.observations[free] = self.environment.reset(free, [self.generators[slot] for slot in free])

    def _step_slots(self, slots: np.ndarray) -> None:
        step = self.step[slots]
        for slot in slots[step % NOISE_BLOCK == 0]:
            self.noise[slot] = self.policy.draw(self.generators[slot], NOISE_BLOCK)
        observations, record = self.observations[slots], self.record
        actions, log_probs = self.policy.act(observations, self.noise[slots, step % NOISE_BLOCK])
        record.qpos[slots, step], record.qvel[slots, step] = (
            self.environment.qpos[slots],
            self.environment.qvel[slots],
        )
        result = self.environment.step(slots, actions)
        record.observations[slots, step], record.actions[slots, step] = observations, actions
        record.action_log_probs[slots, step], record.rewards[slots, step] = log_probs, result.rewards
        record.terminals[slots, step], record.timeouts[slots, step] = result.terminals, result.timeouts
        self.observations[slots] = result.observations
        record.next_observations[slots, step] = self.observations[slots]
        self.step[slots] += 1
        self.stepped += len(slots)
        for slot in slots[result.terminals | result.timeouts]:
            self.finished[int(self.episode[slot])] = self._recorded(int(slot))
            self.episode[slot] = -1

    def _recorded(self, slot: int) -> Rows:
        length = self.step[slot]
        return Rows(**{name: column[slot, :length].copy() for name, column in vars(self.record).items()})

    def _keep_finished(self) -> None:
        """Move whole episodes to the rows, in the order of their numbers."""
        while self.kept_episodes in self.finished and self.kept_rows < len(self.rows):
            self._keep(self.finished.pop(self.kept_episodes))
            self.kept_episodes += 1

    def _stop_unneeded(self) -> None:
        """Stop the episodes after the one in which the rows will end. Enough steps have been taken."""
        lengths = np.zeros(self.started - self.kept_episodes, dtype=np.int64)  # of episodes not kept yet
        for number, episode in self.finished.items():
            lengths[number - self.kept_episodes] = len(episode)
        running = self.episode >= 0
        lengths[self.episode[running] - self.kept_episodes] = self.step[running]
        filled = self.kept_rows + np.cumsum(lengths)
        last = self.kept_episodes + int(np.searchsorted(filled, len(self.rows)))
        self.episode[self.episode > last] = -1
        if last == self.kept_episodes and self.kept_rows < len(self.rows):  # it holds the last row
            slot = int(np.flatnonzero(self.episode == last)[0])
            self._keep(self._recorded(slot))

    def _keep(self, episode: Rows) -> None:
        length = min(len(episode), len(self.rows) - self.kept_rows)
        for name, column in vars(self.rows).items():
            column[self.kept_rows : self.kept_rows + length] = getattr(episode, name)[:length]
        self.kept_rows += length
        if length < len(episode) or not (episode.terminals[-1] or episode.timeouts[-1]):
            self.rows.timeouts[-1] = True  # the stream stops in the middle of an episode
