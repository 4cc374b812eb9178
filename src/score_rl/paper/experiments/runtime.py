"""Parameters and time per epoch of CQL, PBRL and SCORE, measured here, on this machine, one after the other.

An epoch is the paper's: 1,000 updates, then 10 episodes. Updates are timed over three compiled windows, of which the
median counts, after one that warms up; at a small scale, or with --steps, fewer are timed and counted up to a thousand,
which the table says. Each method multiplies in the precision that `score train` would choose for it here.
"""

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from score_rl.algorithms.algorithm import cycle
from score_rl.algorithms.presets import preset
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.catalogue import load_dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.envs.interface import available_cores
from score_rl.paper.experiments.plan import Asked, Done, Experiment, Presentation, Request, Table
from score_rl.paper.experiments.protocols import rounded
from score_rl.report.drawing import BLUE, ORANGE
from score_rl.rollout.acting import batched_act, host_device
from score_rl.rollout.episodes import episode_generators, judge
from score_rl.run.precision import choose_precision

METHODS = ("cql", "pbrl-prior", "score")  # the paper's PBRL has priors
DATASET, EPOCH, EPISODES, WINDOWS = "halfcheetah-medium", 1_000, 10, 3
PRINTED = {"cql": (0.69e6, 32, 35), "pbrl-prior": (5.66e6, 52, 55), "score": (0.87e6, 16, 18)}  # table 2
SAVED = ("optimiser", "power", "records", "key", "step", "behaviour")  # what a state holds beside networks


