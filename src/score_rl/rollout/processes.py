"""Judging on many cores: processes of their own that act and step physics, one to a core.

Threads of one process share Python's lock, and a step of a few episodes is as much Python as physics: sixteen threads
keep three cores busy. Small judgements and small machines do without (`worth_it`).
"""

import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

import score_rl
from score_rl.envs import available_cores, is_module_named, task_of
from score_rl.errors import InputError
from score_rl.rollout.episodes import Played
from score_rl.rollout.instructions import Instructions
from score_rl.rollout.messages import DamagedMessage, receive, send

CORES_NEEDED = 4
EPISODES_NEEDED = 40  # a process takes half a second to start
MOST_PROCESSES = 32
NICENESS = 10  # of processes that give way
EPISODES_TOGETHER = 10  # of one policy, by one process
MOST_DEATHS = 3  # of processes with the same episodes, before these are given up

# One core to a process, and no screen: whatever would start threads or open windows is told not to.
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MUJOCO_GL": "disable"}


def worth_it(environments: Sequence[str], policies: int, episodes: int) -> bool:
    """Whether processes should judge: where there are cores for them and work.

    An environment of Gymnasium's may be known to this process alone, so it stays in it, unless its name has the module
    that knows it. Then processes judge on any machine: such environments step in Python and cannot share a process.
    """
    if environments and all(map(is_module_named, environments)):
        return True
    enough = available_cores() >= CORES_NEEDED and policies * episodes >= EPISODES_NEEDED
    return enough and all(task_of(environment) or is_module_named(environment) for environment in environments)


def episodes_together(environments: Sequence[str]) -> int:
    """How many episodes of one policy a process steps at once."""
    return 1 if any(map(is_module_named, environments)) else EPISODES_TOGETHER


class Question(NamedTuple):
    """Episodes of one policy."""

    environment: str
    policy: list[np.ndarray]  # its numbers as the instructions take them
    seeds: list[list[int]]

    def parts(self) -> "list[Question]":
        """In pieces of a few episodes."""
        starts = range(0, len(self.seeds), EPISODES_TOGETHER)
        return [self._replace(seeds=self.seeds[start : start + EPISODES_TOGETHER]) for start in starts]


class DiedError(RuntimeError):
    """A process ended with a question, or said what cannot be believed; another may do better."""


