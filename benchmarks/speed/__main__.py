"""How fast it is, measured side by side in one run and stored with the device's name.

    make speed                                          PyTorch and d3rlpy into .venv, then the default parts
    python -m benchmarks.speed --what score --runs 1 5 15 75 --out benchmarks/results/speed/h200.json
    python -m benchmarks.speed --what methods --methods cql mopo --limit 500 --out FILE

All that is compared takes turns, so that a busy machine slows all of it. Every part has its own time limit and stores
what it has as it goes. Parts, and single methods, are merged into the file. Shapes are halfcheetah's (17 observations,
6 actions), batch 256, float32. Data are noise unless environments are involved.

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

import jax
import tyro

from score_rl.run.compiled_programs import keep_compiled_programs

from .arguments import Arguments, say
from .judging import measure_evaluation
from .scale import measure_scale
from .startup import measure_startup
from .timing import Clock, Results
from .updates import measure_d3rlpy, measure_methods, measure_score
from .whole_training import measure_overlap, measure_stretch

PARTS: dict[str, Callable[[Arguments, Results, Clock], None]] = {
    "score": measure_score,
    "methods": measure_methods,
    "d3rlpy": measure_d3rlpy,
    "scale": measure_scale,
    "evaluation": measure_evaluation,
    "overlap": measure_overlap,
    "stretch": measure_stretch,
    "startup": measure_startup,
}


def main(asked: Arguments) -> None:
    keep_compiled_programs()
    results = Results(asked.out)
    device = jax.local_devices()[0]
    say(f"{device.device_kind} ({device.platform}), code {results.stamp()['code'][:12]}")
    for part in asked.what:
        say(f"-- {part}")
        began = time.perf_counter()
        PARTS[part](asked, results, Clock(asked.limit))
        say(f"{part} took {time.perf_counter() - began:.0f} s")
    if asked.out is not None:
        say(f"stored in {asked.out}")


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