def parameters(state: Any) -> int:
    """All weights and biases, target networks counted, as in the paper's table."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    kept = [
        leaf
        for path, leaf in leaves
        if ".weights" in (name := jax.tree_util.keystr(path)) or ".biases" in name
        if not any(word in name for word in SAVED)
    ]
    return sum(int(np.prod(leaf.shape)) for leaf in kept)


def measure(
    method: str, dataset: Any, updates: int, episodes: int, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Seconds for a thousand updates of one run, and for its ten episodes."""
    algorithm = get_algorithm(method)
    known = {field.name for field in dataclasses.fields(algorithm.Config)}
    smaller = {name: value for name, value in (settings or {}).items() if name in known}
    config = make_config(algorithm, preset(method, dataset.name) | smaller)
    updates = max(1, updates // cycle(algorithm, config)) * cycle(algorithm, config)
    run = Run("timed", algorithm, dataset, 0, config)
    precision = choose_precision(algorithm, "auto")
    program = FleetProgram([run], precision=precision)
    began = time.perf_counter()
    program.compile(updates)
    compiled = time.perf_counter() - began
    state = program.init()
    size = parameters(jax.tree.map(lambda leaf: leaf[0], state))
    state, _ = jax.block_until_ready(program.advance(state, 0, updates))
    windows = []
    for number in range(1, 1 + WINDOWS):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(program.advance(state, number * updates, updates))
        windows.append(time.perf_counter() - began)
    training = statistics.median(windows) * EPOCH / updates
    policy, config, treatment = jax.device_put(
        jax.device_get((program.policies(state), program.inputs.config, program.inputs.treatment)), host_device()
    )
    act = batched_act(algorithm)

    def acting(observations: np.ndarray) -> np.ndarray:
        return np.asarray(act(config, treatment, policy, observations))

    acting(np.zeros((1, episodes, dataset.observation_dim), np.float32))  # compiled before the clock runs
    began = time.perf_counter()
    judge(dataset.environment, acting, [episode_generators(run.identity, updates, episodes)])
    judging = (time.perf_counter() - began) * EPISODES / episodes
    return {
        "parameters": size, "updates_timed": updates, "seconds_training": training, "seconds_judging": judging,
        "seconds_per_epoch": training + judging, "seconds_compiling": compiled, "precision": precision,
    }  # fmt: skip


def timed(request: Request) -> int:
    """How many updates."""
    return request.steps or request.scale.timed


def present(request: Request, done: Sequence[Done]) -> Presentation:
    scale = request.scale
    dataset = load_dataset(request.data([DATASET])[0], transitions=scale.transitions, progress=not request.quiet)
    methods = request.methods or METHODS
    episodes = 2 if scale.small else EPISODES
    settings = scale.settings if scale.name == "smoke" else {}  # a trial times the real networks, if briefly
    found = {method: measure(method, dataset, timed(request), episodes, settings) for method in methods}
    device = jax.local_devices()[0].device_kind
    made = Presentation(numbers={"device": device, "data": dataset.name, "methods": found})
    place = f"{available_cores()} CPU cores" if device == "cpu" else device
    rows = []
    for method, mine in found.items():
        printed = PRINTED.get(method)
        rows.append((
            get_algorithm(method).title, f"{mine['parameters'] / 1e6:.2f} M",
            f"{mine['seconds_training']:.2f} s", f"{mine['seconds_judging']:.2f} s",
            f"{mine['seconds_per_epoch']:.2f} s", f"{mine['updates_timed']:,}", mine["precision"],
            "" if printed is None else f"{printed[0] / 1e6:.2f} M, {printed[1]}-{printed[2]} s",
        ))  # fmt: skip
    columns = ("method", "size", "training", "judging", "epoch", "timed", "products", "paper")
    made.tables["runtime"] = Table(
        f"An epoch, 1,000 updates and 10 episodes, of one run on {place}, {dataset.name}", columns, rows
    )
    made.figures["runtime"] = _bars(found, place)
    if "score" in found:
        score = found["score"]["seconds_training"]
        made.remarks += [
            f"{get_algorithm(m).title} takes {mine['seconds_training'] / score:.1f} times as long as SCORE to train."
            for m, mine in found.items()
            if m != "score"
        ]
    return made


def _bars(found: dict[str, dict[str, Any]], place: str) -> Any:
    from score_rl.report.drawing import name_axes, new_figure
    from score_rl.report.figure_style import STYLE, styled

    @styled
    def draw() -> Any:
        figure, ((left, right),) = new_figure(1, 2, 4.3, 0.9 + 0.42 * len(found))
        titles = [get_algorithm(method).title for method in found]
        left.barh(titles, [mine["parameters"] / 1e6 for mine in found.values()], color=BLUE, height=0.6)
        training = [mine["seconds_training"] for mine in found.values()]
        right.barh(titles, training, color=BLUE, height=0.6, label="1,000 updates")
        right.barh(titles, [mine["seconds_judging"] for mine in found.values()], left=training, color=ORANGE,
                   height=0.6, label="10 episodes")  # fmt: skip
        for axis in (left, right):
            axis.invert_yaxis()
            axis.grid(visible=False, axis="y")
        right.legend(loc="lower right", frameon=False, fontsize=STYLE["legend.fontsize"])
        name_axes(left, "million parameters, targets counted", "", "Size")
        name_axes(right, "seconds", "", f"An epoch on {place}")
        return figure

    return draw()


def note(request: Request) -> str:
    said = f"{WINDOWS} times {timed(request):,} updates were timed on this machine after a warm-up; "
    said += "the median counts."
    return f"{request.scale.name.capitalize()} scale: {said} " + (
        "Too few to be exact: this shows that it works and proves nothing." if request.scale.small else ""
    )


def plan(request: Request) -> list[Asked]:
    return []


EXPERIMENTS = (
    Experiment(
        "runtime",
        "table 2: parameters and run time per epoch of CQL, PBRL and SCORE",
        "SCORE has more parameters than CQL and a sixth of PBRL's, and needs half of CQL's time and a third of PBRL's.",
        plan,
        present,
        note=note,
        compares=True,
        cost=lambda request: f"{len(request.methods or METHODS)} × {rounded((1 + WINDOWS) * timed(request))}",
    ),
)
