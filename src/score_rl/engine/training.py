"""Training in memory: runs in, trained states out. Nothing is stored, judged or printed; `score_rl.train` does that."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from score_rl.algorithms.algorithm import Algorithm, cycle
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.data.treatment import Treatment
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run, group_fleets
from score_rl.engine.stage_program import StageProgram
from score_rl.errors import InputError
from score_rl.nets.precision import Precision


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What training made of a run, on the host."""

    run: Run
    state: Any  # the algorithm's state after the last update
    treatment: Treatment  # how observations, rewards and actions were scaled for it
    metrics: Mapping[str, Float[np.ndarray, " windows"]]  # the mean over each window

    def act(self, observations: Float[np.ndarray, "batch observation"]) -> Float[np.ndarray, "batch action"]:
        """The learned actions, in the units of the data set."""
        policy = self.run.algorithm.policy(self.state)
        act = _compiled_act(self.run.algorithm)
        return np.asarray(act(self.run.config, self.treatment, policy, np.asarray(observations, np.float32)))


def make_runs(
    algorithm: Algorithm,
    datasets: Iterable[Dataset],
    *,
    seeds: Iterable[int] = (0,),
    settings: Iterable[Mapping[str, Any]] = ({},),
) -> list[Run]:
    """One run for every combination of data set, settings and seed.

    Each item of `settings` holds what differs from the algorithm's defaults.
    """
    datasets, seeds = list(datasets), list(seeds)
    runs = []
    for number, chosen in enumerate(settings):
        config = make_config(algorithm, chosen)
        runs += [
            Run(f"{dataset.name} settings {number} seed {seed}", algorithm, dataset, seed, config)
            for dataset in datasets
            for seed in seeds
        ]
    return runs


def train(
    runs: Sequence[Run], *, updates: int, window: int | None = None, precision: Precision = "float32"
) -> list[RunResult]:
    """Train every run for so many updates; the results stand in the order of the runs.

    Runs whose arrays have the same shapes are trained together as one compiled program. Metrics are means over windows
    of `window` updates; without it, over the whole training. A fleet must fit into memory (`memory.split_fleet`).

    >>> runs = make_runs(get_algorithm("score"), [dataset], seeds=range(4), settings=[{"beta": 0.1}, {"beta": 0.5}])
    >>> results = train(runs, updates=10_000, window=1_000)
    >>> actions = results[0].act(observations)
    """
    results: dict[int, RunResult] = {}
    for fleet in group_fleets(runs):
        for run, result in zip(
            fleet, train_fleet(fleet, updates, updates if window is None else window, precision), strict=True
        ):
            results[id(run)] = result
    return [results[id(run)] for run in runs]


def train_fleet(runs: Sequence[Run], updates: int, window: int, precision: Precision = "float32") -> list[RunResult]:
    """`train` for runs of one shape."""
    whole = cycle(runs[0].algorithm, runs[0].config)
    if window < 1 or window % whole:
        raise InputError(
            f"`window` is {window}; it must be 1 or more and a multiple of {whole}, the algorithm's cycle."
        )
    if updates < 1 or updates % window:
        raise InputError(f"`updates` is {updates}; it must be 1 or more and a multiple of `window`, {window}.")
    program = FleetProgram(runs, precision=precision)
    state = run_stages(program, program.init())
    length = program.updates_per_call(window)
    calls = []
    for start in range(0, updates, length):
        state, metrics = program.advance(state, start, length)
        calls.append(metrics)
    state, treatments, calls = jax.device_get((state, program.inputs.treatment, calls))
    means = {name: _means([call[name] for call in calls], updates // window) for name in calls[0]}
    return [
        RunResult(
            run=run,
            state=jax.tree.map(lambda leaf, number=number: leaf[number], state),
            treatment=jax.tree.map(lambda leaf, number=number: leaf[number], treatments),
            metrics={name: column[:, number] for name, column in means.items()},
        )
        for number, run in enumerate(program.runs)
    ]


def _means(calls: Sequence[Float[np.ndarray, " runs"]], windows: int) -> Float[np.ndarray, "windows runs"]:
    """Calls are of equal length, and so many make a window that there are `windows`; in float64."""
    values = np.asarray(calls, np.float64)
    return values.reshape(windows, -1, values.shape[1]).mean(axis=1)


def run_stages(program: FleetProgram, state: Any, advance: Callable[[int], None] = lambda epochs: None) -> Any:
    """The state that training starts from: every stage is trained until all runs are done with it.

    `advance` is told how many epochs are done; those that were not needed are told at the end.
    """
    for number in range(len(program.algorithm.stages)):
        stage = StageProgram(program, number)
        fitted, active = stage.init(), np.ones(program.devices.width, bool)
        most = stage.stage.epochs(program.runs[0].config)
        for epoch in range(most):
            fitted, metrics = stage.run_epoch(fitted, active, epoch)
            done = bool(np.asarray(metrics["done"]).all())
            advance(most - epoch if done else 1)
            if done:
                break
        state = stage.absorb(state, stage.result(fitted))
    return state


@functools.cache
def _compiled_act(algorithm: Algorithm) -> Any:
    def act(config: Any, treatment: Treatment, policy: Any, observations: Any) -> Any:
        return treatment.action_out(algorithm.act(config, policy, treatment.observe(observations)))

    return jax.jit(act)
