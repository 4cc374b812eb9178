"""Choose by data alone where the truth is known: the regret of `score select`, and whether a setting is never ruinous.

    python -m benchmarks.judging.choosing --out benchmarks/results/choosing                # small: two cores
    timeout 9m python -m benchmarks.judging.choosing --out RESULTS --size full             # a GPU; repeat until done
    python -m benchmarks.judging.choosing --out RESULTS --size full --methods score --sets replica:hopper-medium
    python -m benchmarks.judging.choosing --out benchmarks/results/choosing --summary      # what is stored, as a table

The rules, written before the first number was seen:

1. `score_rl.select` trains the whole grid to the end on each set, judges it by held-out trajectories and chooses by its
   rule (docs/selecting.md). It sees the logs alone.
2. The truth is a policy's mean return in fresh episodes. Its *share* is (return - behaviour)/(best - behaviour), where
   the behaviour is what recorded the logs, with its noise, and the best is the best policy of the whole grid. 0 is the
   behaviour, 1 the oracle; regret is 1 minus the share. Where a rule recommends no policy, the behaviour goes on.
3. A policy is *ruinous* if its share is below -1: it loses more than the best one gains. If the best gains less than
   5 % of the behaviour's absolute return, the set has nothing to choose and counts in no mean.
4. Sets for finding a setting: `FINDING`. Sets that take no part in that: `HELD_ASIDE`. The rule of the choice was
   written before either. The judge and its ranking were changed after `HELD_ASIDE` had been seen. So `NAMED_LATER` was
   named after that change and before any of its sets was measured: these test the judge as it is.
5. The safe setting was named before all numbers: SCORE with alpha 0.3, beta 0.2, gamma_bc 1 (`NAMED`). It is never
   ruinous if no seed on any set is. Beside it stands the setting whose least share over `FINDING` is highest.
6. Beside `select` stand: always SCORE's default, always `NAMED`, always that of 5, always behaviour cloning, the
   highest estimate without verdicts, the least distance from the data, and the oracle.
7. Normalised critics are tried at four settings of SCORE. They enter the grid if they help on average over `FINDING`.

The third line is the goal on speed: 48 settings, 3 seeds, 300,000 updates, judged; `seconds` in the result says how
long that took. A set that is stored already is left alone. After a kill it goes on where it stood when it is called
again; `calls` in the result says how many there were, and with more than one the seconds are those of the last.
"""

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

import score_rl
from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.disk import write_file
from score_rl.errors import Stopped
from score_rl.judge.candidates import Candidates, TrainedPolicy
from score_rl.judge.selection.grid import DEFAULT_METHODS, variants_of
from score_rl.judge.selection.plan import one_stage
from score_rl.judge.selection.selecting import Selection
from score_rl.store.judgements import read_judgement
from score_rl.store.provenance import provenance
from score_rl.store.selections import FILE as SELECTION
from score_rl.store.selections import Plan, Size, Variant

from .choosing_summary import summary
from .plants import PLANTS, Plant, play, record
from .sets import FULL_SETS, SMALL_SETS
from .truth import in_environment, in_heating

FINDING = ("heating", "tank")
HELD_ASIDE = ("inventory", "balance", "replica:hopper-medium")
NAMED_LATER = (
    "replica:halfcheetah-medium", "replica:walker2d-medium", "replica:hopper-medium-expert",
    "replica:halfcheetah-medium-expert",
)  # fmt: skip
EPISODES = 200
NORMALISED = ((0.1, 0.2, 1.0), (0.3, 0.2, 1.0), (1.0, 0.2, 1.0), (2.5, 0.2, 0.98))


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much is trained and judged."""

    rows: int | None  # of a replica
    episodes_of_logs: int  # of a plant
    size: Size
    steps: int
    seeds: int
    judged_by: int
    episodes: int  # of a replica's simulator


SCALES = {
    "trial": Scale(5_000, 20, Size((16, 16), 16), 20, 1, 20, 2),
    "small": Scale(30_000, 200, Size((64, 64), 64), 3_000, 1, 1_500, 5),
    "full": Scale(None, 200, Size((256, 256), 256), 300_000, 3, 10_000, 50),
}


@dataclasses.dataclass(frozen=True)
class Arguments:
    out: Path
    """Folder of results: one file for each data set."""
    size: Literal["trial", "small", "full"] = "small"
    """trial says whether all of it runs. full trains 300,000 updates of three seeds with networks of 256, for a GPU."""
    sets: tuple[str, ...] = ()
    """Only these data sets; unless given those named above, and all replicas and OGBench's at full size."""
    methods: tuple[str, ...] = DEFAULT_METHODS
    """Choose from these. Normalised critics are tried only if all are asked for."""
    summary: bool = False
    """Measure nothing; print what is stored."""
    work: Path = Path("runs", "choosing")
    """Where selections stand until they are stored."""


def variants(methods: Sequence[str]) -> list[Variant]:
    """The whole grid; with all methods also four settings of SCORE with normalised critics."""
    if set(methods) != set(DEFAULT_METHODS):
        return variants_of(methods)
    normalised = [
        Variant("score", {"alpha": alpha, "beta": beta, "bc_decay": decay, "critic_norm": True})
        for alpha, beta, decay in NORMALISED
    ]
    return [*variants_of(methods), *normalised]


