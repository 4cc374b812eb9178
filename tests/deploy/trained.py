"""Policies of every method after a few updates on logs of the heating control, and files of them."""

from functools import cache
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset, make_dataset
from score_rl.data.labels import Labels
from score_rl.deploy.limits import fit_limits
from score_rl.deploy.policy import TrainedPolicy
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.run.asking import AskedRun
from tests.algorithms.test_contract import small_settings
from tests.plants import heating

UPDATES = 12  # a multiple of every cycle


@cache
def logs() -> Dataset:
    """40 episodes; columns of very different sizes, actions with bounds far from ±1."""
    recorded = heating.record(episodes=40)
    return make_dataset(
        "heating",
        observations=recorded.observations,
        actions=recorded.actions,
        rewards=recorded.rewards,
        terminals=np.zeros(len(recorded), bool),
        timeouts=recorded.ends,
        action_bounds=(heating.ACTION_LOW, heating.ACTION_HIGH),
        labels=Labels(heating.OBSERVATIONS, heating.ACTIONS, heating.UNITS),
    )


@cache
def asked(name: str) -> AskedRun:
    """A run of a method, to be asked."""
    algorithm = get_algorithm(name)
    settings: dict[str, Any] = small_settings(algorithm)
    if name not in ("mopo", "morel"):
        settings["normalise_states"] = True
    config = make_config(algorithm, settings)
    program = FleetProgram([Run("seed=0", algorithm, logs(), 0, config)])
    state, _ = program.advance(program.init(), 0, UPDATES)
    state, treatment = jax.tree.map(lambda leaf: leaf[0], jax.device_get((state, program.inputs.treatment)))
    return AskedRun(algorithm, config, state, treatment)


@cache
def policy(name: str, flags: bool = True) -> TrainedPolicy:
    """What is exported of it."""
    run = asked(name)
    measure = None if run.algorithm.uncertainty is None else run.raw_uncertainty
    limits = fit_limits(logs(), measure) if flags else None
    origin = {"run": f"{name}_seed=0", "data": {"checksum": logs().checksum}, "code": "a test"}
    return TrainedPolicy(run.algorithm, run.config, run.state, run.treatment, logs().labels, limits, origin)


def observations(rows: int, seed: int = 1) -> np.ndarray:
    """Wider than the data: some far outside."""
    rng = np.random.default_rng(seed)
    recorded = logs().observations
    chosen = recorded[rng.integers(0, len(recorded), rows)]
    return (chosen + rng.normal(size=chosen.shape) * recorded.std(axis=0)).astype(np.float32)
