"""A large cluster with the real driver and fake training: what the driver does and what storage carries.

`python -m benchmarks.cluster.simulation --runs 10000 --gpus 100`

Real are the driver, the attempts, the gathering, the status, and every file of these. The clock is not: it goes on by
half a second whenever the driver waits. Tasks write what ours write (progress, measurements, status, a checkpoint), but
a checkpoint is small; what real ones weigh is computed from the states' shapes.
"""

import argparse
import dataclasses
import heapq
import json
import random
import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from benchmarks.cluster.storing import store
from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.registry import get_algorithm
from score_rl.cluster import driver, view
from score_rl.cluster.engines import Ended
from score_rl.cluster.orders import FINISHED, Order, Outcome
from score_rl.cluster.planning import Group, plan_parts
from score_rl.cluster.speed import Pace
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.engine.runs import Run
from score_rl.run.expansion import run_record
from score_rl.run.messages import Announcer
from score_rl.store.checkpoints import save_checkpoint
from score_rl.store.folder import Folder
from score_rl.store.metrics import Row, write_rows
from score_rl.store.parts import OUTCOME, PARTS, PROGRESS
from score_rl.store.records import DatasetRecord, ExperimentRecord, RunStatus, StatusRecord, as_json
from score_rl.store.request import AlgorithmRequest, ExperimentSpec

DIMENSIONS = Shapes(11, 3)  # of Hopper's data
STEPS = 1_000_000
BEATS = 20