def measure(name: str, scale: Scale, methods: Sequence[str], folder: Path) -> dict[str, Any]:
    """Select on one data set, or go on with it, then play everything that was chosen from."""
    began = time.perf_counter()
    dataset = logs(name, scale)
    chosen = variants(methods)
    plan = Plan(tuple(chosen), scale.size, one_stage(scale.steps, len(chosen), scale.judged_by))
    calls = _calls(folder)
    selection = _selected(dataset, plan, scale.seeds, folder / "selection")
    selected = time.perf_counter()
    rows, behaviour = played(name, dataset, selection, scale)
    choice, stages = selection.choice, selection.record.stages
    return {
        "set": name,
        "rows": len(dataset),
        "behaviour": behaviour,
        "choice": {"run": choice.run, "better": choice.better, "why": choice.why, "sure": choice.sure},
        "policies": rows,
        "scale": dataclasses.asdict(scale),
        "calls": calls,
        "seconds": {
            "training": sum(stage.training_seconds for stage in stages),
            "judging": sum(stage.judging_seconds for stage in stages),
            "playing": time.perf_counter() - selected,
            "all": time.perf_counter() - began,
        },
        "provenance": provenance(),
    }


def _calls(folder: Path) -> int:
    """How often this set has been begun or gone on with, this time included."""
    folder.mkdir(parents=True, exist_ok=True)
    count = folder / "calls"
    calls = 1 + (int(count.read_text()) if count.exists() else 0)
    write_file(count, str(calls))
    return calls


def _selected(dataset: Dataset, plan: Plan, seeds: int, folder: Path) -> Selection:
    if (folder / SELECTION).exists():
        return score_rl.select(resume=folder)
    shutil.rmtree(folder, ignore_errors=True)  # it was killed before the selection began
    return score_rl.select(dataset, plan=plan, seeds=seeds, out=folder)


def played(name: str, dataset: Dataset, selection: Selection, scale: Scale) -> tuple[list[dict[str, Any]], float]:
    """Every policy with its verdict and its true return, and the behaviour's return."""
    folder = selection.path / "stage-1"
    runs = {run.id: run for run in score_rl.load(folder)}
    judged = read_judgement(folder)
    assert judged is not None
    labels = {run: one.variant.label for one in selection.choice.table for run in one.runs}
    policies = {
        key: TrainedPolicy(run.algorithm, run.config, run.treatment, run.algorithm.policy(run.state))
        for key, run in runs.items()
        if run.status.state != "diverged"
    }
    returns, behaviour = truth(name, policies, dataset, scale)
    rows = []
    for key, value in returns.items():
        said = judged.runs[key]
        moved = None if said.distance is None else float(np.mean(said.distance.moved))
        rows.append(
            {
                "run": key, "variant": labels[key], "verdict": said.verdict, "value": said.rank_value, "moved": moved,
                "return": value,
            }
        )  # fmt: skip
    return rows, behaviour


def logs(name: str, scale: Scale) -> Dataset:
    if name in PLANTS:
        return record(PLANTS[name], scale.episodes_of_logs, seed=0)
    if name in SMALL_SETS:
        return SMALL_SETS[name].load(scale.rows)
    return load_dataset(name, transitions=scale.rows, progress=False)


def truth(
    name: str, policies: Mapping[str, TrainedPolicy], dataset: Dataset, scale: Scale
) -> tuple[dict[str, float], float]:
    """The mean return of each policy, and of what recorded the logs."""
    returns, complete = dataset.returns()
    recorded = float((returns[complete] if complete.any() else returns).mean())
    if name in PLANTS:
        plant: Plant = PLANTS[name]
        found = {key: _in_plant(plant, policy) for key, policy in policies.items()}
        return found, float(play(plant, plant.behaviour, EPISODES, 1, noise=plant.noise).returns.mean())
    earned: Callable[..., Any] = in_heating
    if name != "heating":
        earned = FULL_SETS[name].truth if name in FULL_SETS else in_environment(str(dataset.environment))
    episodes = EPISODES if name == "heating" else scale.episodes
    scores = earned(policies, dataset, episodes, 0.99)
    return {key: one.score for key, one in zip(policies, scores, strict=True)}, recorded


def _in_plant(plant: Plant, policy: TrainedPolicy) -> float:
    alone = Candidates({"policy": policy}, plant.low, plant.high)
    return float(play(plant, lambda seen: alone.act_on(seen)[0], EPISODES, 1).returns.mean())


def main() -> None:
    asked = tyro.cli(Arguments, description=__doc__)
    names = asked.sets or (*FINDING, *HELD_ASIDE, *NAMED_LATER, *(FULL_SETS if asked.size == "full" else ()))
    for name in () if asked.summary else dict.fromkeys(names):
        path = asked.out / f"{asked.size}-{name.replace(':', '-')}.json"
        if path.exists():
            continue
        print(f"{name} ...", flush=True)
        asked.out.mkdir(parents=True, exist_ok=True)
        folder = asked.work / path.stem
        result = measure(name, SCALES[asked.size], asked.methods, folder)
        write_file(path, (json.dumps(result, indent=1) + "\n").encode())
        shutil.rmtree(folder)
    stored = [json.loads(path.read_text()) for path in sorted(asked.out.glob(f"{asked.size}-*.json"))]
    print(summary(stored, FINDING, NAMED_LATER))


if __name__ == "__main__":
    try:
        main()
    except Stopped:
        raise SystemExit("Stopped; the same command goes on.") from None
