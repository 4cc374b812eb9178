"""Policies are evaluated beside training: in order, none lost, and a user hears when training waits for it."""

import threading
import types
from typing import Any

import pytest

from score_rl.run import evaluations
from score_rl.run.evaluations import MOST_WAITING, EvaluationQueue
from score_rl.run.messages import training_waits
from score_rl.store.metrics import Row


class Actor:
    """Scores a policy by its number, once it is allowed to."""

    can_judge = True
    judgements_at_once = 1

    def __init__(self, error: Exception | None = None) -> None:
        self.allowed, self.cancelled, self.closed = threading.Semaphore(0), False, False
        self.asked: list[tuple[int, list[str]]] = []
        self.error = error
        self.given_up: list[str] = []

    def judge(self, policies: float, step: int, alive: set[str]) -> list[Row]:
        self.asked.append((step, sorted(alive)))
        while not self.cancelled and not self.allowed.acquire(timeout=0.01):
            pass
        if self.error is not None:
            raise self.error
        return [Row(run, step, "evaluation/return", float(policies)) for run in sorted(alive)]

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        self.closed = True


class Progress:
    seconds = 0.0

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def show(self, facts: dict[str, str]) -> None:
        self.shown.append(facts)


@pytest.fixture
def context() -> Any:
    stored: list[Row] = []
    said: list[str] = []
    return types.SimpleNamespace(
        metrics=types.SimpleNamespace(write=stored.extend, rows=stored),
        announcer=types.SimpleNamespace(say=said.append, said=said),
        spec=types.SimpleNamespace(eval_every=5, eval_episodes=10),
    )


def queue_of(context: Any, actor: Any) -> Any:
    progress: Any = Progress()
    return EvaluationQueue(actor, context, progress)


def test_results_are_stored_in_order_and_none_is_lost(context: Any) -> None:
    actor = Actor()
    with queue_of(context, actor) as queue:
        queue.submit(5, 1.0, ["a", "b"])
        queue.submit(10, 2.0, ["b"])
        queue.collect()
        assert (len(queue), context.metrics.rows) == (2, []), "collecting waits for nothing"
        actor.allowed.release(2)
        queue.drain()
        assert len(queue) == 0
    assert context.metrics.rows == [
        Row("a", 5, "evaluation/return", 1.0), Row("b", 5, "evaluation/return", 1.0),
        Row("b", 10, "evaluation/return", 2.0),
    ]  # fmt: skip
    assert actor.asked == [(5, ["a", "b"]), (10, ["b"])]
    assert queue._progress.shown == [{"return": "1.0"}, {"return": "2.0"}]
    assert (actor.cancelled, actor.closed) == (False, True)


def test_training_waits_where_too_many_are_under_way(context: Any) -> None:
    actor = Actor()
    with queue_of(context, actor) as queue:
        for number in range(MOST_WAITING):
            queue.submit(number, 0.0, ["a"])
        threading.Timer(0.05, actor.allowed.release, (MOST_WAITING + 1,)).start()
        queue.submit(MOST_WAITING, 0.0, ["a"])  # returns only once the oldest is stored
        assert [row.step for row in context.metrics.rows][:1] == [0]
        assert len(queue) <= MOST_WAITING
        queue.drain()
    assert [row.step for row in context.metrics.rows] == list(range(MOST_WAITING + 1))


def test_what_goes_wrong_reaches_training_and_the_rest_is_cancelled(context: Any) -> None:
    actor = Actor(TimeoutError("the simulator hangs"))
    actor.allowed.release()

    def evaluate() -> None:
        with queue_of(context, actor) as queue:
            queue.submit(5, 1.0, ["a"])
            queue.submit(10, 1.0, ["a"])
            queue.drain()

    with pytest.raises(TimeoutError, match="hangs"):
        evaluate()
    assert actor.cancelled
    assert actor.closed
    assert context.metrics.rows == []


def test_nothing_is_submitted_where_nothing_can_be_evaluated(context: Any) -> None:
    actor = Actor()
    actor.can_judge = False
    with queue_of(context, actor) as queue:
        queue.submit(5, 1.0, ["a"])
        assert len(queue) == 0


@pytest.mark.parametrize(
    ("passed", "waited", "advised"),
    [(100.0, 30.0, True), (100.0, 10.0, False), (30.0, 29.0, False)],
)
def test_a_user_is_told_once_that_training_waits(
    context: Any, monkeypatch: pytest.MonkeyPatch, passed: float, waited: float, advised: bool
) -> None:
    """By a clock of this test's own: it does not matter how busy the machine is."""
    now = iter([0.0, waited, waited, waited])
    monkeypatch.setattr(evaluations, "time", types.SimpleNamespace(monotonic=lambda: next(now)))
    actor = Actor()
    actor.allowed.release(2)
    with queue_of(context, actor) as queue:
        queue._progress.seconds = passed
        queue.submit(5, 1.0, ["a"])
        queue.submit(10, 1.0, ["a"])
        queue.drain()
    assert context.announcer.said == ([training_waits(waited / passed, 5, 10)] if advised else [])
    assert not advised or "30% of the time" in context.announcer.said[0]
