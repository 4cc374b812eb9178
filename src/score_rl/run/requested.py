"""Which algorithms an experiment is asked for, and which settings each of them gets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from score_rl.algorithms.algorithm import Algorithm
from score_rl.algorithms.registry import get_algorithm, import_algorithm
from score_rl.algorithms.settings import names_of
from score_rl.errors import InputError, unknown_name
from score_rl.nets.precision import Precision
from score_rl.run.precision import choose_precision
from score_rl.store.request import AlgorithmRequest

Settings = Mapping[str, Any]


def requested_algorithms(
    asked: str | AlgorithmRequest | Sequence[str | AlgorithmRequest],
    config: Settings,
    variants: Sequence[Settings] | None,
    precision: str,
    choose: Callable[[Algorithm, str], Precision] = choose_precision,
) -> tuple[AlgorithmRequest, ...]:
    """Each algorithm with its settings. `choose` says what `precision` comes to where it is trained.

    A setting in `config` goes to every algorithm that has it, and `"iql.temperature"` to IQL alone. What an
    `AlgorithmRequest` says of itself goes over both.
    """
    listed = [asked] if isinstance(asked, str | AlgorithmRequest) else list(asked)
    if not listed:
        raise InputError("`algorithm` is empty; give at least one.")
    requests = [one if isinstance(one, AlgorithmRequest) else AlgorithmRequest(one) for one in listed]
    algorithms = [import_algorithm(request.name) for request in requests]
    _refuse_other_counts(algorithms)
    shared, own = _split(config, algorithms)
    _refuse_unknown(shared, algorithms)
    common = None if variants is None else tuple(map(dict, variants))
    for variant in common or ():
        _refuse_apart(variant, algorithms)
    return tuple(
        AlgorithmRequest(
            name=algorithm.name,
            settings={
                **{name: values for name, values in shared.items() if name in names_of(algorithm.Config)},
                **own.get(algorithm.name, {}),
                **request.settings,
            },
            variants=_variants_of(algorithm, request, common),
            precision=choose(algorithm, precision),
        )
        for request, algorithm in zip(requests, algorithms, strict=True)
    )


def values_of(settings: Settings) -> dict[str, tuple[Any, ...]]:
    """Each setting with all its values: a list is swept over."""
    values = {name: tuple(value) if isinstance(value, list) else (value,) for name, value in settings.items()}
    for name, listed in values.items():
        if not listed:
            raise InputError(f"`config.{name}` is an empty list; give at least one value, or leave it out.")
    return values


def not_for_all(requests: Sequence[AlgorithmRequest], config: Settings) -> dict[str, list[Algorithm]]:
    """The settings in `config` that not every algorithm has, and those that have it."""
    algorithms = [get_algorithm(request.name) for request in requests]
    having = {name: [a for a in algorithms if name in names_of(a.Config)] for name in config if "." not in name}
    return {name: found for name, found in having.items() if len(found) < len(algorithms)}


def _split(
    config: Settings, algorithms: Sequence[Algorithm]
) -> tuple[dict[str, tuple[Any, ...]], dict[str, dict[str, tuple[Any, ...]]]]:
    """What goes to all that have it, and what goes to one."""
    shared: dict[str, tuple[Any, ...]] = {}
    own: dict[str, dict[str, tuple[Any, ...]]] = {}
    for name, values in values_of(config).items():
        before, dot, setting = name.rpartition(".")
        if not dot:
            shared[name] = values
            continue
        if before not in (algorithm.name for algorithm in algorithms):
            names = ", ".join(algorithm.name for algorithm in algorithms)
            raise InputError(f"`config.{name}` is for {before}, which is not trained here; what is: {names}.")
        own.setdefault(before, {})[setting] = values
    return shared, own


def _refuse_unknown(settings: Iterable[str], algorithms: Sequence[Algorithm]) -> None:
    """A setting must belong to some of the algorithms, and be of one kind in them."""
    fields = [names_of(algorithm.Config) for algorithm in algorithms]
    for name in settings:
        having = [algorithm for algorithm, known in zip(algorithms, fields, strict=True) if name in known]
        if not having:
            who = " or ".join(algorithm.name for algorithm in algorithms)
            raise unknown_name(f"setting of {who}", name, {known for names in fields for known in names})
        if len({names_of(algorithm.Config)[name] for algorithm in having}) > 1:
            who, one = " and ".join(algorithm.title for algorithm in having), having[0].name
            raise InputError(
                f"`config.{name}` is another thing in each of {who}; say whose it is, such as `config.{one}.{name}`."
            )


def _variants_of(
    algorithm: Algorithm, request: AlgorithmRequest, common: tuple[Settings, ...] | None
) -> tuple[Settings, ...]:
    """Its own, else those of the common ones that it can have."""
    if request.variants != ({},) or common is None:
        return request.variants
    return tuple(variant for variant in common if set(variant) <= set(names_of(algorithm.Config)))


def _refuse_apart(variant: Settings, algorithms: Sequence[Algorithm]) -> None:
    """Some algorithm must have all settings of a variant."""
    _refuse_unknown(variant, algorithms)
    if not any(set(variant) <= set(names_of(algorithm.Config)) for algorithm in algorithms):
        raise InputError(f"no algorithm has all settings of the variant {dict(variant)}; give them apart.")


def _refuse_other_counts(algorithms: Sequence[Algorithm]) -> None:
    """`steps` must mean the same for all."""
    other = next((algorithm for algorithm in algorithms if algorithm.counts_as > 1), None)
    if other is not None and len({algorithm.counts_as for algorithm in algorithms}) > 1:
        raise InputError(
            f"`algorithm` names {other.title} beside others, but its `steps` count iterations that stand for "
            f"{other.counts_as:,} updates each; train it in an experiment of its own."
        )
