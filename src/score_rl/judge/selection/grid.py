"""What is chosen from: methods with their settings, in the order in which a small budget takes them.

All have standardised observations and rewards scaled to [0, 1], so that one setting means the same in any units.
What counts updates is scaled to the length of training.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.registry import algorithm_name, get_algorithm
from score_rl.algorithms.settings import make_config, names_of, scheduled_for
from score_rl.errors import InputError
from score_rl.store.request import AlgorithmRequest
from score_rl.store.selections import Size, Variant

DEFAULT_METHODS = ("score", "iql", "rebrac", "td3-bc", "bc")
REFERENCE = "bc"  # what is recommended where nothing is better than the behaviour
ALPHAS, BETAS, DECAYS = (0.1, 0.3, 1.0, 2.5), (0.0, 0.2, 0.5, 1.0), (0.96, 0.98, 1.0)
FIRST_OF_SCORE = (  # (α, β, γ_bc): the far corners early, so that few of them are spread too
    (0.3, 0.2, 1.0), (2.5, 0.2, 0.98), (1.0, 0.2, 1.0), (0.1, 0.2, 1.0), (1.0, 0.2, 0.98), (0.3, 0.5, 1.0),
    (2.5, 0.5, 0.96), (1.0, 0.0, 1.0), (0.3, 0.0, 1.0), (2.5, 0.2, 1.0), (1.0, 1.0, 0.98), (0.1, 0.0, 1.0),
)  # fmt: skip
GOLDEN = 0.6180339887498949  # spreads the rest
EACH_ROUND = {"score": 2}  # variants that a method gives to each round, 1 unless it stands here


def score_grid() -> list[dict[str, Any]]:
    """The 48 settings of SCORE."""
    rest = [one for one in itertools.product(ALPHAS, BETAS, DECAYS) if one not in FIRST_OF_SCORE]
    spread = sorted(range(len(rest)), key=lambda number: (number * GOLDEN) % 1.0)
    ordered = [*FIRST_OF_SCORE, *(rest[number] for number in spread)]
    return [{"alpha": alpha, "beta": beta, "bc_decay": decay} for alpha, beta, decay in ordered]


def grid_of(method: str) -> list[dict[str, Any]]:
    """The settings of a method, the first the most usual; a method without a grid has its defaults alone."""
    if method == "score":
        return score_grid()
    if method == "iql":
        pairs = ((0.7, 3.0), (0.9, 3.0), (0.7, 1.0), (0.9, 10.0), (0.7, 10.0), (0.9, 1.0))
        return [{"expectile": expectile, "temperature": temperature} for expectile, temperature in pairs]
    if method == "rebrac":
        pairs = ((0.1, 0.1), (1.0, 0.0), (0.01, 0.01), (0.1, 0.0), (1.0, 0.1), (0.03, 0.0))
        return [{"actor_bc_weight": actor, "critic_bc_weight": critic} for actor, critic in pairs]
    if method == "td3-bc":
        return [{"alpha": alpha} for alpha in (2.5, 1.0, 0.3, 0.1)]
    return [{}]


def variants_of(methods: str | Sequence[str]) -> list[Variant]:
    """All variants of these methods, taken in turns: first those that are taken where the budget is small."""
    listed = [methods] if isinstance(methods, str) else methods
    names = list(dict.fromkeys(map(algorithm_name, listed)))
    if not names:
        raise InputError("`methods` is empty; give at least one.")
    left = {name: [Variant(name, settings) for settings in grid_of(name)] for name in names}
    ordered: list[Variant] = []
    while any(left.values()):
        for name in names:
            taken = EACH_ROUND.get(name, 1)
            ordered += left[name][:taken]
            left[name] = left[name][taken:]
    return ordered


def requests_for(variants: Sequence[Variant], size: Size, steps: int) -> list[AlgorithmRequest]:
    """What `train` is asked for: each method with its variants, for a training of so many updates."""
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for variant in variants:
        by_method.setdefault(variant.algorithm, []).append(variant.settings)
    return [
        AlgorithmRequest(
            name,
            settings={key: (value,) for key, value in _common(get_algorithm(name), size, steps).items()},
            variants=tuple(settings),
        )
        for name, settings in by_method.items()
    ]


def config_of(variant: Variant, size: Size, steps: int) -> Any:
    """All settings of one variant."""
    algorithm = get_algorithm(variant.algorithm)
    return make_config(algorithm, _common(algorithm, size, steps) | dict(variant.settings))


def _common(algorithm: Algorithm, size: Size, steps: int) -> dict[str, Any]:
    """What all variants of a method share."""
    wanted = {
        "hidden": size.hidden,
        "batch_size": size.batch_size,
        "normalise_states": True,
        "reward_scaling": "minmax",
        "bc_decay_every": scheduled_for(10_000, steps),
        "schedule_steps": 0,  # a constant rate: halving compares policies long before the last update
    }
    if algorithm.name == "rebrac":
        wanted |= {"critic_learning_rate": 3e-4, "actor_learning_rate": 3e-4}  # those for batches of 256
    known = names_of(algorithm.Config)
    return {name: value for name, value in wanted.items() if name in known}
