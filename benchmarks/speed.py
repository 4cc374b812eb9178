"""How fast it is, measured side by side in one run and stored with the device's name.

    make speed                                              PyTorch and d3rlpy into .venv, then the default parts
    python benchmarks/speed.py --what score --runs 1 5 15 75 --out benchmarks/results/speed/h200.json
    python benchmarks/speed.py --what methods --methods cql mopo --limit 500 --out FILE

What takes part in a comparison takes turns, so that a busy machine slows all of it. Every part has its own time limit
and stores what it has as it goes; parts, and single methods, are merged into the file. Shapes are halfcheetah's (17
observations, 6 actions), data are noise unless environments are involved, batch 256, float32.

    score       SCORE fleets against two PyTorch loops over critics and a batched PyTorch version
    methods     run-steps per second of every algorithm, alone and as a fleet of 5
    d3rlpy      TD3-BC and CQL against d3rlpy's own, on the CPU
    scale       memory and time as runs, critics, batch and width grow; also a plot
    evaluation  what 10 episodes of every run cost: physics, policy, Python
    overlap     how much of its speed training keeps while it is evaluated
    stretch     75 runs with evaluation for some minutes, continued to 1 M updates
    startup     `score --help`, and the first update with a cold and a warm cache of programs
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import tyro
from rich.console import Console
from timing import (
    ACTION,
    OBSERVATION,
    Calls,
    Clock,
    Engine,
    Results,
    TakesTurns,
    compiled,
    in_turns,
    made_up_data,
    median,
)

from score_rl.algorithms.registry import algorithm_names
from score_rl.engine.program import pack_rows
from score_rl.run.compiled_programs import keep_compiled_programs

Part = Literal["score", "methods", "d3rlpy", "scale", "evaluation", "overlap", "stretch", "startup"]
CONSOLE = Console(highlight=False)


@dataclass(frozen=True)
class Arguments:
    what: tuple[Part, ...] = ("score", "d3rlpy", "startup")
    """The parts to measure."""
    runs: tuple[int, ...] = (1,)
    """score: sizes of the fleets."""
    methods: tuple[str, ...] = ()
    """methods: only these; every algorithm unless given."""
    sizes: tuple[int, ...] = (1, 5)
    """methods: runs at once."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the critics' matrix products, as for `score train`; state, sums and losses are float32 always."""
    rounds: int = 4
    """How often all take their turn; the median counts."""
    seconds: float = 4.0
    """About how long a turn is."""
    limit: float = 540.0
    """Seconds after which a part begins nothing new."""
    base_runs: int = 1
    """scale: runs where critics, batch or width vary; a GPU is full from about 15 on."""
    most_runs: int = 75
    """scale: the largest fleet."""
    datasets: tuple[str, ...] = ("replica:hopper-medium", "replica:hopper-medium-replay", "replica:hopper-expert")
    """overlap, stretch: what to train on; all of equal shape for overlap."""
    seeds: int = 5
    """evaluation, overlap, stretch: runs for each data set."""
    transitions: int = 100_000
    """evaluation, overlap, stretch: rows of each data set."""
    updates: int = 50_000
    """overlap: updates of each run."""
    eval_every: int = 5_000
    """overlap, stretch: updates between two evaluations of 10 episodes per run."""
    minutes: float = 5.0
    """stretch: how long to train."""
    steps: int = 1_000_000
    """stretch: updates to continue to."""
    out: Path | None = None
    """The JSON file to merge the figures into."""


def say(message: str) -> None:
    CONSOLE.print(message, soft_wrap=True)


# -- SCORE against PyTorch -------------------------------------------------------------------------------------------


def torch_versions(seconds: float) -> list[TakesTurns]:
    import torch
    import torch_batched
    import torch_loop

    device = "cuda" if torch.cuda.is_available() else "cpu"
    finish = torch.cuda.synchronize if device == "cuda" else lambda: None
    rows = pack_rows(made_up_data())
    made = {
        "torch-loop": torch_loop.make_update(rows, OBSERVATION, ACTION, device, tuned=False),
        "torch-loop-tuned": torch_loop.make_update(rows, OBSERVATION, ACTION, device, tuned=True),
        "torch-batched": torch_batched.make_update(rows, OBSERVATION, ACTION, device),
    }
    return [Calls(name, update, seconds, finish) for name, (update, _) in made.items()]


