"""Time and memory of an update as runs, critics, batch and width grow."""

from functools import partial
from typing import Any

import numpy as np

from .arguments import Arguments, say
from .timing import Clock, Engine, Results, compiled

RUNS, CRITICS, BATCHES, WIDTHS = (1, 5, 15, 25, 50, 75), (5, 10, 20, 50), (100, 256, 512, 1024), (256, 512, 1024)


def scale_points(base_runs: int, most_runs: int) -> list[dict[str, int]]:
    """One thing grows at a time."""
    base = {"runs": base_runs, "critics": 5, "batch": 256, "width": 256}
    grown = [
        *({**base, "runs": runs} for runs in RUNS if runs <= most_runs),
        *({**base, "critics": critics} for critics in CRITICS),
        *({**base, "batch": batch} for batch in BATCHES),
        *({**base, "width": width} for width in WIDTHS),
    ]
    return [point for number, point in enumerate(grown) if point not in grown[:number]]


def measure_scale(asked: Arguments, results: Results, clock: Clock) -> None:
    points: list[dict[str, Any]] = []
    wanted = scale_points(asked.base_runs, asked.most_runs)
    makers = [
        partial(
            Engine,
            "score",
            point["runs"],
            asked.seconds / 2,
            {"critics": point["critics"], "batch_size": point["batch"], "hidden": (point["width"],) * 2},
            precision=asked.precision,
        )
        for point in wanted
    ]
    for point, fleet in zip(wanted, compiled(makers, clock.over), strict=False):
        rate = float(np.median([fleet.turn() for _ in range(2)]))
        memory = {"bytes": fleet.bytes, "data_bytes": fleet.program.rows.nbytes}
        points.append({**point, "run_steps_per_second": rate, **memory})
        about = "SCORE on 200,000 rows of halfcheetah's shape; bytes are the compiler's, the data included"
        results.keep(
            "scale", {"what": about, "precision": fleet.precision, "base_runs": asked.base_runs, "points": points}
        )
        say(f"{point}: {rate:,.0f} run-steps/s, {points[-1]['bytes'] / 2**20:,.0f} MiB")
    for point in wanted[len(points) :]:
        say(f"no time left for {point}")
