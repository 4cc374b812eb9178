r"""The paper's first figure with numbers: a lucky action, its value, its lower bound, and what each method picks.

One decision, one dimension, after the paper's example of the green lights. Actions below 0 drive the avenue, which
pays 0.7 at best and hardly varies. Actions above 0 take a side street with three lights, each green with probability
0.75: all green pays 1.0, anything else 0.2, 0.54 on average at best. The data has three hundred drives on the avenue
and four in the side street. Where three of those four were green the street looks better than it is: four samples
say little, so its estimate is high because it is uncertain. That is the false correlation.

Many such data sets are drawn, whatever luck they have. Methods are trained on each for real; beside them stand the
sample means and Hoeffding's lower bounds of the two roads.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from score_rl.algorithms.registry import get_algorithm
from score_rl.disk import replacing
from score_rl.nets.actor_critic import values
from score_rl.paper.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table, Variant
from score_rl.paper.experiments.protocols import rounded
from score_rl.paper.experiments.scales import scheduled
from score_rl.report.drawing import BLUE, GREEN, GREY, VERMILION, name_axes, new_figure
from score_rl.report.figure_style import INK, styled
from score_rl.run.experiment import TrainedRun, load

AVENUE, STREET, GREEN_LIGHT, LIGHTS = 0.7, 0.5, 0.75, 3
FAST, SLOW, BEND, NOISE = 1.0, 0.2, 0.4, 0.05
DRIVES, TRIES, XI = 300, 4, 0.1  # on the avenue, in the side street; Hoeffding's bound holds with 1 - ξ
SETS = {"smoke": 8, "trial": 30, "day": 60, "paper": 200}
STEPS = {"smoke": 40, "trial": 3_000}
FULL_STEPS = 10_000
SETTINGS = {
    "hidden": (32, 32), "batch_size": 32,
    "critic_learning_rate": 1e-3, "actor_learning_rate": 1e-3, "learning_rate": 1e-3,
}  # fmt: skip
BOOTSTRAPPED = "SCORE, bootstrapped"
JUDGED = {"SCORE": "critics", BOOTSTRAPPED: "bootstrapped critics"}
GRID = np.linspace(-1, 1, 401)
VARIANTS = (
    Variant("SCORE"),
    Variant(BOOTSTRAPPED, {"bootstrap_keep": 0.5}),
    Variant("SCORE without pessimism", {"beta": 0.0}),
    Variant("SCORE without BC", {"bc_weight": 0.0}),
    Variant("TD3-BC", algorithm="td3-bc"),
    Variant("CQL", algorithm="cql"),
    Variant("BC", algorithm="bc"),
)
FEWER = {"smoke": VARIANTS[:3], "trial": [variant for variant in VARIANTS if variant.algorithm != "cql"]}


def true_value(actions: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The mean reward of each action."""
    fast = GREEN_LIGHT**LIGHTS
    street = fast * FAST + (1 - fast) * SLOW - BEND * (actions - STREET) ** 2
    return np.where(actions < 0, AVENUE - BEND * (actions + STREET) ** 2, street)


@dataclasses.dataclass(frozen=True)
class Drives:
    """A data set of single decisions."""

    actions: Float[np.ndarray, " drives"]
    rewards: Float[np.ndarray, " drives"]

    def road(self, street: bool) -> Float[np.ndarray, " some"]:
        return self.rewards[(self.actions > 0) == street]

    @property
    def lucky(self) -> bool:
        """Whether the side street looks better than the avenue."""
        return bool(self.road(street=True).mean() > self.road(street=False).mean())

    def bound(self, street: bool) -> float:
        """Hoeffding's lower bound of a road's mean, rewards between 0 and 1."""
        seen = self.road(street)
        return float(seen.mean() - np.sqrt(np.log(1 / XI) / (2 * len(seen))))


@cache
def drives(number: int) -> Drives:
    rng = np.random.default_rng([20, number])
    avenue = np.clip(rng.normal(-STREET, 0.2, DRIVES), -1, -0.05)
    street = np.clip(rng.normal(STREET, 0.1, TRIES), 0.05, 1)
    lights = rng.random((TRIES, LIGHTS)) < GREEN_LIGHT
    paid = np.where(lights.all(axis=1), FAST, SLOW) - BEND * (street - STREET) ** 2
    rewards = np.concatenate([true_value(avenue) + rng.normal(0, NOISE, DRIVES), paid])
    order = rng.permutation(DRIVES + TRIES)
    return Drives(np.concatenate([avenue, street])[order], rewards[order])