class Judges:
    """Processes that all know the same instructions. They start with the first questions and end with `close`.

    A process that dies is replaced, and what it was asked is asked again.
    """

    def __init__(
        self,
        instructions: Instructions,
        physics: str,
        *,
        together: int = EPISODES_TOGETHER,
        beside: bool = False,
        with_noise: bool = False,
    ) -> None:
        """`together` is how many episodes the instructions act on.

        `beside` an accelerator, whose host must never wait for a core, one is left to it, and the rest give way.
        """
        self._instructions, self._physics, self._beside = instructions, physics, beside
        self._together = together
        self._with_noise = with_noise  # behind every observation, see `whole_episodes`
        self._starting = threading.Lock()
        self._all: list[_Process] = []
        self._free: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None
        self._closing = False

    def ask(self, questions: Sequence[Question], stop: Callable[[], bool] = lambda: False) -> list[Played | DiedError]:
        """An answer for each question; longer ones are shared among processes. May be called from several threads:
        whoever asks first is served first, and the next as soon as a process is free.

        In place of an answer that `MOST_DEATHS` processes died of stands the last one's error.
        """
        parts = [question.parts() for question in questions]
        threads = self._started(sum(map(len, parts)))
        futures = [[threads.submit(self._one, part) for part in some] for some in parts]
        pending: set[Future[Played | DiedError]] = {future for some in futures for future in some}
        try:
            while pending:
                done, pending = wait(pending, timeout=0.05, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if stop():
                    raise InterruptedError("the judgement was stopped")
        except BaseException:
            self.close()
            raise
        return [_joined([future.result() for future in some]) for some in futures]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._all]

    def close(self) -> None:
        """End the processes at once, whatever they are doing."""
        self._closing = True
        for process in self._all:
            process.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)  # they read to the ends of the pipes
        for process in self._all:
            process.close()
        self._all, self._free, self._threads = [], queue.SimpleQueue(), None
        self._closing = False

    def _started(self, questions: int) -> ThreadPoolExecutor:
        with self._starting:
            if self._threads is None:
                number = max(1, min(available_cores() - self._beside, MOST_PROCESSES, questions))
                self._all = [self._new_process() for _ in range(number)]
                self._threads = ThreadPoolExecutor(number, thread_name_prefix="asking")
                list(map(self._free.put, self._all))
            return self._threads

    def _new_process(self) -> "_Process":
        return _Process(NICENESS if self._beside else 0)

    def _one(self, question: Question) -> Played | DiedError:
        """Asked again, of a new process, where one dies."""
        died = DiedError("nobody was asked")
        for _ in range(MOST_DEATHS):
            process = self._free.get()
            try:
                return self._asked(process, question)
            except DiedError as error:
                if self._closing:
                    raise
                died, process = error, self._replaced(process)
            finally:
                self._free.put(process)
        return died

    def _asked(self, process: "_Process", question: Question) -> Played:
        if not process.told:
            about = {"episodes": self._together, "physics": self._physics, "with_noise": self._with_noise}
            process.tell(about | {"instructions": self._instructions.to_json()}, self._instructions.constants)
        facts = {"environment": question.environment, "seeds": question.seeds}
        answer = process.ask(facts, question.policy)
        if [array.shape for array in answer] != [(len(question.seeds),)] * len(Played._fields):
            raise DiedError(f"a judging process answered with arrays of shapes {[array.shape for array in answer]}")
        return Played(*answer)

    def _replaced(self, dead: "_Process") -> "_Process":
        dead.kill()
        new = self._new_process()
        self._all = [new if process is dead else process for process in self._all]
        dead.close()
        if self._closing:  # `close` may not have seen it
            new.kill()
        return new


def _joined(parts: Sequence[Played | DiedError]) -> Played | DiedError:
    """The answer to a question from those to its parts."""
    answers = [part for part in parts if isinstance(part, Played)]
    died = next((part for part in parts if isinstance(part, DiedError)), None)
    return died or Played(*map(np.concatenate, zip(*answers, strict=True)))


class _Process:
    def __init__(self, niceness: int) -> None:
        self.told = False
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # what it prints, for when it fails
        here = str(Path(score_rl.__file__).parents[1])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "score_rl.rollout.worker", str(niceness)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=os.environ | ALONE | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for who started it
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, facts, arrays)  # type: ignore[arg-type]
        except (BrokenPipeError, ValueError) as error:  # it ended, or was ended from another thread
            raise self._ended() from error
        self.told = True

    def ask(self, facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.tell(facts, arrays)
        assert self._process.stdout is not None
        try:
            answer = receive(self._process.stdout)  # type: ignore[arg-type]
        except (DamagedMessage, ValueError) as error:  # ValueError: the pipe was closed from another thread
            raise DiedError(f"a judging process sent a damaged message: {error}") from error
        if answer is None:
            raise self._ended()
        facts, arrays = answer
        if "refused" in facts:
            raise InputError(str(facts["refused"]))
        if "failure" in facts:
            raise RuntimeError(f"a judging process failed:\n{facts['failure']}")
        return list(arrays)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(BrokenPipeError):  # what was still to be written
                assert stream is not None
                stream.close()

    def _ended(self) -> DiedError:
        status = self._process.wait()
        self._said.seek(0)
        said = self._said.read()[-2000:].decode(errors="replace").strip()
        return DiedError(f"a judging process ended with status {status}" + (f":\n{said}" if said else "."))
