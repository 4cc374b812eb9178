"""SCORE's settings chosen for each data set, as the paper chose them, but on seeds that are not the reported ones.

    python -m benchmarks.training.grid choose --sources FOLDER --out FOLDER --data hopper-expert+halfcheetah-random
    python -m benchmarks.training.grid report --sources FOLDER --out FOLDER --data hopper-expert+halfcheetah-random

`choose` trains all nine settings (β × γ_bc) with seeds of their own, as one fleet, and keeps OUT/results/grid-DATA
with every score. A data set's choice is the setting of the highest mean over those seeds and the last quarter of
training, five evaluations of twenty: last policies alone, ten episodes each, would mostly choose luck; a setting with
a run that diverged is not chosen. `report` then trains the choices with the reported seeds and judges the last
policies; a choice that is the common setting is left out, it has been reported. What was interrupted goes on when it is
called again. Data are as in jobs.py; `score experiment run grid` chooses by the same rule on the package's own.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

import score_rl
from score_rl.errors import Stopped
from score_rl.paper.evidence.grids import COMMON, TABLE, choices
from score_rl.paper.experiments.choice import BETAS, DECAYS, Setting

from .jobs import DataFolder, dataset_names, folder_name, stored_name
from .keep import draw, keep, summarise, trained
from .methods import paper_cells

PANELS = (("evaluation/score", "score"),)
WHAT = "SCORE with a setting that other seeds chose, last policy, normalised score in percent"


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
    name = f"grid-{folder_name(asked.data)}"
    experiment = train(asked, name, dataset_names(asked.data), asked.choosing, beta=list(BETAS), bc_decay=list(DECAYS))
    folder = asked.out / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("dataset", "beta", "bc_decay", "seed", "step", "score"))
        for run in experiment:
            steps, scores = run.metrics.curve("evaluation/score")
            setting = (run.config.beta, run.config.bc_decay)
            rows.writerows((run.dataset, *setting, run.seed, t, f"{s:.4f}") for t, s in zip(steps, scores, strict=True))
    found = choices(folder / TABLE)
    request = experiment.spec.to_json()
    about = {
        "what": "SCORE, normalised scores in percent; chosen by the mean over seeds and the last quarter of training",
        "choices": {dataset: setting._asdict() for dataset, setting in found.items()},
        "request": request | {"datasets": [Path(each).name for each in request["datasets"]]},
        "provenance": experiment.record.provenance,
    }
    (folder / "grid.json").write_text(json.dumps(about, indent=1) + "\n")
    for dataset, setting in found.items():
        print(f"{dataset}: {setting}", flush=True)


def report(asked: Arguments) -> None:
    chosen = choices(asked.out / "results" / f"grid-{folder_name(asked.data)}" / TABLE)
    together: dict[Setting, list[str]] = defaultdict(list)
    for name in dataset_names(asked.data):
        together[chosen[stored_name(name)]].append(name)
    for setting, data in together.items():
        if setting == COMMON:
            print(f"the common setting, already reported: {', '.join(data)}", flush=True)
            continue
        name = f"chosen-beta-{setting.beta:g}-decay-{setting.bc_decay:g}-{'-'.join(data)}"
        folder = asked.out / "results" / name
        experiment = train(asked, name, data, asked.reported, **setting._asdict())
        for episodes in dict.fromkeys((0, asked.episodes)):
            summary = summarise(experiment, episodes) | {"what": WHAT}
            summary["request"] |= {"chosen_by_seeds": list(asked.choosing)}
            keep(experiment, summary, folder, tuple(name for name, _ in PANELS))
        cells = paper_cells("score", summary["results"])
        draw(folder, f"SCORE, {setting}", PANELS, cells)
        for dataset, result in summary["results"].items():
            print(f"{dataset}: {result['mean']:.1f} ± {result['std']:.1f} with {setting}", flush=True)


if __name__ == "__main__":
    asked = tyro.cli(Arguments, description=__doc__)
    try:
        choose(asked) if asked.stage == "choose" else report(asked)
    except Stopped as stopped:
        raise SystemExit(f"{asked.stage} {asked.data}: {stopped}") from None
