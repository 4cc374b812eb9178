"""Judge policies from logs alone whose true value is known, and store how far the judge was right.

    python -m benchmarks.judging.trust --out benchmarks/results/judging                 # small: two cores, 25 minutes
    python -m benchmarks.judging.trust --out RESULTS --size full                        # a GPU: 25 sets, 3,000 policies
    python -m benchmarks.judging.trust --out RESULTS --size full --minutes 4            # the same in slices: repeat it
    python -m benchmarks.judging.trust --out TRIAL --size trial --sets replica:hopper-medium   # whether all of it runs

The rules, written before the first number was seen:

1. Of each data set a fifth of the trajectories is held out. Policies are trained on the rest: several methods and
   settings of SCORE, each kept at several ages (numbers of updates); two seeds at full size, one at the small size.
2. The judge sees the logs alone. Its estimates, verdicts and discount are those of `score judge`.
3. The truth is a policy's mean undiscounted return in fresh episodes (success in percent on OGBench). Rank
   correlation, regret and Sharpe ratio use it. Absolute errors use the true discounted value per step.
4. Regret and absolute error are shares of best minus worst, over the true values of the set's policies.
5. Beside the estimators stand: `judge` (its ranking with verdicts), `always the default` (SCORE as it comes, at the
   last age, first seed), `least distance from the data`, `highest Q` (the method's own, per step), `oracle` (the
   truth), and `random` (the mean over choices).
6. Verdicts are counted against the truth: above or below what the behaviour earned per episode.
7. No rule or setting of the judge is changed after seeing these numbers; what fails is written down.

A set that is stored already is left alone, so a run that was broken off goes on when it is called again.
"""

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from score_rl.data.dataset import Dataset
from score_rl.data.splitting import split_dataset
from score_rl.disk import write_file
from score_rl.judge.fitting import Effort
from score_rl.judge.judging import EffortName, effort_of, judge_policies, usual_discount
from score_rl.judge.sources import Parts
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.store.judgements import DataJudgement, PolicyJudgement, rank_of
from score_rl.store.provenance import provenance

from .policies import FULL, SMALL, Aged, train_policies
from .sets import FULL_SETS, SMALL_SETS, TrustSet

HELD_OUT = 0.2


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is trained and judged."""

    rows: int | None
    ages: tuple[int, ...]
    seeds: tuple[int, ...]
    episodes: int
    effort: EffortName | Effort
    sizes: Mapping[str, Any]  # settings of all methods that have them
    presets: bool  # whether the authors' settings for single data sets are used


TRIAL = Effort(
    updates=20, behaviour_updates=20, critics=2, hidden=(8,), density_updates=20, models=2, model_hidden=(8,),
    model_epochs=1, model_updates=10,
)  # fmt: skip
SIZES = {
    "trial": Size(3_000, (10, 20), (0, 1), 1, TRIAL, {"hidden": (16, 16), "batch_size": 16}, True),
    "small": Size(30_000, (1_000, 2_000), (0,), 5, "quick", {"hidden": (64, 64), "batch_size": 64}, False),
    "full": Size(None, (30_000, 100_000, 300_000), (0, 1), 20, "normal", {}, True),
}


@dataclasses.dataclass(frozen=True)
class Arguments:
    out: Path
    """Folder of results: one file for each data set."""
    size: Literal["trial", "small", "full"] = "small"
    """small is for two cores; full has fifteen D4RL-like sets and ten OGBench tasks, for a GPU. trial does the same
    as full with a few updates."""
    sets: tuple[str, ...] = ()
    """Only these data sets."""
    minutes: float = float("inf")
    """Begin no data set after so long."""


def measure(asked: TrustSet, size: Size, contenders: Sequence[Any]) -> dict[str, Any]:
    """Train, judge and play the policies of one data set."""
    began = time.perf_counter()
    dataset = asked.load(size.rows)
    kept, held_out = split_dataset(dataset, HELD_OUT)
    starts = held_out.observations[held_out.trajectories[:, 0]]
    aged = list(train_policies(kept, contenders, size.seeds, size.ages, size.sizes, starts, presets=size.presets))
    trained = time.perf_counter()
    discount = usual_discount(held_out, [each.policy.config for each in aged])
    policies = {each.name: each.policy for each in aged}
    parts = Parts(kept, held_out, True)
    groups = [each.group for each in aged]
    judged = judge_policies(parts, policies, effort=_effort(size.effort), discount=discount, groups=groups)
    found = time.perf_counter()
    truth = asked.truth(policies, dataset, size.episodes, discount)
    seconds = {"training": trained - began, "judging": found - trained, "truth": time.perf_counter() - found}
    rows = [_row(one, judged.runs[one.name], earned) for one, earned in zip(aged, truth, strict=True)]
    return {
        "data": _about(dataset, held_out, judged),
        "size": dataclasses.asdict(size),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "policies": rows,
        "provenance": provenance(),
    }


def _effort(asked: EffortName | Effort) -> Effort:
    return asked if isinstance(asked, Effort) else effort_of(asked)


def _about(dataset: Dataset, held_out: Dataset, judged: DataJudgement) -> dict[str, Any]:
    returns, complete = dataset.returns()
    return {
        "name": dataset.name,
        "rows": len(dataset),
        "checksum": dataset.checksum,
        "held_out_rows": len(held_out),
        "held_out_trajectories": len(held_out.trajectories),
        "discount": judged.discount,
        "behaviour_score": _behaviour_score(dataset, returns[complete] if complete.any() else returns),
        "behaviour_per_step": judged.recorded,
        "agreement": judged.agreement,
    }


def _behaviour_score(dataset: Dataset, returns: np.ndarray) -> float:
    """Per episode; on OGBench the share of trajectories that solve their task, in percent."""
    if dataset.name.startswith("ogbench"):
        solved = np.logical_or.reduceat(dataset.terminals, dataset.trajectories[:, 0])
        return float(100 * solved.mean())
    return float(returns.mean())


def _row(one: Aged, judged: PolicyJudgement, earned: Any) -> dict[str, Any]:
    distance = judged.distance
    return {
        "name": one.name,
        "contender": one.contender,
        "seed": one.seed,
        "updates": one.updates,
        "score": earned.score,
        "per_step": earned.per_step,
        "verdict": judged.verdict,
        "reasons": list(judged.reasons),
        "rank": rank_of(judged) if judged.rank_value is not None else None,
        "estimates": {name: dataclasses.asdict(each) for name, each in judged.estimates.items()},
        "moved": None if distance is None else float(np.mean(distance.moved)),
        "unknown": None if distance is None else distance.unknown,
        "strayed": judged.strayed,
        "effective": judged.effective,
        "own_value": one.own_value,
    }


def main(asked: Arguments) -> None:
    keep_compiled_programs()
    began, size = time.monotonic(), SIZES[asked.size]
    sets = {**FULL_SETS, **SMALL_SETS}
    contenders = SMALL if asked.size == "small" else FULL
    for name in asked.sets or (SMALL_SETS if asked.size == "small" else FULL_SETS):
        file = asked.out / f"{name.replace(':', '-')}.json"
        if file.exists():
            print(f"{name}: stored already", flush=True)
        elif time.monotonic() - began > 60 * asked.minutes:
            print(f"{name}: no time left", flush=True)
        else:
            result = measure(sets[name], size, contenders)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, (json.dumps(result, indent=1) + "\n").encode())
            print(f"{name}: {len(result['policies'])} policies, seconds {result['seconds']}", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