@dataclasses.dataclass
class Clock:
    """Seconds of the cluster."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class FakeCluster:
    """Tasks that take as long as a pace says and die as often as machines do."""

    title = "a simulated cluster"

    def __init__(self, gpus: int, pace: Pace, rows: int, lifetime: float, clock: Clock) -> None:
        """`lifetime` is the mean time in seconds until a machine dies."""
        self._gpus, self._pace, self._rows, self._lifetime, self._clock = gpus, pace, rows, lifetime, clock
        self._rng = random.Random(0)
        self._events: list[tuple[float, int, bool]] = []  # when a task ends, of which fleet, and whether it is done
        self._running: dict[int, tuple[Order, float, int]] = {}  # order, when it began, and from which update
        self.own_seconds = 0.0  # of CPU that the fake itself took
        self.deaths = self.tasks = self._beats = 0

    def survey(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        return []

    def ask(self, question: Mapping[str, Any], needs: Sequence[Any], device: str) -> dict[str, Any]:
        return {}

    def places(self) -> int:
        return self._gpus

    def active(self) -> int:
        return len(self._running)

    def adopt(self, order: Order) -> bool:
        return False

    def avoid(self, place: str) -> bool:
        return False

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def start(self, order: Order) -> None:
        began = time.process_time()
        newest = sorted((order.path / f"fleet-{order.number}").glob("step-*"))
        step = int(newest[-1].stem[5:]) if newest else 0
        seconds = (STEPS - step) * self._pace.of(len(order.runs))
        dies = self._rng.expovariate(1 / self._lifetime)
        heapq.heappush(self._events, (self._clock() + min(seconds, dies), order.number, seconds <= dies))
        self._running[order.number] = order, self._clock(), step
        self.tasks += 1
        self._tell(order, step)
        self.own_seconds += time.process_time() - began

    def ended(self, seconds: float) -> list[Ended]:
        began = time.process_time()
        self._clock.now += seconds
        over = []
        while self._events and self._events[0][0] <= self._clock():
            when, number, done = heapq.heappop(self._events)
            order, since, step = self._running.pop(number)
            reached = STEPS if done else step + int((when - since) / self._pace.of(len(order.runs)))
            self._write(order, int(reached) // 5_000 * 5_000)
            self.deaths += not done
            over.append(Ended(number, Outcome(FINISHED) if done else None, "its machine died"))
        self.own_seconds += time.process_time() - began
        return over

    def beat(self) -> None:
        """What every machine writes every two seconds; here now and then, since the driver reads it all the same."""
        began = time.process_time()
        self._beats += 1
        if self._beats % BEATS:
            return
        for order, since, step in self._running.values():
            self._tell(order, step + int((self._clock() - since) / self._pace.of(len(order.runs))))
        self.own_seconds += time.process_time() - began

    def _tell(self, order: Order, step: int) -> None:
        rate = 1 / self._pace.of(len(order.runs))
        said = {"step": step, "updates_per_second": rate, "machine": "gpu", "device": "GPU", "at": time.time()}
        (order.path / PROGRESS).write_text(json.dumps(said))

    def _write(self, order: Order, step: int) -> None:
        ids = [run.id for run in order.runs]
        save_checkpoint(order.path / f"fleet-{order.number}", step, {"state.x": np.zeros(1)}, {"runs": ids})
        every = max(1, STEPS // self._rows)
        write_rows(order.path, [Row(run, at, "train/q", 1.5) for run in ids for at in range(every, step + 1, every)])
        done = step >= STEPS
        runs = {run: RunStatus("finished" if done else "training", step) for run in ids}
        (order.path / "status.json").write_bytes(as_json(StatusRecord("running", runs=runs)))
        if done:
            (order.path / OUTCOME).write_text(Outcome(FINISHED).to_json())


def small_dataset() -> Dataset:
    rng, rows = np.random.default_rng(0), 200
    return make_dataset(
        "small",
        observations=rng.normal(size=(rows, DIMENSIONS.observation)),
        actions=rng.uniform(-1, 1, (rows, DIMENSIONS.action)),
        rewards=rng.normal(size=rows),
        next_observations=rng.normal(size=(rows, DIMENSIONS.observation)),
        terminals=np.zeros(rows, bool),
        timeouts=np.arange(rows) % 100 == 99,
    )


def bytes_of_run() -> int:
    """What a run of SCORE with its own settings weighs in a checkpoint."""
    algorithm = get_algorithm("score")
    state = jax.eval_shape(lambda: algorithm.init(algorithm.Config(), DIMENSIONS, jax.random.key(0)))
    sizes = (int(np.prod(leaf.shape)) * getattr(leaf.dtype, "itemsize", 4) for leaf in jax.tree.leaves(state))
    return sum(sizes)


def simulate(out: Path, runs: int, gpus: int, alone: bool, rows: int, pace: Pace, lifetime: float) -> dict[str, Any]:
    """Every run is trained once, and what that cost. `alone`: every run is a fleet of its own."""
    dataset, algorithm = small_dataset(), get_algorithm("score")
    made = [Run(f"run-{n}", algorithm, dataset, n, algorithm.Config()) for n in range(runs)]
    groups = [Group(1, 1, pace)] * runs if alone else [Group(runs, runs, pace)]
    began = time.process_time()
    sizes = [size for parts in plan_parts(groups, gpus) for size in parts] if not alone else [1] * runs
    planning = time.process_time() - began
    ends = np.cumsum(sizes)
    fleets = [made[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    records = [run_record(run, fleet, row) for fleet, mine in enumerate(fleets) for row, run in enumerate(mine)]
    spec = ExperimentSpec(
        algorithms=(AlgorithmRequest("score"),), datasets=("small",), seeds=tuple(range(runs)), steps=STEPS,
        eval_every=5_000, eval_episodes=10, log_every=5_000,
    )  # fmt: skip
    facts = DatasetRecord(dataset.checksum, len(dataset), 2, None, {})
    folder = Folder.create(out, ExperimentRecord(spec, {}, {"small": facts}, tuple(records)))
    clock = Clock()
    engine = FakeCluster(gpus, pace, rows, lifetime, clock)

    class Simulated(driver.Driver):
        def _look(self, seen: view.View) -> None:
            if seen.wants_more:
                engine.beat()
            super()._look(seen)

    (folder.path / PARTS).mkdir()
    before, wall = time.process_time(), time.perf_counter()
    driver.Driver.clock = view.View.clock = clock  # type: ignore[assignment]
    announcer = Announcer(Console(quiet=True), quiet=True)
    Simulated(spec, folder, engine, announcer, tensorboard=False, shared=True).train(fleets)
    used, wall = time.process_time() - before, time.perf_counter() - wall
    status = folder.status()
    assert {run.state for run in status.runs.values()} == {"finished"}
    assert len(status.runs) == runs
    lines = sum(1 for _ in folder.metrics_path.open("rb")) - 1
    assert lines == runs * rows, f"{lines} rows, {runs * rows} were measured"
    own, peak, began = used - engine.own_seconds, _peak(), time.process_time()
    assert len(folder.metrics()) == lines
    reading = time.process_time() - began
    return {
        "runs": runs, "gpus": gpus, "fleets": len(sizes), "largest fleet": max(sizes), "tasks": engine.tasks,
        "machines lost": engine.deaths, "hours of the cluster": clock.now / 3600,
        "planning, s": planning, "driver, s of CPU": own, "driver, share of a core": own / clock.now,
        "driver and fake, s of wall time": wall,
        "metrics.csv, MB": folder.metrics_path.stat().st_size / 1e6,
        "experiment.json, MB": (folder.path / "experiment.json").stat().st_size / 1e6,
        "memory of driver and fake, MB": peak,
        "reading metrics.csv, rows": lines, "reading metrics.csv, s of CPU": reading,
        "reading metrics.csv, MB more of memory": _peak() - peak,
    }  # fmt: skip


def _peak() -> float:
    """MB of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def storage(runs: int, gpus: int, minutes: float) -> dict[str, float]:
    """What checkpoints are for shared storage."""
    one = bytes_of_run()
    each = one * runs / gpus
    return {
        "a run in a checkpoint, MB": one / 1e6,
        "a checkpoint of a fleet, GB": each / 1e9,
        "checkpoints a second": gpus / (60 * minutes),
        "written, GB/s": runs * one / (60 * minutes) / 1e9,
        "on storage, GB": 3 * runs * one / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--gpus", type=int, default=100)
    parser.add_argument("--alone", action="store_true", help="every run is a fleet of its own")
    parser.add_argument("--rows", type=int, default=200, help="measurements of each run")
    parser.add_argument("--fixed", type=float, default=0.0002, help="seconds of an update of any fleet")
    parser.add_argument("--per-run", type=float, default=0.00001, help="seconds more for each run in it")
    parser.add_argument("--lifetime", type=float, default=24.0, help="hours until a machine dies, on average")
    parser.add_argument("--checkpoint-minutes", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="JSON file for the numbers, added to what is in it")
    asked = parser.parse_args()
    pace = Pace(asked.fixed, asked.per_run)
    with tempfile.TemporaryDirectory() as scratch:
        found = simulate(
            Path(scratch) / "out", asked.runs, asked.gpus, asked.alone, asked.rows, pace, asked.lifetime * 3600
        )
    found |= storage(asked.runs, asked.gpus, asked.checkpoint_minutes)
    for name, value in found.items():
        print(f"{name:<40} {value:,.3f}" if isinstance(value, float) else f"{name:<40} {value:,}")
    store(asked.out, f"{asked.runs} runs{', each a fleet' if asked.alone else ''}", found)


if __name__ == "__main__":
    main()
