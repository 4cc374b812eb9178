"""What the parts of `speed.py` share: made-up data, things that take turns, and the file that figures go to."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from score_rl.algorithms.algorithm import cycle
from score_rl.algorithms.registry import get_algorithm
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.fleet.program import FleetProgram
from score_rl.fleet.spec import ExperimentSpec, Run, expand_runs
from score_rl.fleet.store import provenance
from score_rl.nets.precision import Precision

OBSERVATION, ACTION = 17, 6  # halfcheetah's


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
        algorithm=algorithm, datasets=("noise",), seeds=tuple(range(number)), settings=chosen, steps=2, eval_every=2,
        eval_episodes=1, log_every=2,
    )  # fmt: skip
    return expand_runs(spec, get_algorithm(algorithm), [made_up_data()])


class TakesTurns(Protocol):
    name: str

    def turn(self) -> float:
        """Work for a while; run-steps per second."""
        ...


class Engine:
    """A fleet of this library, a window at a time.

    Stages before training are not run: what they come to is absorbed untrained. An update costs the same whatever
    numbers the model of the task holds.
    """

    def __init__(
        self,
        algorithm: str,
        runs: int,
        seconds: float,
        settings: Mapping[str, Any] | None = None,
        name: str = "",
        precision: Precision = "float32",
    ) -> None:
        self.name, self.runs = name or f"{algorithm} × {runs}", runs
        began = time.perf_counter()
        self.program = FleetProgram(made_up_runs(algorithm, runs, settings), precision=precision)
        config = self.program.runs[0].config
        self.cycle = cycle(self.program.algorithm, config)
        self.state, self.step = self.program.init(), 0
        for number in range(len(self.program.algorithm.stages)):
            stage = self.program.stage(number)
            self.state = stage.absorb(self.state, stage.result(stage.init()))
        self.window = self.cycle * max(1, 20 // self.cycle)
        self.turn()  # compiles
        self.seconds_to_first = time.perf_counter() - began
        rate = self.turn() / runs
        wanted = int(rate * seconds) // self.cycle * self.cycle
        if wanted > self.window:
            self.window = wanted
            self.turn()

    @property
    def bytes(self) -> int:
        """What the compiler says the program needs on the device."""
        return self.program.memory(self.window)

    def turn(self) -> float:
        self.program.compile(self.window)
        began = time.perf_counter()
        self.state, metrics = self.program.advance(self.state, self.step, self.window)
        jax.block_until_ready((self.state, metrics))
        self.step += self.window
        return self.window * self.runs / (time.perf_counter() - began)


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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_suffix(".part")
            beside.write_text(json.dumps(self.parts, indent=1) + "\n")
            beside.replace(self.path)


class Clock:
    """The time limit of a part."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def over(self) -> bool:
        return time.monotonic() > self._until

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())
