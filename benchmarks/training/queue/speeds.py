"""How fast a method trains on a GPU: from the queue's own account, else from what else was measured."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from score_rl.algorithms.registry import get_algorithm
from score_rl.report.results import SPEED, RunResult
from score_rl.report.stored_results import SUMMARY, read_stored

from .account import read_account
from .fleets import Job

SECONDS_TO_START = 25.0  # a process, its data and the compiler
UNKNOWN = 500.0  # updates of all runs in a second, of a method that nobody has timed
TIMED_RUNS = "5"  # of the speeds that `benchmarks.speed` stores, those of a fleet of so many runs


class Speeds:
    """Updates of all runs together in a second, by method."""

    def __init__(self, rates: Mapping[str, float]) -> None:
        self._rates = dict(rates)

    def of(self, method: str) -> float:
        return self._rates.get(method, UNKNOWN)

    def knows(self, method: str) -> bool:
        return method in self._rates

    def seconds(self, job: Job) -> float:
        """How long a job takes with the GPU to itself."""
        return SECONDS_TO_START + job.runs * job.line.updates / self.of(job.line.method)


def measured_speeds(results: Path, accounts: Iterable[Path]) -> Speeds:
    """What is stored in a folder of results, and over it what the queue has measured itself."""
    rates = _from_curves(results) | _from_speed_files(sorted((results / "speed").glob("*.json")))
    return Speeds(rates | _from_accounts(accounts))


def _from_accounts(paths: Iterable[Path]) -> dict[str, float]:
    by_method: dict[str, list[float]] = {}
    for entry in (entry for path in paths for entry in read_account(path)):
        done = entry.updates_done * entry.runs
        if done and entry.device != "cpu" and entry.gpu_seconds > 0:
            by_method.setdefault(entry.method, []).append(done / entry.gpu_seconds)
    return {method: median(rates) for method, rates in by_method.items()}


def _from_speed_files(files: Iterable[Path]) -> dict[str, float]:
    rates: dict[str, float] = {}
    for file in files:
        for method, timed in json.loads(file.read_text()).get("methods", {}).items():
            rate: Any = timed["rates"].get(TIMED_RUNS, {}).get("run_steps_per_second")
            if rate is not None and timed["provenance"]["device"]["platform"] != "cpu":
                rates[method] = max(rate, rates.get(method, 0.0))
    return rates


def _from_curves(results: Path) -> dict[str, float]:
    """Of results that were trained on a GPU, where nothing better is known."""
    rates: dict[str, float] = {}
    for file in sorted(results.glob(f"*/{SUMMARY}")):
        runs = [run for run in read_stored(file.parent) if _on_gpu(run) and SPEED in run.curves]
        for method in {run.algorithm for run in runs}:
            mine = [float(median(run.curves[SPEED].values)) for run in runs if run.algorithm == method]
            rates[method] = max(rates.get(method, 0.0), median(mine) * len(mine) * get_algorithm(method).counts_as)
    return rates


def _on_gpu(run: RunResult) -> bool:
    return bool(run.provenance.get("device", {}).get("platform", "cpu") != "cpu")
