"""Does u know the data? Critics trained on medium-replay judge pairs from it and pairs from the expert's data.

The picture is the paper's: t-SNE of (s, a) to two dimensions, the contour of u, white dots for medium-replay, red
ones for the expert. What the paper only shows is measured too: AUROC, the probability that u of an expert's pair is
larger than u of one from the data; 0.5 is a coin.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from score_rl.data.catalogue import load_dataset
from score_rl.data.dataset import Dataset
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import InputError, not_installed
from score_rl.paper.experiments.curves import SCORE, UNCERTAINTY, as_json, shown
from score_rl.paper.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table, Variant, product
from score_rl.report.map_figures import PointMap, contour_maps
from score_rl.report.published import paper_dataset
from score_rl.report.statistics import Estimate, mean_over_seeds
from score_rl.run.experiment import load


def names(request: Request) -> list[str]:
    if request.kind == "files":
        found = [paper_dataset(Path(path).stem) for path in request.source]
        return [name for name in found if name and "medium-replay" in name]
    tasks = ("hopper",) if request.scale.name == "smoke" else tuple(TASKS)
    return list(request.datasets) or [f"{task}-medium-replay" for task in tasks]


def plan(request: Request) -> list[Asked]:
    chosen = names(request)
    for name in chosen:
        if task_of(name) is None or not name.endswith("medium-replay"):
            raise InputError(f"uncertainty-map needs medium-replay data of a task, and {name} is none.")
    if not chosen:
        raise InputError("uncertainty-map needs medium-replay and expert files of a task; --source has none.")
    return product(request, [Variant("SCORE")], [request.counterpart(name, chosen) for name in chosen])


def auroc(inside: Float[np.ndarray, " n"], outside: Float[np.ndarray, " m"]) -> float:
    """The share of pairs in which the outside value is the larger one; ties count half."""
    ordered = np.sort(inside)
    below = np.searchsorted(ordered, outside, side="left")
    upto = np.searchsorted(ordered, outside, side="right")
    return float(((below + upto) / 2).mean() / len(inside))


def sample(dataset: Dataset, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).choice(len(dataset), min(number, len(dataset)), replace=False)
    return dataset.observations[rows], dataset.actions[rows]


def require_tsne() -> Any:
    """scikit-learn's t-SNE, or a sentence on how to get it."""
    try:
        from sklearn.manifold import TSNE
    except ModuleNotFoundError as missing:
        raise not_installed("the map needs scikit-learn", "paper") from missing
    return TSNE


def embed(features: Float[np.ndarray, "points features"]) -> Float[np.ndarray, "points 2"]:
    perplexity = min(30.0, (len(features) - 1) / 3)
    with threadpool_limits(1):  # on cores that others use too, its threads wait for each other: ten times as long
        return require_tsne()(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(features)


def smoothed(plane: Float[np.ndarray, "points 2"], values: Float[np.ndarray, " points"], near: int = 10) -> np.ndarray:
    """The mean over the nearest points of the plane: a contour, not a mosaic. Only for the eye."""
    distances = ((plane[:, None] - plane[None]) ** 2).sum(-1)
    return values[np.argsort(distances, axis=1)[:, :near]].mean(axis=1)


def present(request: Request, done: Sequence[Done]) -> Presentation:
    made, maps, rows = Presentation(), [], []
    chosen = names(request)
    transitions = request.scale.transitions if request.kind == "replica" else None
    for name in chosen:
        task = name.removesuffix("-medium-replay")
        asked = request.counterpart(name, chosen), request.counterpart(f"{task}-expert", chosen)
        known, expert = (load_dataset(a, transitions=transitions, progress=not request.quiet) for a in asked)
        runs = [run.result for run in done if run.result.dataset == known.name and run.result.finished]
        if not runs:
            made.remarks.append(f"{known.name}: no run finished.")
            continue
        (s, a), (s2, a2) = sample(known, request.scale.points, 0), sample(expert, request.scale.points, 1)
        observations, actions = np.concatenate([s, s2]), np.concatenate([a, a2])
        marked = np.arange(len(observations)) >= len(s)
        measured = []
        for result in runs:
            trained = load(result.folder)[result.name]
            measured.append(np.asarray(trained.uncertainty(observations, actions)))
        found = np.array([auroc(u[~marked], u[marked]) for u in measured])
        features = np.concatenate([observations, actions], axis=1)
        features = (features - features.mean(0)) / (features.std(0) + 1e-6)
        estimate = mean_over_seeds(found)
        low, high = np.clip([estimate.low, estimate.high], 0, 1)  # Student's interval knows no such bounds
        estimate = Estimate(estimate.value, float(low), float(high))
        title = f"{task}: AUROC {estimate.value:.2f}"
        plane = embed(features)
        maps.append(PointMap(title, plane, smoothed(plane, np.mean(measured, axis=0)), marked))
        inside, outside = np.mean(measured, axis=0)[~marked].mean(), np.mean(measured, axis=0)[marked].mean()
        rows.append((task, shown(estimate), f"{inside:.3f}", f"{outside:.3f}", f"{len(runs)}"))
        made.numbers[task] = {
            "auroc": as_json(estimate), "auroc_of_each_seed": found.tolist(),
            "mean_u_data": float(inside), "mean_u_expert": float(outside), "samples": int(marked.sum()),
        }  # fmt: skip
    if not maps:
        raise InputError("no run of uncertainty-map finished, so there is nothing to show.")
    made.figures["map"] = contour_maps(
        maps, "u(s, a), mean of 10 neighbours", "medium-replay (training data)", "expert (never seen)"
    )
    columns = ("task", "AUROC [95 % interval]", "mean u, medium-replay", "mean u, expert", "seeds")
    made.tables["auroc"] = Table("How well u tells the expert's pairs from the data's", columns, rows)
    return made


EXPERIMENTS = (
    Experiment(
        "uncertainty-map",
        "figure 5: uncertainty of in-distribution and out-of-distribution samples",
        "Data lies where u is low and the expert's pairs where it is high; they are told apart more easily on "
        "halfcheetah than on hopper and walker2d.",
        plan,
        present,
        (SCORE, UNCERTAINTY),
        check_tools=require_tsne,
    ),
)
