"""Train d3rlpy's TD3+BC on a data set of ours and judge it by our physics: is a score the data's or our code's?

    python -m benchmarks.training.independent --data hopper-medium-recollected.hdf5 --updates 200000 --seeds 0 1
    python -m benchmarks.training.independent --data replica:walker2d-random --updates 100000 --seeds 0

One run after another on one CPU core, some 70 updates a second. Only the learning is d3rlpy's: the rows, the episodes'
random starts and the normalised score are those of `score train`. Beside the score stands Q, over some of the rows.
Results are kept after every evaluation, so a run that is cut short keeps what it had; a seed that is already there is
left alone.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.progress import track

import score_rl
from benchmarks.speed import d3rlpy_loop
from score_rl.data.dataset import Dataset
from score_rl.rollout.episodes import episode_generators, judge
from score_rl.store.provenance import provenance

METHOD = "td3-bc"
VALUED = 10_000  # rows that Q is averaged over


@dataclass(frozen=True)
class Arguments:
    data: str
    """A file in D4RL's layout that names its environment, or whatever else `score train --dataset` takes."""
    updates: int = 200_000
    every: int = 10_000
    """Updates between two evaluations."""
    episodes: int = 10
    seeds: tuple[int, ...] = (0, 1)
    out: Path = Path(__file__).parents[1] / "results" / "independent"


def main(asked: Arguments) -> None:
    import torch

    torch.set_num_threads(1)
    data = score_rl.load_dataset(asked.data)
    folder = asked.out / f"{METHOD}-{data.name.replace(':', '-')}"
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "curves.csv"
    there = list(csv.DictReader(table.open())) if table.exists() else []
    done = {int(row["seed"]) for row in there if int(row["step"]) == asked.updates}
    kept = [row for row in there if int(row["seed"]) in done]
    with table.open("w", newline="") as file:
        rows = csv.DictWriter(file, ("dataset", "seed", "step", "name", "value"), lineterminator="\n")
        rows.writeheader()
        rows.writerows(kept)
        for seed in asked.seeds:
            if seed in done:
                continue
            for step, found in curve(asked, data, seed):
                about = {"dataset": data.name, "seed": seed, "step": step}
                rows.writerows(about | {"name": name, "value": f"{value:.6g}"} for name, value in found.items())
                file.flush()
    about = {
        "what": "d3rlpy's TD3+BC, last policy, normalised score in percent",
        "d3rlpy": d3rlpy_loop.version(),
        "torch": torch.__version__,
        "data": {"name": data.name, "rows": len(data), "checksum": data.checksum},
        "updates": asked.updates,
        "episodes": asked.episodes,
        "provenance": provenance(),
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def curve(asked: Arguments, data: Dataset, seed: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Scores and values along one run."""
    import d3rlpy

    assert data.environment is not None
    d3rlpy.seed(seed)
    algorithm, update = d3rlpy_loop.make(METHOD, data)

    def act(observations: np.ndarray) -> np.ndarray:
        return algorithm.predict(observations[0])[None]

    for number in track(range(asked.updates), f"seed {seed}"):
        update()
        if (number + 1) % asked.every == 0:
            starts = [episode_generators(f"d3rlpy {METHOD} {seed}", number + 1, asked.episodes)]
            judged = judge(data.environment, act, starts, threads=1)
            q = algorithm.predict_value(data.observations[:VALUED], data.actions[:VALUED])
            yield number + 1, {"evaluation/score": judged.summary(0)["score"], "q": float(q.mean())}


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
