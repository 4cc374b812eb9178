"""What every algorithm is: a configuration and a handful of pure functions.

The fleet engine supplies sampling, `vmap` over runs and `scan` over updates; an algorithm is written for one
run and one batch, in treated units: observations standardised, rewards scaled, actions within ±1.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from score_rl.errors import InputError

Metrics = dict[str, Float[Array, ""]]
ConfigT = TypeVar("ConfigT")
SCHEDULED_FOR = 1_000_000  # updates, the length of training that the defaults of schedules are made for


class Shapes(NamedTuple):
    """The sizes that decide whether two runs fit into one fleet."""

    observation: int
    action: int


class Batch(NamedTuple):
    """Transitions drawn uniformly with replacement, in treated units."""

    observations: Float[Array, "batch observation"]
    actions: Float[Array, "batch action"]
    rewards: Float[Array, " batch"]
    next_observations: Float[Array, "batch observation"]
    terminals: Float[Array, " batch"]  # 1 where the task ended; a timeout is not an end
    rows: Int[Array, " batch"]  # which row of its data set each transition is
    next_actions: Float[Array, "batch action"] | None = None  # recorded one step later; valid where `followed` is 1
    followed: Float[Array, " batch"] | None = None  # 1 where the episode's recording goes on after this transition


class Spread(NamedTuple):
    """Of each column over a whole data set, in treated units."""

    mean: Float[Array, " columns"]
    std: Float[Array, " columns"]
    deviation: Float[Array, " columns"]  # the mean absolute one


class Statistics(NamedTuple):
    inputs: Spread  # (s, a)
    outcomes: Spread  # (r, s' - s)


@dataclasses.dataclass(frozen=True)
class Data:
    """A run's whole data set inside the program, for stages and refreshes."""

    length: Int[Array, ""]
    take: Callable[[Int[Array, " batch"]], Batch]  # the transitions of these rows
    starts: Int[Array, " episodes"]  # the rows with which episodes begin; the first `episodes` of them count
    episodes: Int[Array, ""]
    statistics: Statistics

    def sample(self, key: PRNGKeyArray, number: int) -> Batch:
        """Transitions drawn uniformly with replacement."""
        return self.take(jax.random.randint(key, (number,), 0, self.length))

    def sample_starts(self, key: PRNGKeyArray, number: int) -> Float[Array, "number observation"]:
        """Observations with which episodes begin, drawn uniformly with replacement."""
        drawn = jax.random.randint(key, (number,), 0, self.episodes)
        return self.take(self.starts[drawn]).observations


@dataclasses.dataclass(frozen=True)
class Stage:
    """Training before the training: a dynamics model, a first policy.

    The engine runs epochs of `updates` until a run is `done` or has seen `epochs`, stores and resumes it like
    training itself, and keeps its result in the cache for the next experiment with the same data and `settings`.
    """

    name: str
    settings: tuple[str, ...]  # the fields of Config that decide its result
    epochs: Callable[[Any], int]  # (config) -> at most
    updates: Callable[[Any, Data], Int[Array, ""]]  # (config, data) -> updates in an epoch
    init: Callable[..., Any]  # (config, shapes, data, key) -> state of the stage
    update: Callable[..., tuple[Any, Metrics]]  # (config, state, data, key) -> state, metrics
    judge: Callable[..., tuple[Any, Metrics]]  # (config, state, data) -> state, held-out metrics; after an epoch
    done: Callable[..., Bool[Array, ""]]  # (config, state) -> stop this run
    result: Callable[..., Any]  # (config, state, data) -> what it is all for
    absorb: Callable[[Any, Any], Any]  # (State of training, result) -> State


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """The functions of one algorithm, and what is said about it."""

    name: str
    title: str
    summary: str
    Config: type
    init: Callable[..., Any]  # (config, shapes, key) -> State
    update: Callable[..., tuple[Any, Metrics]]  # (config, state, batch, key, turn) -> State, metrics
    policy: Callable[[Any], Any]  # State -> the part of it that acting needs
    act: Callable[..., Float[Array, "batch action"]]  # (config, policy, observations, key=None) -> actions
    turns: Callable[[Any], int] = lambda config: 1  # updates in a cycle; `update` is told which one, statically
    stages: tuple[Stage, ...] = ()  # in their order, before the first update
    refresh: Callable[..., tuple[Any, Metrics]] | None = None  # (config, state, data, key) -> State, metrics
    refresh_every: Callable[[Any], int] = lambda config: 1  # before every so many updates `refresh` is called
    uncertainty: Callable[..., Float[Array, " batch"]] | None = None  # (config, state, observations, actions)
    counts_as: int = 1  # updates of other methods that one of its own stands for
    characteristics: tuple[str, ...] = ()  # the paper's words: "value-penalised", "uncertainty-aware", ...
    precisions: tuple[str, ...] = ("float32", "bfloat16")  # of matrix products, that it can be trained in
    bfloat16_on: tuple[str, ...] = ()  # kinds of CPUs on which that was measured to be faster (engine/compilation.py)
    headline: tuple[str, ...] = ()  # metrics worth a place beside the progress bar