def measure_score(asked: Arguments, results: Results, clock: Clock) -> None:
    import torch

    baselines = torch_versions(asked.seconds)
    makers = [partial(Engine, "score", runs, asked.seconds, precision=asked.precision) for runs in asked.runs]
    fleets = list(compiled(makers, clock.over))
    say(f"compiled SCORE for {', '.join(str(fleet.runs) for fleet in fleets)} runs")
    cuda = torch.cuda.is_available()
    about = {
        "what": "SCORE, batch 256, M = 5, 17 observations, 6 actions, float32 state; median over rounds in turns",
        "precision": fleets[0].precision if fleets else asked.precision,
        "torch": torch.__version__,
        "torch_device": torch.cuda.get_device_name() if cuda else f"{torch.get_num_threads()} threads",
    }
    measured: dict[str, list[float]] = {}
    for number in range(asked.rounds):
        if number and clock.over():
            break
        for name, rates in in_turns([*baselines, *fleets], 1, clock.over):
            measured.setdefault(name, []).extend(rates)
        base = {loop.name: measured[loop.name] for loop in baselines}
        figures: dict[str, Any] = about | {
            "baselines": {name: {"updates_per_second": median(r), "rounds": r} for name, r in base.items()},
            "fleets": [
                {
                    "runs": fleet.runs,
                    "run_steps_per_second": median(measured[fleet.name]),
                    "rounds": measured[fleet.name],
                    "times": {
                        name: median([a / b for a, b in zip(measured[fleet.name], rates, strict=True)])
                        for name, rates in base.items()
                    },
                }
                for fleet in fleets
            ],
        }
        results.keep("score", figures)
        say(
            f"round {number + 1}: "
            + ", ".join(f"{name} {rates[-1]:,.0f}" for name, rates in measured.items())
            + " run-steps/s"
        )
    for fleet in figures["fleets"]:
        ratios = ", ".join(f"{ratio:,.1f}× {name}" for name, ratio in fleet["times"].items())
        say(f"{fleet['runs']} runs: {fleet['run_steps_per_second']:,.0f} run-steps/s, {ratios}")


# -- every method ----------------------------------------------------------------------------------------------------


def measure_methods(asked: Arguments, results: Results, clock: Clock) -> None:
    asked_for = [(method, runs) for method in asked.methods or algorithm_names() for runs in asked.sizes]
    makers = [partial(Engine, method, runs, asked.seconds, precision=asked.precision) for method, runs in asked_for]
    entries: dict[str, dict[str, Any]] = {}
    for (method, runs), fleet in zip(asked_for, compiled(makers, clock.over), strict=False):
        rates = [fleet.turn() for _ in range(max(1, asked.rounds - 1))]
        entry = entries.setdefault(method, {"precision": fleet.precision, "rates": {}})
        entry["rates"][str(runs)] = {
            "run_steps_per_second": median(rates),
            "rounds": rates,
            "window": fleet.window,
            "bytes": fleet.bytes,
        }
        results.keep("methods", entry, method)
        say(f"{method}, {runs} runs: {median(rates):,.1f} run-steps/s in windows of {fleet.window:,}")
    for method in dict.fromkeys(method for method, _ in asked_for):
        missing = [
            runs for m, runs in asked_for if m == method and str(runs) not in entries.get(m, {"rates": ()})["rates"]
        ]
        if missing:
            say(f"no time left for {method} with {', '.join(map(str, missing))} runs")


# -- against d3rlpy --------------------------------------------------------------------------------------------------


def measure_d3rlpy(asked: Arguments, results: Results, clock: Clock) -> None:
    import d3rlpy_loop

    if jax.default_backend() != "cpu":
        say("d3rlpy is measured on the CPU against ours on the CPU: set JAX_PLATFORMS=cpu")
        return
    for method in d3rlpy_loop.METHODS:
        if clock.over():
            say(f"no time left for {method}")
            continue
        theirs = Calls("d3rlpy", d3rlpy_loop.make(method, made_up_data())[1], asked.seconds)
        ours = Engine(method, 1, asked.seconds, name="score-rl", precision=asked.precision)
        measured = dict(in_turns([theirs, ours], asked.rounds, clock.over))
        ratio = median([a / b for a, b in zip(measured["score-rl"], measured["d3rlpy"], strict=True)])
        figures = {
            "what": f"{method}, batch 256, {len(made_up_data()):,} rows, CPU; sampling and update, no logging",
            "precision": ours.precision,
            "d3rlpy": d3rlpy_loop.version(),
            "rates": {name: {"updates_per_second": median(r), "rounds": r} for name, r in measured.items()},
            "times": ratio,
        }
        results.keep("d3rlpy", figures, method)
        both = ", ".join(f"{name} {median(rates):,.1f}" for name, rates in measured.items())
        say(f"{method}: {both} updates/s, {ratio:.1f}×")


# -- all of them -----------------------------------------------------------------------------------------------------


def main(asked: Arguments) -> None:
    import speed_fleet

    keep_compiled_programs()
    results = Results(asked.out)
    parts: dict[str, Callable[[Any, Results, Clock], None]] = {
        "score": measure_score,
        "methods": measure_methods,
        "d3rlpy": measure_d3rlpy,
        "scale": speed_fleet.measure_scale,
        "evaluation": speed_fleet.measure_evaluation,
        "overlap": speed_fleet.measure_overlap,
        "stretch": speed_fleet.measure_stretch,
        "startup": speed_fleet.measure_startup,
    }
    device = jax.local_devices()[0]
    say(f"{device.device_kind} ({device.platform}), code {results.stamp()['code'][:12]}")
    for part in asked.what:
        say(f"-- {part}")
        began = time.perf_counter()
        parts[part](asked, results, Clock(asked.limit))
        say(f"{part} took {time.perf_counter() - began:.0f} s")
    if asked.out is not None:
        say(f"stored in {asked.out}")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
