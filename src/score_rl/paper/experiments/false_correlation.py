r"""The paper's first figure with numbers: a lucky action, its value, its lower bound, and what each method picks.

`drives.py` has the task: an avenue that is known, and a side street of which there are four drives. Where three of
those four were green the street looks better than it is: four samples say little, so its estimate is high because it
is uncertain. That is the false correlation. Critics are fooled in another way too: they may say anything of actions
that nobody tried. Three answers separate the causes:

    the sample mean of each road      luck of a road alone: it is fooled by lucky data sets and by no other
    critics among recorded actions    luck of single rows as well: a green drive beside red ones
    critics among all actions         extrapolation as well

Many data sets are drawn, whatever luck they have. Methods are trained on each for real; beside them stand the sample
means and Hoeffding's lower bounds of the two roads.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from score_rl.algorithms.registry import get_algorithm
from score_rl.disk import replacing
from score_rl.nets.actor_critic import values
from score_rl.paper.experiments.drives import STREET, drives, true_value
from score_rl.paper.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table, Variant
from score_rl.paper.experiments.protocols import rounded
from score_rl.paper.experiments.scales import scheduled
from score_rl.paper.experiments.street_figure import Example, draw, draw_picks
from score_rl.run.experiment import TrainedRun, load

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
Picks = dict[str, list[tuple[int, float]]]  # by method: number of the data set, action


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


def critic_picks(run: TrainedRun, number: int, name: str) -> dict[str, float]:
    """What critics alone would pick: by their mean or their least, among all actions or among recorded ones."""
    found = {}
    for among, actions in (("all", GRID), ("recorded", np.sort(drives(number).actions))):
        q = critics_of(run, actions)
        for how, curve in (("mean", q.mean(0)), ("least", q.min(0))):
            found[f"{name}' {how}, {among} actions"] = float(actions[np.argmax(curve)])
    return found


def summary(chosen: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """How often the side street was taken, with luck and without, and how often by an action that nobody had tried."""
    street = np.array([action > 0 for _, action in chosen])
    lucky = np.array([drives(number).lucky for number, _ in chosen])
    known = np.array([drives(number).knows(action) for number, action in chosen])

    def among(some: np.ndarray) -> dict[str, int]:
        taken = street & some
        return {"sets": int(some.sum()), "street": int(taken.sum()), "never_tried": int((taken & ~known).sum())}

    return {
        "lucky": among(lucky),
        "unlucky": among(~lucky),
        "mean_true_value": float(true_value(np.array([action for _, action in chosen])).mean()),
        "picks": [[number, action] for number, action in chosen],
    }


def present(request: Request, done: Sequence[Done]) -> Presentation:
    made = Presentation()
    made.remarks += [
        f"{run.result.name}: {run.result.status}; counts nowhere." for run in done if not run.result.finished
    ]
    ended = [run for run in done if run.result.finished]
    sets = sorted({number_of(run) for run in ended})
    picks: Picks = {
        "sample mean": [(n, STREET if drives(n).lucky else -STREET) for n in sets],
        "lower bound (Hoeffding)": [
            (n, STREET if drives(n).bound(street=True) > drives(n).bound(street=False) else -STREET) for n in sets
        ],
    }
    opened: dict[Path, Any] = {}
    actors: Picks = {}
    for run in ended:
        opened.setdefault(run.result.folder, load(run.result.folder))
        trained, number = opened[run.result.folder][run.result.name], number_of(run)
        if run.label in JUDGED:
            for label, action in critic_picks(trained, number, JUDGED[run.label]).items():
                picks.setdefault(label, []).append((number, action))
        actors.setdefault(run.label, []).append((number, float(trained.policy(np.zeros(1))[0])))
    made.numbers = {label: summary(chosen) for label, chosen in (picks | actors).items()}
    made.tables["picks"] = table_of(made.numbers)
    examples = [
        Example(number, critics_of(opened[run.result.folder][run.result.name], GRID))
        for number in examples_of(sets, picks[f"{JUDGED['SCORE']}' mean, all actions"])
        for run in ended
        if run.label == "SCORE" and number_of(run) == number
    ][:2]
    made.figures["false-correlation"] = draw(GRID, examples, made.numbers)
    made.figures["picks"] = draw_picks(made.numbers)
    made.numbers["data_sets"] = {"all": len(sets), "lucky": sum(drives(number).lucky for number in sets)}
    made.numbers["examples"] = [example_numbers(example) for example in examples]
    return made


def examples_of(sets: Sequence[int], chosen: Sequence[tuple[int, float]]) -> list[int]:
    """The first lucky data set, and the first unlucky one in which the critics' mean takes the street all the same."""
    lucky = [number for number in sets if drives(number).lucky]
    fooled = [number for number, action in chosen if action > 0 and not drives(number).lucky]
    return list(dict.fromkeys([*lucky[:1], *fooled[:1], *sets]))[:2]


def table_of(numbers: Mapping[str, Any]) -> Table:
    def share(found: Mapping[str, int]) -> str:
        far = f", {found['never_tried']} never tried" if found["never_tried"] else ""
        return f"{found['street']} of {found['sets']}{far}"

    rows = [
        (label, share(n["lucky"]), share(n["unlucky"]), f"{n['mean_true_value']:.3f}") for label, n in numbers.items()
    ]
    columns = ("method", "side street, lucky sets", "side street, unlucky sets", "true value (best 0.700)")
    return Table("Who takes the side street", columns, rows)


def example_numbers(example: Example) -> dict[str, Any]:
    """The middle of both roads in a data set, as the critics see them."""
    data, places = drives(example.number), [int(np.argmin(np.abs(GRID - place))) for place in (STREET, -STREET)]
    q = example.critics[:, places]
    return {
        "data_set": example.number, "lucky": data.lucky, "actions": GRID[places].tolist(),
        "true_value": true_value(GRID[places]).tolist(),
        "sample_mean": [float(data.road(street).mean()) for street in (True, False)],
        "hoeffding_lower_bound": [data.bound(street) for street in (True, False)],
        "mean_of_critics": q.mean(0).tolist(), "u": q.std(0).tolist(), "least_critic": q.min(0).tolist(),
    }  # fmt: skip


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
