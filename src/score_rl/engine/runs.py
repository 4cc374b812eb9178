"""Runs, and the fleets that they form."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.settings import is_traced
from score_rl.data.dataset import Dataset


def run_identity(algorithm: str, checksum: str, seed: int) -> str:
    """What a run's random numbers come from: algorithm, data and seed; neither settings nor position in a fleet."""
    return f"{algorithm}|{checksum}|{seed}"


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: an algorithm on a data set with a seed and a setting."""

    id: str
    algorithm: Algorithm
    dataset: Dataset
    seed: int
    config: Any

    @property
    def identity(self) -> str:
        return run_identity(self.algorithm.name, self.dataset.checksum, self.seed)

    @property
    def fleet_key(self) -> tuple[Any, ...]:
        """Runs that agree in this train as one fleet."""
        static = [
            (field.name, getattr(self.config, field.name))
            for field in dataclasses.fields(self.config)
            if not is_traced(field)
        ]
        return (self.algorithm.name, self.dataset.observation_dim, self.dataset.action_dim, *static)

    def key_seed(self) -> tuple[int, int]:
        digest = hashlib.sha256(self.identity.encode()).digest()
        return int.from_bytes(digest[:4], "little") >> 1, int.from_bytes(digest[4:8], "little") >> 1


def group_fleets(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of equal shape together, in the order in which the shapes first appear."""
    fleets: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        fleets.setdefault(run.fleet_key, []).append(run)
    return list(fleets.values())
