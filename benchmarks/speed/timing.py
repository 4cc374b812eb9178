"""What the parts of `speed.py` share: made-up data, things that take turns, and the file that figures go to."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from score_rl.algorithms.algorithm import Algorithm, cycle
from score_rl.algorithms.registry import get_algorithm
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.disk import write_file
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.engine.stage_program import StageProgram
from score_rl.envs import available_cores
from score_rl.run.expansion import expand_runs
from score_rl.run.precision import choose_precision
from score_rl.store.provenance import provenance
from score_rl.store.request import AlgorithmRequest, ExperimentSpec

OBSERVATION, ACTION = 17, 6  # halfcheetah's
WINDOW, WINDOW_ON_CPU = 2_000, 20  # updates that a call does: far more than a call costs
# Settings with which an update of an untrained model costs what one of a trained model does. MOReL fits its baseline to
# as many states as rollouts have; trained, they last 635 of 700 steps on hopper-medium, untrained they HALT at once.
AS_TRAINED: dict[str, dict[str, Any]] = {"morel": {"pessimism": 1e-6}}


@cache
def made_up_data(rows: int = 200_000) -> Dataset:
    """Noise of halfcheetah's shape: the speed does not depend on the values."""
    rng = np.random.default_rng(0)
    timeouts = np.zeros(rows, bool)
    timeouts[999::1000] = True
    return make_dataset(
        "noise",
        observations=rng.normal(size=(rows, OBSERVATION)),
        actions=rng.uniform(-1, 1, (rows, ACTION)),
        rewards=rng.uniform(size=rows),
        next_observations=rng.normal(size=(rows, OBSERVATION)),
        terminals=np.zeros(rows, bool),
        timeouts=timeouts,
    )


def made_up_runs(algorithm: str, number: int, settings: Mapping[str, Any] | None = None) -> list[Run]:
    chosen = {name: (value,) for name, value in (settings or {}).items()}
    spec = ExperimentSpec(
        algorithms=(AlgorithmRequest(algorithm, chosen),), datasets=("noise",), seeds=tuple(range(number)), steps=2,
        eval_every=2, eval_episodes=1, log_every=2,
    )  # fmt: skip
    return expand_runs(spec, [made_up_data()])


def window_of(algorithm: Algorithm, config: Any, platform: str) -> int:
    """Updates of a call: whole cycles, and fewer where one update stands for many."""
    whole, wanted = cycle(algorithm, config), WINDOW_ON_CPU if platform == "cpu" else WINDOW
    return whole * max(1, wanted // (whole * algorithm.counts_as))


class TakesTurns(Protocol):
    name: str

    def turn(self) -> float:
        """Work for a while; run-steps per second."""
        ...


class Engine:
    """A fleet of this library, a window at a time; compiled when made, started by its first turn.

    Stages before training are not run: what they come to is absorbed untrained. With the settings of `AS_TRAINED` an
    update costs the same whatever numbers the model of the task holds.
    """

    def __init__(
        self,
        algorithm: str,
        runs: int,
        seconds: float,
        settings: Mapping[str, Any] | None = None,
        name: str = "",
        precision: str = "auto",
    ) -> None:
        self.precision = choose_precision(get_algorithm(algorithm), precision)
        self.name, self.runs, self._seconds = name or f"{algorithm} × {runs}", runs, seconds
        settings = AS_TRAINED.get(algorithm, {}) | dict(settings or {})
        self.program = FleetProgram(made_up_runs(algorithm, runs, settings), precision=self.precision)
        wanted = window_of(self.program.algorithm, self.program.runs[0].config, jax.default_backend())
        self.window = self.program.updates_per_call(wanted)  # as training cuts it, where that takes long
        self.program.compile(self.window)
        self._state: Any = None
        self._step, self._windows = 0, 1

    @property
    def bytes(self) -> int:
        """What the compiler says the program needs on the device."""
        return self.program.memory(self.window)

    def turn(self) -> float:
        if self._state is None:
            self._start()
        return self._advance()

    def _start(self) -> None:
        self._state = self.program.init()
        for number in range(len(self.program.algorithm.stages)):
            stage = StageProgram(self.program, number)
            self._state = stage.absorb(self._state, stage.result(stage.init()))
        self._advance()
        self._windows = max(1, round(self._advance() / self.runs * self._seconds / self.window))

    def _advance(self) -> float:
        began = time.perf_counter()
        for _ in range(self._windows):
            self._state, metrics = self.program.advance(self._state, self._step, self.window)
            self._step += self.window
        jax.block_until_ready((self._state, metrics))
        return self._windows * self.window * self.runs / (time.perf_counter() - began)


def compiled(
    makers: Sequence[Callable[[], Engine]], out_of_time: Callable[[], bool], workers: int | None = None
) -> Iterator[Engine]:
    """Engines in their order, a few compiled at a time where there are cores for it, and none while one is timed."""
    workers = workers or max(1, available_cores() // 4)
    for first in range(0, len(makers), workers):
        if out_of_time():
            return
        with ThreadPoolExecutor(max_workers=workers) as pool:
            engines = [pool.submit(maker) for maker in makers[first : first + workers]]
        for engine in engines:
            yield engine.result()


class Calls:
    """Any function that does one update, called for about as long as a turn."""

    def __init__(
        self, name: str, update: Callable[[], None], seconds: float, finish: Callable[[], None] = lambda: None
    ) -> None:
        self.name, self._update, self._seconds, self._finish = name, update, seconds, finish
        for _ in range(10):
            update()
        finish()

    def turn(self) -> float:
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < self._seconds:
            for _ in range(5):
                self._update()
            done += 5
            self._finish()
        return done / (time.perf_counter() - began)


def in_turns(
    contestants: list[TakesTurns], rounds: int, out_of_time: Callable[[], bool]
) -> "list[tuple[str, list[float]]]":
    """Each in its turn, so that a busy machine slows all; the rates of every round."""
    rates: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        if number and out_of_time():
            break
        for contestant in contestants:
            rates[contestant.name].append(contestant.turn())
    return list(rates.items())


def median(values: list[float]) -> float:
    return float(np.median(values))


class Results:
    """A JSON file of figures by part; every entry says when and by what it was measured. Parts are merged."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.parts: dict[str, Any] = {}
        if path is not None and path.exists():
            self.parts = json.loads(path.read_text())

    @staticmethod
    @cache
    def stamp() -> dict[str, Any]:
        return provenance()

    def keep(self, part: str, figures: Mapping[str, Any], entry: str | None = None) -> None:
        """Replace a part, or one entry of it; written at once, so that what is measured is not lost."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        stamped = {**figures, "measured": now, "provenance": self.stamp()}
        if entry is None:
            self.parts[part] = stamped
        else:
            self.parts.setdefault(part, {})[entry] = stamped
        if self.path is not None:
            write_file(self.path, json.dumps(self.parts, indent=1) + "\n")


class Clock:
    """The time limit of a part."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def over(self) -> bool:
        return time.monotonic() > self._until

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())