def cycle(algorithm: Algorithm, config: Any) -> int:
    """The least number of updates after which everything has had its turn."""
    turns = algorithm.turns(config)
    return math.lcm(turns, algorithm.refresh_every(config)) if algorithm.refresh else turns


def network_parameters(algorithm: Algorithm, shapes: Shapes) -> int:
    """Numbers in all networks of one run with default settings: online, target, prior and dynamics networks.

    Neither optimisers nor single multipliers count, as in the paper's run-time table.
    """
    state = jax.eval_shape(lambda: algorithm.init(algorithm.Config(), shapes, jax.random.key(0)))
    parts = jax.tree_util.tree_leaves_with_path(state, is_leaf=lambda part: isinstance(part, eqx.Module))
    networks = [
        part for path, part in parts if isinstance(part, eqx.Module) and "optimiser" not in jax.tree_util.keystr(path)
    ]
    return sum(leaf.size for leaf in jax.tree.leaves(networks))


class Schedule(NamedTuple):
    """What a setting that counts updates means for a run that is shorter, or longer, than it."""

    shorter: str
    longer: str = ""


def setting(
    default: Any, help: str, *, static: bool = False, signed: bool = False, schedule: Schedule | None = None
) -> Any:
    """A field of a `Config`: its default, what it is and where the default comes from.

    Floats are traced, so that a sweep over them compiles once and trains as one fleet. Everything else, and
    floats marked `static`, is part of the program: another value is another fleet.

    Rates, weights, deviations and bounds below 0 are mistakes: floats are refused there unless marked `signed`.

    A setting with a `schedule` counts updates of a run of `SCHEDULED_FOR`; shorter runs want it shorter.
    """
    metadata = {"help": help, "static": static, "signed": signed, "schedule": schedule}
    return dataclasses.field(default=default, metadata=metadata)


def schedules(config: Any) -> dict[str, Schedule]:
    """The settings of a `Config` that count updates of a run of `SCHEDULED_FOR`."""
    fields = {field.name: field.metadata.get("schedule") for field in dataclasses.fields(config)}
    return {name: schedule for name, schedule in fields.items() if schedule is not None}


def scheduled_for(updates: int, steps: int) -> int:
    """What is `updates` of a run of `SCHEDULED_FOR`, of a run of `steps`."""
    return max(1, round(updates * steps / SCHEDULED_FOR))


def config(cls: type[ConfigT]) -> type[ConfigT]:
    """Make a class of `setting`s a frozen dataclass whose traced fields are the leaves of a pytree."""
    cls = dataclasses.dataclass(frozen=True)(cls)
    traced = [f.name for f in dataclasses.fields(cls) if is_traced(f)]  # type: ignore[arg-type]
    static = [f.name for f in dataclasses.fields(cls) if not is_traced(f)]  # type: ignore[arg-type]
    return jax.tree_util.register_dataclass(cls, data_fields=traced, meta_fields=static)


def is_traced(field: dataclasses.Field[Any]) -> bool:
    return field.type is float and not field.metadata.get("static", False)


def make_config(algorithm: Algorithm, settings: Mapping[str, Any]) -> Any:
    """A `Config` from plain values, each checked against the type of its field."""
    fields = {field.name: field for field in dataclasses.fields(algorithm.Config)}
    values = {}
    for name, value in settings.items():
        if name not in fields:
            from score_rl.errors import unknown_name

            raise unknown_name(f"setting of {algorithm.name}", name, fields)
        values[name] = _convert(f"{algorithm.name}.{name}", fields[name].type, value)
    made = algorithm.Config(**values)
    check = getattr(made, "check", None)
    if check is not None:
        check()
    _check_floats(made)
    return made


def _check_floats(config: Any) -> None:
    """What makes no sense whatever the algorithm: less than nothing of anything, targets that never arrive."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, float) and not number >= 0 for number in numbers):
            require(field.metadata.get("signed", False), f"{field.name} is {value}; it must be 0 or more.")
        if field.name == "tau":
            require(0 < value <= 1, f"tau is {value}; it must be above 0 and at most 1.")


def _convert(name: str, kind: Any, value: Any) -> Any:
    if get_origin(kind) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        try:
            return tuple(get_args(kind)[0](part) for part in parts)
        except (TypeError, ValueError):
            raise InputError(f"{name} is {value!r}; it must be numbers with commas between, such as 256,256.") from None
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        require(not math.isnan(value), f"{name} is {value}; it must be a number.")
        return float(value)
    choices = get_args(kind)
    if choices and value in choices:
        return value
    if kind is str and isinstance(value, str):
        return value
    expected = " or ".join(map(repr, choices)) if choices else f"a value of type {kind.__name__}"
    raise InputError(f"{name} is {value!r}; it must be {expected}.")


def require(condition: bool | Bool[Array, ""], message: str) -> None:
    """For `Config.check`: refuse a setting in one sentence."""
    if not condition:
        raise InputError(message)
