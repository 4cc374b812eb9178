"""Kills of a training and of its judges, at moments that are drawn: while it compiles, in a stage, while it resumes.

What comes out in the end must be what an undisturbed training gives, to the bit.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from score_rl.store.checkpoints import checkpoints

PATIENCE = 300.0  # seconds until a moment must have come
# As a user calls it, but processes judge also on two cores and few episodes.
START = """
from score_rl.rollout import processes
processes.CORES_NEEDED, processes.EPISODES_NEEDED = 1, 1
from score_rl.cli import main
main()
"""


class Training:
    """A training in a process of its own, whose messages are read as they come."""

    def __init__(self, *arguments: object, cache: Path | None = None) -> None:
        self.began = time.monotonic()
        there = {} if cache is None else {"SCORE_RL_CACHE": str(cache)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "train", *map(str, arguments)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | there,
        )  # fmt: skip
        self.said: list[str] = []
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self._lines.put(line)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def has_said(self, words: str) -> bool:
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return any(words in line for line in self.said)

    def wait_for(self, moment: Callable[[], object]) -> bool:
        """Whether the moment came before the end of the training."""
        while not moment():
            if self.is_over:
                return False
            assert self.seconds < PATIENCE, "".join(self.said)
            time.sleep(0.001)
        return True

    def judges(self) -> list[int]:
        """The processes that judge for it."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    command = (entry / "cmdline").read_bytes()
                except (OSError, ValueError, IndexError):
                    continue  # it has just ended
                if parent == self.process.pid and b"score_rl.rollout.worker" in command:
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def end(self) -> None:
        """Let it come to its end, which must be a good one."""
        code = self.process.wait(timeout=300)
        self._reader.join()
        traced = self.has_said("Traceback")
        assert code == 0, "".join(self.said)
        assert not traced, "".join(self.said)


# -- moments -----------------------------------------------------------------------------------------------------------

Kill = Callable[[Training, Path, Random], bool]  # whether somebody was killed


def at_any_time(training: Training, folder: Path, rng: Random) -> bool:
    until = rng.uniform(0.3, 6)
    return training.wait_for(lambda: training.seconds > until) and _end(training)


def while_writing(training: Training, folder: Path, rng: Random) -> bool:
    """The moment a checkpoint is written, or a little later."""
    parts = lambda: list((folder / "fleet-0").rglob(".*.part"))  # noqa: E731
    return training.wait_for(parts) and _end(training, rng.uniform(0, 0.02))


def after_writing(training: Training, folder: Path, rng: Random) -> bool:
    known = {path.name for path in checkpoints(folder / "fleet-0")}
    new = lambda: {path.name for path in checkpoints(folder / "fleet-0")} - known  # noqa: E731
    return training.wait_for(new) and _end(training, rng.uniform(0, 0.1))


def while_compiling(training: Training, folder: Path, rng: Random) -> bool:
    return training.wait_for(lambda: training.has_said("Compiling")) and _end(training, rng.uniform(0, 1.5))


def in_a_stage(training: Training, folder: Path, rng: Random) -> bool:
    """From its first checkpoint on; later ones may have been written already."""
    begun = lambda: list((folder / "fleet-0").glob("stage-*/step-*"))  # noqa: E731
    return training.wait_for(begun) and _end(training, rng.uniform(0, 1.0))


def while_resuming(training: Training, folder: Path, rng: Random) -> bool:
    """Before it has done an update: while it reads data, status and checkpoints, and rewrites the table."""
    opened = lambda: (folder / "training.lock").exists() and training.seconds > 1  # noqa: E731
    return training.wait_for(opened) and _end(training, rng.uniform(0, 2.0))


def a_judge(training: Training, folder: Path, rng: Random) -> bool:
    """Training goes on."""
    if not training.wait_for(training.judges):
        return False
    time.sleep(rng.uniform(0, 0.1))
    found = training.judges()
    if not found:
        return False
    try:
        os.kill(rng.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _end(training: Training, delay: float = 0.0) -> bool:
    time.sleep(delay)
    if training.is_over:
        return False
    training.kill()
    return True


# -- the drill ---------------------------------------------------------------------------------------------------------


def drill(
    request: list[object], folder: Path, kinds: list[Kill], rng: Random, cache: Path | None = None
) -> Counter[str]:
    """One experiment, killed once in each of these ways, in this order; then it comes to its end.

    The answer says how often each was done: a training can be over before its moment comes.
    """
    done: Counter[str] = Counter()
    training = Training(*request, "--out", folder, cache=cache)
    for kind in kinds:
        done[kind.__name__] += kind(training, folder, rng)
        if kind is not a_judge:
            training.kill()
            training = _again(request, folder, cache)
    training.end()
    return done


def _again(request: list[object], folder: Path, cache: Path | None) -> Training:
    """It goes on, or begins anew where it had not written what it is."""
    if (folder / "experiment.json").exists():
        return Training("--resume", folder, cache=cache)
    return Training(*request, "--out", folder, cache=cache)
