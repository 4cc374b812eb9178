"""How fast this machine trains and judges: each method's own program is tried for a moment."""

import itertools
import time
from collections.abc import Sequence

import jax

from score_rl.algorithms.algorithm import cycle
from score_rl.algorithms.registry import get_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.data.dataset import Dataset
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run
from score_rl.judge.fitted_q import FITTED_Q
from score_rl.judge.fitting import Effort
from score_rl.judge.selection.grid import config_of
from score_rl.judge.selection.plan import SIZES, is_usual, make_plan
from score_rl.nets.precision import Precision
from score_rl.run.precision import choose_precision
from score_rl.store.selections import Plan, Size, Speeds, Variant

TRIED_ON_CPU, TRIED_ELSEWHERE = 4, 32  # runs at once: an accelerator is fast only where it has much to do
CALL = 20  # updates
SECONDS = 1.0  # of trying, at least
STARTING = 15.0  # seconds of each stage: reading, compiling evaluators, writing
SLACK = 1.3  # compiling larger fleets takes longer


def speeds_of(variants: Sequence[Variant], seeds: int, size: Size, dataset: Dataset, evaluators: float) -> Speeds:
    """Of every method among the variants, at this size of networks."""
    updates, compiling = {}, {}
    for name in dict.fromkeys(variant.algorithm for variant in variants):
        mine = [variant for variant in variants if variant.algorithm == name]
        updates[name], compiling[name] = _try(
            _fleet(mine, seeds, size, dataset), choose_precision(get_algorithm(name), "auto")
        )
    return Speeds(updates, compiling, evaluators)


def evaluator_speed(dataset: Dataset, effort: Effort) -> float:
    """Updates a second of fitted Q, summed over policies."""
    config = make_config(
        FITTED_Q,
        {
            "critics": effort.critics, "hidden": effort.hidden, "batch_size": effort.batch_size,
            "rows": len(dataset),
        },
    )  # fmt: skip
    return _try([Run(f"policy {number}", FITTED_Q, dataset, 0, config) for number in range(_tried())], "float32")[0]


def evaluators_start(dataset: Dataset, effort: Effort, speed: float) -> float:
    """Seconds of each stage for what is fitted once for all policies, at most: the behaviour's own critics, its
    density, and the dynamics model.

    They are counted in updates of fitted Q, by their arithmetic.
    """
    rows = min(len(dataset), effort.rows)
    of_model = effort.model_epochs * rows / 256 * (3 * effort.models * 256) / (4 * effort.critics * effort.batch_size)
    return STARTING + (effort.behaviour_updates + of_model + effort.density_updates) / speed


def fitting_plan(
    variants: Sequence[Variant], seeds: int, dataset: Dataset, seconds: float, effort: Effort, evaluators: float
) -> Plan:
    """The plan with the largest networks that leave time for enough variants and updates.

    The first method is tried first, with the smallest networks: where even these take too long, that is known early.
    """
    began, judged_by, start = time.monotonic(), effort.updates, evaluators_start(dataset, effort, evaluators)
    methods = list(dict.fromkeys(variant.algorithm for variant in variants))
    first = [variant for variant in variants if variant.algorithm == methods[0]]

    def left() -> float:
        return seconds - (time.monotonic() - began)

    def alike(tried: Speeds, slower: float = 1.0) -> Speeds:
        """As if all methods were as fast as the first."""
        (rate,), (compiling,) = tried.updates.values(), tried.compiling.values()
        return Speeds(dict.fromkeys(methods, rate / slower), dict.fromkeys(methods, compiling), evaluators, start)

    size = SIZES[-1]
    tried = speeds_of(first, seeds, size, dataset, evaluators)
    make_plan(first, seeds, size, alike(tried), left(), judged_by)  # what cannot fit is refused before more is tried
    for larger in reversed(SIZES[:-1]):
        if not is_usual(variants, seeds, larger, alike(tried, _work(larger) / _work(size)), left(), judged_by):
            break
        found = speeds_of(first, seeds, larger, dataset, evaluators)
        if not is_usual(variants, seeds, larger, alike(found), left(), judged_by):
            break
        size, tried = larger, found
    others = speeds_of([one for one in variants if one.algorithm != methods[0]], seeds, size, dataset, evaluators)
    speeds = Speeds({**tried.updates, **others.updates}, {**tried.compiling, **others.compiling}, evaluators, start)
    return make_plan(variants, seeds, size, speeds, left(), judged_by)


def _work(size: Size) -> float:
    """Of an update, in some unit: what the hidden layers multiply."""
    return size.batch_size * sum(before * after for before, after in itertools.pairwise(size.hidden))


def _fleet(variants: Sequence[Variant], seeds: int, size: Size, dataset: Dataset) -> list[Run]:
    every = [
        Run(
            f"{variant.label} {seed}", get_algorithm(variant.algorithm), dataset, seed, config_of(variant, size, 10_000)
        )
        for variant in variants
        for seed in range(seeds)
    ]
    return every[: _tried()]


def _tried() -> int:
    return TRIED_ON_CPU if jax.default_backend() == "cpu" else TRIED_ELSEWHERE


def _try(runs: Sequence[Run], precision: Precision) -> tuple[float, float]:
    """Updates a second, summed over runs, and the seconds until the program was ready."""
    began = time.monotonic()
    program = FleetProgram(runs, precision=precision)
    state = program.init()
    turns = cycle(runs[0].algorithm, runs[0].config)
    length = max(1, CALL // turns) * turns
    state, metrics = program.advance(state, 0, length)
    jax.block_until_ready(metrics)
    ready = time.monotonic()
    calls = 0
    while time.monotonic() - ready < SECONDS or not calls:
        state, metrics = program.advance(state, length * (calls + 1), length)
        jax.block_until_ready(metrics)
        calls += 1
    return calls * length * len(runs) / (time.monotonic() - ready), SLACK * (ready - began)
