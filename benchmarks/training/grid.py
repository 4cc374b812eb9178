"""SCORE's settings chosen for each data set, as the paper chose them, but on seeds that are not the reported ones.

    python -m benchmarks.training.grid choose --sources FOLDER --out FOLDER --data hopper-expert+halfcheetah-random
    python -m benchmarks.training.grid report --sources FOLDER --out FOLDER --data hopper-expert+halfcheetah-random

`choose` trains all nine settings (β × γ_bc) with seeds of their own, as one fleet, and stores OUT/results/grid-DATA.
For each data set it chooses the setting with the highest mean over those seeds and the last quarter of training, five
evaluations of twenty. Last policies alone, ten episodes each, would mostly choose luck. A setting of which a run
diverged is not chosen. `report` then trains the chosen settings with the reported seeds and judges the last policies.
It leaves out a choice that is the common setting, which has been reported. What was interrupted goes on when it is
called again. Data are as in jobs.py. `score experiment run grid` chooses by the same rule on the package's own data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

import score_rl
from score_rl.errors import Stopped
from score_rl.paper.experiments.choice import BETAS, DECAYS, USUAL, Setting, best, setting_means
from score_rl.report.results import RunResult
from score_rl.report.stored_results import read_stored

from .jobs import DataFolder, dataset_names, folder_name, stored_name
from .storing import described, fresh_scores, store, trained


@dataclass(frozen=True)
class Arguments:
    stage: tyro.conf.Positional[Literal["choose", "report"]]
    """Which of the two."""
    sources: Path
    """Where D4RL's three *_medium-v2.hdf5 are, whole or as excerpts."""
    out: Path
    """Folder for data and runs; results go to OUT/results."""
    data: str
    """table, medium or names with + between them."""
    updates: int = 1_000_000
    choosing: tuple[int, ...] = (5, 6)
    """Seeds that decide."""
    reported: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds that are reported."""
    evaluations: int = 20
    """How many along each curve."""
    transitions: int | None = None
    """Rows of each data set; D4RL's number unless given."""
    episodes: int = 100
    """Fresh ones that reported policies are judged in at the end; 0 leaves that out."""
    checkpoint_minutes: float = 10.0


def train(
    asked: Arguments, name: str, data: Sequence[str], seeds: Sequence[int], **config: object
) -> score_rl.Experiment:
    return trained(
        asked.out / name,
        [DataFolder(asked.sources, asked.out, asked.transitions).source(each) for each in data],
        steps=asked.updates,
        evaluations=asked.evaluations,
        config=config,
        seeds=seeds,
        transitions=asked.transitions,
        checkpoint_minutes=asked.checkpoint_minutes,
    )


def choose(asked: Arguments) -> None:
    name = grid_folder(asked)
    settings = {"beta": list(BETAS), "bc_decay": list(DECAYS)}
    experiment = train(asked, name, dataset_names(asked.data), asked.choosing, **settings)
    runs = store(experiment, asked.out / "results" / name, about={"chooses_settings": True})
    for dataset, setting in choices(runs).items():
        print(f"{dataset}: {setting}", flush=True)


def choices(runs: Sequence[RunResult]) -> dict[str, Setting]:
    """By data set; nothing for one of which every setting has a run that did not end well."""
    by_dataset: dict[str, list[RunResult]] = {}
    for run in runs:
        by_dataset.setdefault(run.dataset, []).append(run)
    found = {dataset: best(setting_means(mine)) for dataset, mine in by_dataset.items()}
    return {dataset: setting for dataset, setting in found.items() if setting is not None}


def grid_folder(asked: Arguments) -> str:
    return f"grid-{folder_name(asked.data)}"


def report(asked: Arguments) -> None:
    chosen = choices(read_stored(asked.out / "results" / grid_folder(asked)))
    together: dict[Setting, list[str]] = {}
    for name in dataset_names(asked.data):
        together.setdefault(chosen[stored_name(name)], []).append(name)
    for setting, data in together.items():
        if setting == USUAL:
            print(f"the common setting, already reported: {', '.join(data)}", flush=True)
            continue
        name = f"chosen-beta-{setting.beta:g}-decay-{setting.bc_decay:g}-{'-'.join(data)}"
        folder, about = asked.out / "results" / name, {"chosen_by_seeds": list(asked.choosing)}
        experiment = train(asked, name, data, asked.reported, **setting._asdict())
        runs = store(experiment, folder, about=about)
        if asked.episodes:
            store(experiment, folder, fresh=(asked.episodes, fresh_scores(experiment, asked.episodes)), about=about)
        print(f"{described(runs)} with {setting}", flush=True)


if __name__ == "__main__":
    asked = tyro.cli(Arguments, description=__doc__)
    try:
        choose(asked) if asked.stage == "choose" else report(asked)
    except Stopped as stopped:
        raise SystemExit(f"{asked.stage} {asked.data}: {stopped}") from None