def data_file(request: Request, number: int) -> Path:
    return request.out / "false-correlation" / "data" / f"drives-{number:03d}.hdf5"


def prepare(request: Request) -> None:
    """Write the data sets: what they are depends on their numbers alone."""
    import h5py

    for number in range(SETS[request.scale.name]):
        path, data = data_file(request, number), drives(number)
        if path.exists():
            continue
        rows = len(data.actions)
        columns = {
            "observations": np.zeros((rows, 1), np.float32), "actions": data.actions[:, None].astype(np.float32),
            "rewards": data.rewards.astype(np.float32), "next_observations": np.zeros((rows, 1), np.float32),
            "terminals": np.ones(rows, bool), "timeouts": np.zeros(rows, bool),
        }  # fmt: skip
        size = sum(column.nbytes for column in columns.values())
        with replacing(path, size) as temporary, h5py.File(temporary, "w") as file:
            for name, column in columns.items():
                file[name] = column
            file["metadata/action_low"], file["metadata/action_high"] = -np.ones(1, np.float32), np.ones(1, np.float32)


def plan(request: Request) -> list[Asked]:
    steps = request.steps or STEPS.get(request.scale.name, FULL_STEPS)
    asked = []
    for variant in FEWER.get(request.scale.name, VARIANTS):
        usual = get_algorithm(variant.algorithm).Config()
        small = {name: value for name, value in SETTINGS.items() if hasattr(usual, name)} | scheduled(usual, steps)
        full = Variant(variant.label, small | dict(variant.settings), variant.algorithm)
        for number in range(SETS[request.scale.name]):
            for seed in request.seeds or (0,):
                where = str(data_file(request, number))
                options = {"steps": steps, "eval_every": steps, "transitions": None, "environment": "none"}
                asked.append(Asked(variant.label, full.wanted(request, where, seed, **options)))
    return asked


def number_of(done: Done) -> int:
    return int(done.result.dataset.rpartition("-")[2])


@jax.jit
def _values(critics: Any, treatment: Any, actions: Any) -> Any:
    observations = jnp.zeros((len(actions), 1), jnp.float32)
    q = values(critics, treatment.observe(observations), treatment.action_in(actions[:, None]))
    return q * treatment.reward_scale + treatment.reward_shift


def critics_of(run: TrainedRun, actions: Float[np.ndarray, " n"]) -> Float[np.ndarray, "members n"]:
    """Q_i(a), in units of the reward."""
    return np.asarray(_values(run.state.critics, run.treatment, actions.astype(np.float32)))


def present(request: Request, done: Sequence[Done]) -> Presentation:
    made = Presentation()
    made.remarks += [
        f"{run.result.name}: {run.result.status}; counts nowhere." for run in done if not run.result.finished
    ]
    ended = [run for run in done if run.result.finished]
    sets = sorted({number_of(run) for run in ended})
    lucky = [number for number in sets if drives(number).lucky]
    picks: dict[str, list[tuple[int, float]]] = {
        "sample mean": [(n, STREET if drives(n).lucky else -STREET) for n in sets],
        "lower bound (Hoeffding)": [
            (n, STREET if drives(n).bound(street=True) > drives(n).bound(street=False) else -STREET) for n in sets
        ],
    }
    for label in JUDGED.values():
        picks |= {f"{label}, highest mean": [], f"{label}, highest minimum": []}
    opened: dict[Path, Any] = {}
    for run in ended:
        folder = run.result.folder
        opened.setdefault(folder, load(folder))
        trained = opened[folder][run.result.name]
        if run.label in JUDGED:  # what the critics alone would have picked
            q = critics_of(trained, GRID)
            for how, curve in (("mean", q.mean(0)), ("minimum", q.min(0))):
                best = float(GRID[np.argmax(curve)])
                picks.setdefault(f"{JUDGED[run.label]}, highest {how}", []).append((number_of(run), best))
        picks.setdefault(run.label, []).append((number_of(run), float(trained.policy(np.zeros(1))[0])))
    rows = []
    for label, chosen in picks.items():
        actions = np.array([action for _, action in chosen])
        fooled = np.array([action > 0 for number, action in chosen if number in lucky])
        worth = float(true_value(actions).mean())
        rows.append((label, _share(fooled), _share(actions > 0), f"{worth:.3f}"))
        made.numbers[label] = {
            "street_where_it_was_lucky": float(fooled.mean()) if len(fooled) else None,
            "street": float((actions > 0).mean()), "mean_true_value": worth,
            "picks": [[number, action] for number, action in chosen],
        }  # fmt: skip
    made.numbers["data_sets"] = {"all": len(sets), "lucky": len(lucky)}
    columns = ("method", "side street where it was lucky", "side street overall", "true value (best 0.700)")
    made.tables["picks"] = Table(f"{len(sets)} data sets, {len(lucky)} of them lucky", columns, rows)
    if not lucky:
        made.remarks.append("None of these few data sets was lucky; the picture shows the first.")
    example = lucky[0] if lucky else sets[0]
    shown = next(run.result for run in ended if run.label == BOOTSTRAPPED and number_of(run) == example)
    critics = opened[shown.folder][shown.name]
    made.figures["false-correlation"] = _draw(example, critics, made.numbers, bool(lucky))
    made.numbers["example"] = _example(example, critics)
    return made


