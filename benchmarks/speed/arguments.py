"""What `python -m benchmarks.speed` is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

Part = Literal["score", "methods", "d3rlpy", "scale", "evaluation", "overlap", "stretch", "startup"]


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
    Console(highlight=False).print(message, soft_wrap=True)
