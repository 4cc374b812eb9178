"""Evaluations while training goes on: policies go in, rows of metrics come out some windows later."""

import time
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, NamedTuple

import jax
import numpy as np

from score_rl.rollout.acting import FleetActor
from score_rl.run import messages
from score_rl.run.best_policies import BestPolicies
from score_rl.run.context import TrainingContext
from score_rl.run.progress import TrainingProgress
from score_rl.store.metrics import Row

MOST_WAITING = 2  # evaluations; more would let training run away from them
SECONDS_BEFORE_ADVICE = 60.0
SHARE_WORTH_ADVICE = 0.2  # of the time, spent waiting


class Evaluation(NamedTuple):
    """One that is under way."""

    rows: Future[list[Row]]
    step: int
    policies: Any


class EvaluationQueue:
    """Hands policies to the fleet's actor and stores what they scored. Use it as a context."""

    def __init__(
        self,
        actor: FleetActor,
        context: TrainingContext,
        progress: TrainingProgress,
        best: BestPolicies | None = None,
    ) -> None:
        self._actor, self._context, self._progress, self._best = actor, context, progress, best
        self._workers = ThreadPoolExecutor(actor.judgements_at_once, thread_name_prefix="evaluation")
        self._waiting: deque[Evaluation] = deque()  # the oldest first
        self._seconds_waited = 0.0  # in which training stood still
        self._has_advised = False

    def __enter__(self) -> "EvaluationQueue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._actor.cancel()  # the threads must not outlive a failure
        self._workers.shutdown()
        self._actor.close()

    def __len__(self) -> int:
        """Evaluations that are not stored yet."""
        return len(self._waiting)

    def submit(self, step: int, policies: Any, runs: Collection[str]) -> None:
        """Evaluate these runs' policies, taken after `step` updates. Waits where too many are under way already."""
        if not self._actor.can_judge:
            return
        began = time.monotonic()
        while len(self._waiting) >= max(MOST_WAITING, self._actor.judgements_at_once):
            self._store_oldest()
        self._seconds_waited += time.monotonic() - began
        self._advise()
        on_host = jax.device_get(policies)
        self._waiting.append(
            Evaluation(self._workers.submit(self._actor.judge, on_host, step, set(runs)), step, on_host)
        )

    def collect(self) -> None:
        """Store the evaluations that are done, in their order."""
        while self._waiting and self._waiting[0].rows.done():
            self._store_oldest()

    def drain(self) -> None:
        """Wait for all of them."""
        while self._waiting:
            self._store_oldest()

    def _store_oldest(self) -> None:
        oldest = self._waiting.popleft()
        rows = _result(oldest.rows)
        self._context.metrics.write(rows)
        if self._best is not None:
            self._best.consider(oldest.step, oldest.policies, rows)
        while self._actor.given_up:
            self._context.announcer.say(messages.evaluation_given_up(self._actor.given_up.pop(0)))
        for name in ("score", "return"):
            values = [row.value for row in rows if row.name == f"evaluation/{name}"]
            if values:
                self._progress.show({name: f"{np.mean(values):.1f}"})
                return

    def _advise(self) -> None:
        """Say it once where a user may want fewer evaluations."""
        passed = self._progress.seconds
        if self._has_advised or passed < SECONDS_BEFORE_ADVICE or self._seconds_waited < SHARE_WORTH_ADVICE * passed:
            return
        self._has_advised = True
        spec = self._context.spec
        self._context.announcer.say(
            messages.training_waits(self._seconds_waited / passed, spec.eval_every, spec.eval_episodes)
        )


def _result(future: Future[list[Row]]) -> list[Row]:
    """Waits in slices, so that Ctrl-C is heard."""
    while not future.done():
        wait([future], timeout=0.1)
    return future.result()
