"""Updates per second of SCORE: this engine against a plain PyTorch loop over critics, side by side in one run.

    make speed                                   installs PyTorch (a benchmark-only extra) and runs this
    python benchmarks/speed.py --runs 1 5 25 75  fleets of several sizes; on a GPU, that is what they are for

The two take turns, so that a busy machine slows both. Shapes are halfcheetah's (17 observations, 6 actions),
batch 256, M = 5, float32.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from score_rl.algorithms.registry import get_algorithm
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.fleet.program import FleetProgram, pack_rows
from score_rl.fleet.spec import ExperimentSpec, expand_runs
from score_rl.fleet.store import provenance

OBSERVATION, ACTION, ROWS = 17, 6, 200_000


@dataclass(frozen=True)
class Arguments:
    runs: tuple[int, ...] = (1,)
    """Sizes of the fleets to time."""
    rounds: int = 4
    """How often both take their turn; the median counts."""
    seconds: float = 4.0
    """About how long a turn is."""
    out: Path | None = None
    """Store the figures here, as JSON, with what produced them."""


def made_up_data() -> Dataset:
    """Noise of halfcheetah's shape: the speed does not depend on the values."""
    rng = np.random.default_rng(0)
    timeouts = np.zeros(ROWS, bool)
    timeouts[999::1000] = True
    return make_dataset(
        "noise",
        observations=rng.normal(size=(ROWS, OBSERVATION)),
        actions=rng.uniform(-1, 1, (ROWS, ACTION)),
        rewards=rng.uniform(size=ROWS),
        next_observations=rng.normal(size=(ROWS, OBSERVATION)),
        terminals=np.zeros(ROWS, bool),
        timeouts=timeouts,
    )


class Engine:
    """A fleet, a window at a time."""

    def __init__(self, data: Dataset, runs: int, seconds: float) -> None:
        spec = ExperimentSpec(
            algorithm="score", datasets=(data.name,), seeds=tuple(range(runs)), settings={}, steps=2, eval_every=2,
            eval_episodes=1, log_every=2,
        )  # fmt: skip
        self.runs = runs
        self.program = FleetProgram(expand_runs(spec, get_algorithm("score"), [data]))
        self.state, self.step, self.window = self.program.init(), 0, 20
        self.turn()  # compiles
        rate = self.turn() / runs
        self.window = max(20, int(rate * seconds) // 2 * 2)
        self.turn()

    def turn(self) -> float:
        """Run-steps per second over one window."""
        self.program.compile(self.window)
        began = time.perf_counter()
        self.state, metrics = self.program.advance(self.state, self.step, self.window)
        jax.block_until_ready((self.state, metrics))
        self.step += self.window
        return self.window * self.runs / (time.perf_counter() - began)


class Loop:
    """The PyTorch loop, for about as long."""

    def __init__(self, data: Dataset, seconds: float) -> None:
        import torch
        from torch_loop import make_update

        self.torch, self.seconds = torch, seconds
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.name = torch.cuda.get_device_name() if self.device == "cuda" else f"{torch.get_num_threads()} threads"
        self.update = make_update(pack_rows(data), OBSERVATION, ACTION, self.device)
        for _ in range(20):
            self.update()

    def turn(self) -> float:
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < self.seconds:
            for _ in range(10):
                self.update()
            done += 10
            if self.device == "cuda":
                self.torch.cuda.synchronize()
        return done / (time.perf_counter() - began)


def main(asked: Arguments) -> None:
    console = Console()
    data = made_up_data()
    with console.status("Compiling ..."):
        engines = [Engine(data, runs, asked.seconds) for runs in asked.runs]
        loop = Loop(data, asked.seconds)
    loop_rates: list[float] = []
    rates: list[list[float]] = [[] for _ in engines]
    for number in range(asked.rounds):
        with console.status(f"Round {number + 1} of {asked.rounds} ..."):
            loop_rates.append(loop.turn())
            for engine, measured in zip(engines, rates, strict=True):
                measured.append(engine.turn())
    base = float(np.median(loop_rates))
    device = jax.local_devices()[0]
    table = Table("what", "run-steps per second", "of the loop", title="SCORE, batch 256, M = 5", title_justify="left")
    table.add_row(f"PyTorch loop over critics ({loop.name})", f"{base:,.0f}", "1.0×")
    stored = []
    for engine, measured in zip(engines, rates, strict=True):
        rate = float(np.median(measured))
        ratio = float(np.median(np.array(measured) / np.array(loop_rates)))
        what = "one run" if engine.runs == 1 else f"{engine.runs} runs"
        table.add_row(f"score-rl, {what} ({device.device_kind})", f"{rate:,.0f}", f"{ratio:,.1f}×")
        stored.append({"runs": engine.runs, "run_steps_per_second": rate, "ratio": ratio, "rounds": measured})
    console.print(table)
    if asked.out is not None:
        import torch

        result = {
            "what": "SCORE, batch 256, M = 5, 17 observations, 6 actions, float32; median over rounds taken in turns",
            "torch_loop_steps_per_second": base,
            "torch_rounds": loop_rates,
            "torch": torch.__version__,
            "score_rl": stored,
            "provenance": provenance(),
        }
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
