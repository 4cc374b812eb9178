"""Fitted Q evaluation beside d3rlpy's: the same logs, the same twenty policies, the correlation of what they say.

    python -m benchmarks.judging.d3rlpy_parity --out benchmarks/results/judging-d3rlpy.json

d3rlpy's own `FQE` samples and updates as it does; our policies stand where it expects an algorithm. Both get
observations standardised, actions within ±1 and rewards scaled alike, networks of the same widths, the same discount,
learning rate and number of updates. What differs stays: d3rlpy copies its targets every hundred updates and ours
follow, ours has layer normalisation and several critics on bootstrap samples. `make speed` installs what it needs.
"""

import dataclasses
import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tyro

from score_rl.data.dataset import Dataset
from score_rl.disk import write_file
from score_rl.judge.candidates import Candidates
from score_rl.judge.fitting import Effort, fit_q
from score_rl.store.provenance import provenance
from tests.plants import heating

from .measures import rank_correlation
from .sets import heating_logs

POLICIES, EPISODES, DISCOUNT = 20, 100, 0.9
UPDATES, BATCH, RATE, HIDDEN = 3_000, 128, 1e-3, (64, 64)


@dataclasses.dataclass(frozen=True)
class Arguments:
    out: Path
    """File of the result."""
    updates: int = UPDATES
    """Of every policy's critics."""


def policies(number: int = POLICIES, seed: int = 0) -> dict[str, heating.Policy]:
    """Controllers of the heating: good, mediocre and poor ones, drawn once."""
    rng = np.random.default_rng(seed)
    drawn = zip(rng.uniform(5, 100, number), rng.uniform(30, 110, number), rng.uniform(1000, 2300, number), strict=True)
    return {f"controller {n}": heating.controller(*each) for n, each in enumerate(drawn)}


def ours(dataset: Dataset, chosen: Mapping[str, heating.Policy], updates: int) -> np.ndarray:
    """The value of each policy per step, in the units of the rewards."""
    effort = Effort(updates=updates, behaviour_updates=updates, hidden=HIDDEN, batch_size=BATCH, learning_rate=RATE)
    candidates = Candidates(chosen, dataset.action_low, dataset.action_high)
    fitted = fit_q(dataset, candidates, DISCOUNT, effort)
    starts = dataset.observations[dataset.trajectories[:, 0]]
    behaviour = np.zeros((1, len(starts), dataset.action_dim)) + dataset.action_low
    values = fitted.per_step(starts, np.concatenate([candidates.act_on(starts), behaviour]))
    return np.asarray(values[:-1].mean(axis=(1, 2)))


def theirs(dataset: Dataset, chosen: Mapping[str, heating.Policy], updates: int) -> np.ndarray:
    """The same by d3rlpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import d3rlpy
        import structlog
        import torch
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    torch.set_num_threads(1)
    mean, std = dataset.observations.mean(axis=0), dataset.observations.std(axis=0) + 1e-3
    centre, half = (dataset.action_high + dataset.action_low) / 2, (dataset.action_high - dataset.action_low) / 2
    shift, scale = float(dataset.rewards.mean()), float(dataset.rewards.std())
    buffer = d3rlpy.dataset.MDPDataset(
        observations=(dataset.observations - mean) / std,
        actions=(dataset.actions - centre) / half,
        rewards=((dataset.rewards - shift) / scale)[:, None],
        terminals=dataset.terminals.astype(np.float32),
        timeouts=dataset.timeouts.astype(np.float32),
    )
    starts = (dataset.observations[dataset.trajectories[:, 0]] - mean) / std
    config = d3rlpy.ope.FQEConfig(
        learning_rate=RATE, batch_size=BATCH, gamma=DISCOUNT,
        encoder_factory=d3rlpy.models.VectorEncoderFactory(list(HIDDEN)),
    )  # fmt: skip
    found = []
    for number, policy in enumerate(chosen.values()):

        def act(seen: np.ndarray, policy: heating.Policy = policy) -> np.ndarray:
            return np.asarray((policy(seen * std + mean) - centre) / half, np.float32)

        def best(x: Any, act: Any = act) -> Any:
            return torch.as_tensor(act(x.numpy()))

        d3rlpy.seed(number)
        stands_for = SimpleNamespace(impl=SimpleNamespace(predict_best_action=best))
        evaluator = d3rlpy.ope.FQE(algo=stands_for, config=config)
        evaluator.create_impl((dataset.observation_dim,), dataset.action_dim)
        for _ in range(updates):
            evaluator.update(buffer.sample_transition_batch(BATCH))
        value = float(evaluator.predict_value(starts.astype(np.float32), act(starts)).mean())
        found.append(value * (1 - DISCOUNT) * scale + shift)
    return np.array(found)


def true_values(chosen: Mapping[str, heating.Policy]) -> np.ndarray:
    lengths = np.bincount(heating.record(200, seed=1).episode)
    time_ = ((1 - DISCOUNT**lengths) / (1 - DISCOUNT)).sum()
    return np.array([heating.returns(p, 200, seed=1, discount=DISCOUNT).sum() / time_ for p in chosen.values()])


def main(asked: Arguments) -> None:
    dataset, chosen = heating_logs(EPISODES), policies()
    began = time.perf_counter()
    mine = ours(dataset, chosen, asked.updates)
    between = time.perf_counter()
    other = theirs(dataset, chosen, asked.updates)
    seconds = {"ours": round(between - began, 1), "d3rlpy": round(time.perf_counter() - between, 1)}
    truth = true_values(chosen)
    result = {
        "about": f"{POLICIES} controllers of the heating control, {len(dataset)} rows, discount {DISCOUNT}",
        "updates": asked.updates,
        "correlation": float(np.corrcoef(mine, other)[0, 1]),
        "rank_correlation": rank_correlation(mine, other),
        "with_truth": {"ours": rank_correlation(mine, truth), "d3rlpy": rank_correlation(other, truth)},
        "seconds": seconds,
        "values": {"ours": mine.tolist(), "d3rlpy": other.tolist(), "true": truth.tolist()},
        "d3rlpy": "2.8.1",
        "provenance": provenance(),
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    write_file(asked.out, (json.dumps(result, indent=1) + "\n").encode())
    print({name: value for name, value in result.items() if name not in ("values", "provenance")}, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
