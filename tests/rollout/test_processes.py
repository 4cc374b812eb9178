"""Processes judge as one process does, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from score_rl.rollout import processes
from score_rl.rollout.episodes import Played, episode_generators, episode_seeds, judge
from score_rl.rollout.instructions import write_down
from score_rl.rollout.messages import DamagedMessage
from score_rl.rollout.processes import EPISODES_TOGETHER, DiedError, Judges, Question

POLICIES, EPISODES = 3, 12  # two pieces, one of them not full


def weights(number: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(11, 3)).astype(np.float32)


def act(numbers: Any, observations: Any) -> jax.Array:
    return jnp.tanh(observations @ numbers[0])


def questions(environment: str = "hopper") -> list[Question]:
    return [Question(environment, [weights(n)], episode_seeds(f"policy {n}", 0, EPISODES)) for n in range(POLICIES)]


@pytest.fixture
def judges() -> Iterator[Judges]:
    judges = Judges(write_down(act, [weights(0)], jnp.zeros((EPISODES_TOGETHER, 11))), "d4rl")
    yield judges
    judges.close()


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def answered(judges: Judges, asked: list[Question]) -> list[Played]:
    answers = judges.ask(asked)
    assert all(isinstance(answer, Played) for answer in answers)
    return [answer for answer in answers if isinstance(answer, Played)]


def test_they_answer_what_one_process_finds(judges: Judges) -> None:
    answers = answered(judges, questions())
    for number, answer in enumerate(answers):

        def alone_acts(observations: np.ndarray, number: int = number) -> np.ndarray:
            return np.asarray(act([weights(number)], observations[0]))[None]

        alone = judge(
            "hopper",
            alone_acts,
            [episode_generators(f"policy {number}", 0, EPISODES)],
        )
        np.testing.assert_array_equal(answer.lengths, alone.lengths[0])
        np.testing.assert_allclose(answer.returns, alone.returns[0], rtol=1e-5)
    assert len({tuple(answer.lengths) for answer in answers}) == POLICIES
    again = answered(judges, questions())
    for answer, other in zip(answers, again, strict=True):
        np.testing.assert_array_equal(answer.returns, other.returns)


def test_closing_ends_them(judges: Judges) -> None:
    answered(judges, questions())
    numbers = judges.pids
    assert numbers
    judges.close()
    assert all(map(ended, numbers))


def test_stopping_ends_them_in_the_middle(judges: Judges) -> None:
    answered(judges, questions())  # started and compiled
    numbers, began = judges.pids, time.monotonic()
    many = [question._replace(seeds=question.seeds * 200) for question in questions()]
    with pytest.raises(InterruptedError):
        judges.ask(many, stop=lambda: True)
    assert time.monotonic() - began < 5
    assert all(map(ended, numbers))


def test_one_that_is_killed_is_replaced_and_asked_again(judges: Judges) -> None:
    expected = answered(judges, questions())
    before = judges.pids
    os.kill(before[0], signal.SIGKILL)
    again = answered(judges, questions())
    for answer, other in zip(again, expected, strict=True):
        np.testing.assert_array_equal(answer.returns, other.returns)
    assert before[0] not in judges.pids
    assert len(judges.pids) == len(before)


def test_one_that_is_killed_in_the_middle_is_replaced(judges: Judges) -> None:
    many = [question._replace(seeds=question.seeds * 20) for question in questions()]  # longer than a few looks
    expected = answered(judges, many)
    killed: list[int] = []

    def kill() -> bool:
        """Called between looks at the answers: some of them are under way."""
        if len(killed) < 2:
            killed.append(judges.pids[0])
            os.kill(killed[-1], signal.SIGKILL)
        return False

    for answer, other in zip(judges.ask(many, stop=kill), expected, strict=True):
        assert isinstance(answer, Played)
        np.testing.assert_array_equal(answer.returns, other.returns)
    assert len(killed) == 2


def test_what_kills_three_is_named_and_the_rest_is_answered(judges: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies whenever it is asked for the second policy."""
    expected = answered(judges, questions())
    asked: list[int] = []
    ask = processes._Process.ask

    def dies(self: Any, facts: dict[str, Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
        if np.array_equal(arrays[0], weights(1)):
            asked.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        return ask(self, facts, arrays)

    monkeypatch.setattr(processes._Process, "ask", dies)
    first, second, third = judges.ask(questions())
    assert isinstance(second, DiedError)
    assert "ended with status -9" in str(second)
    assert len(set(asked)) == 2 * processes.MOST_DEATHS, "two pieces, three processes each"
    for answer, other in ((first, expected[0]), (third, expected[2])):
        assert isinstance(answer, Played)
        np.testing.assert_array_equal(answer.returns, other.returns)


def test_one_that_answers_nonsense_is_replaced(judges: Judges, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answered(judges, questions())
    real, lies = processes.receive, [1, 2]

    def receive(stream: Any) -> Any:
        answer = real(stream)
        if lies.pop() if lies else False:
            raise DamagedMessage("its checksum is another")
        return answer

    monkeypatch.setattr(processes, "receive", receive)
    for answer, other in zip(answered(judges, questions()), expected, strict=True):
        np.testing.assert_array_equal(answer.returns, other.returns)
    assert not lies


def test_what_goes_wrong_there_is_told_here(judges: Judges) -> None:
    with pytest.raises(RuntimeError, match="a judging process failed"):
        judges.ask(questions("walker2d"))  # 17 observations for a policy of 11


def test_beside_an_accelerator_they_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "available_cores", lambda: 3)
    judges = Judges(write_down(act, [weights(0)], jnp.zeros((EPISODES_TOGETHER, 11))), "d4rl", beside=True)
    try:
        answered(judges, questions())
        nice = min(os.getpriority(os.PRIO_PROCESS, 0) + processes.NICENESS, 19)  # nothing gives way further than that
        assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in judges.pids] == [nice] * 2
    finally:
        judges.close()


def test_several_may_ask_at_once(judges: Judges) -> None:
    expected = answered(judges, questions())
    with ThreadPoolExecutor(3) as pool:
        for answers in pool.map(lambda _: answered(judges, questions()), range(3)):
            for answer, other in zip(answers, expected, strict=True):
                np.testing.assert_array_equal(answer.returns, other.returns)


def test_they_do_not_outlive_who_asks() -> None:
    script = textwrap.dedent("""
        import sys, time
        import numpy as np
        from score_rl.rollout.instructions import Instructions, Instruction
        from score_rl.rollout.processes import Judges, Question
        from score_rl.rollout.episodes import episode_seeds
        product = Instruction("dot_general", [1, 0], [2], {"summed": [[1], [0]], "kept": [[], []]})
        judges = Judges(Instructions(1, [], [product], 2), "d4rl")
        question = Question("hopper", [np.zeros((11, 3), np.float32)], episode_seeds("policy", 0, 10))
        judges.ask([question])
        print(*judges.pids, flush=True)
        time.sleep(60)
    """)
    asker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    numbers = [int(number) for number in asker.stdout.readline().split()]
    assert numbers
    asker.kill()
    asker.wait()
    asker.stdout.close()
    for _ in range(100):
        if all(map(ended, numbers)):
            return
        time.sleep(0.1)
    pytest.fail(f"{numbers} go on without anyone to ask them")


@pytest.mark.parametrize(
    ("cores", "environment", "policies", "episodes", "answer"),
    [
        (16, "hopper", 15, 10, True),
        (16, "replica:hopper-medium", 2, 40, True),
        (2, "hopper", 15, 10, False),  # nothing to gain
        (16, "hopper", 1, 10, False),  # nothing to share
        (16, "Hopper-v5", 15, 10, False),  # may be this process's own
        (2, "ogbench.manipspace:scene-singletask-v0", 1, 1, True),  # steps in Python, and any process can make it
    ],
)
def test_when_they_are_worth_it(
    cores: int, environment: str, policies: int, episodes: int, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "available_cores", lambda: cores)
    assert processes.worth_it([environment], policies, episodes) is answer
