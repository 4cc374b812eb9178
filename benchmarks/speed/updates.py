"""Updates per second of fleets, beside PyTorch and d3rlpy on the same machine."""

from functools import partial
from typing import Any

import jax

from score_rl.algorithms.registry import algorithm_names
from score_rl.engine.batches import pack_rows

from .arguments import Arguments, say
from .timing import (
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

# -- SCORE against PyTorch -------------------------------------------------------------------------------------------


def torch_versions(seconds: float) -> list[TakesTurns]:
    import torch

    from . import torch_batched, torch_loop

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
    from . import d3rlpy_loop

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