def _share(events: np.ndarray) -> str:
    return f"{events.mean():.0%} of {len(events)}" if len(events) else "none"


def _example(number: int, run: TrainedRun) -> dict[str, Any]:
    """The lucky action and the best one, as the critics see them."""
    data = drives(number)
    places = np.array([STREET, -STREET])
    q = critics_of(run, places)
    return {
        "data_set": number, "actions": places.tolist(), "true_value": true_value(places).tolist(),
        "sample_mean": [float(data.road(street).mean()) for street in (True, False)],
        "hoeffding_lower_bound": [data.bound(street) for street in (True, False)],
        "mean_of_critics": q.mean(0).tolist(), "u": q.std(0).tolist(), "least_critic": q.min(0).tolist(),
    }  # fmt: skip


@styled
def _draw(number: int, run: TrainedRun, numbers: dict[str, Any], lucky: bool) -> Any:
    figure, ((left, right),) = new_figure(1, 2, 5.0, 3.9)
    data, grid = drives(number), GRID
    q = critics_of(run, grid)
    mean, least = q.mean(0), q.min(0)
    left.plot(data.actions, data.rewards, ".", color=GREY, markersize=3, alpha=0.5, label="data")
    left.plot(grid, true_value(grid), color=INK, linewidth=1.6, label="true value")
    left.fill_between(grid, mean - q.std(0), mean + q.std(0), color=BLUE, alpha=0.15, linewidth=0)
    left.plot(grid, mean, color=BLUE, linewidth=1.6, label="mean of critics ± u")
    left.plot(grid, least, color=VERMILION, linewidth=1.4, linestyle=(0, (5, 1.5)), label="lower bound, least critic")
    for curve, colour, marker in ((mean, BLUE, "o"), (least, VERMILION, "D")):
        best = int(np.argmax(curve))
        left.plot(grid[best], curve[best], marker, color=colour, markersize=7, markeredgecolor="white")
    left.set_ylim(-0.05, 1.45)
    what = "a lucky data set" if lucky else "a data set without luck"
    name_axes(left, "action: avenue < 0 < side street", "reward", f"Where each curve is highest ({what})")
    left.legend(loc="upper left", fontsize=7.5, frameon=True, framealpha=0.85, edgecolor="none")
    labels = [label for label in numbers if "picks" in numbers[label]]
    shares = [100 * (numbers[label]["street_where_it_was_lucky"] or 0.0) for label in labels]
    colours = [GREEN if any(word in label for word in ("bound", "minimum", "SCORE")) else GREY for label in labels]
    right.barh(labels, shares, color=colours, height=0.65)
    for place, share in enumerate(shares):
        right.annotate(f"{share:.0f}", (share, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
    right.invert_yaxis()
    right.set_xlim(0, 108)
    right.grid(visible=False, axis="y")
    count = numbers["data_sets"]["lucky"]
    name_axes(right, f"% of the {count} lucky data sets", "", "Who takes the side street")
    return figure


def cost(request: Request) -> str:
    asked = plan(request)
    return f"{len(asked)} × {rounded(asked[0].run.steps)}"


def note(request: Request) -> str:
    small = request.scale.small
    return (request.scale.proves if small else "") + " Data: drawn here, one decision each; no locomotion."


EXPERIMENTS = (
    Experiment(
        "false-correlation",
        "figure 1: a lucky action looks better than the best one; its lower bound does not",
        "The estimated value makes the agent pick a suboptimal action, while the lower confidence bound recovers the "
        "optimal one.",
        plan,
        present,
        ("train/q", "train/uncertainty"),
        prepare=prepare,
        cost=cost,
        note=note,
        on_data=False,
    ),
)
