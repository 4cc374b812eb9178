"""The settings of an algorithm: a `Config` is a frozen dataclass whose fields are `setting`s.

A setting holds its default, where the default comes from, its limits and the group under which it is shown.
`make_config` builds a `Config` from plain values and refuses what is wrong in one sentence.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin

import jax
from jaxtyping import Array, Bool

from score_rl.errors import InputError, unknown_name

ConfigT = TypeVar("ConfigT")
SCHEDULED_FOR = 1_000_000  # updates, the length of training that the defaults of schedules are made for

Group = Literal["paper", "rest", "ablation"]
HEADINGS: dict[Group, str] = {  # in the order in which they are shown
    "paper": "the method, from its paper",
    "rest": "networks, optimisers and data",
    "ablation": "ablations and variants",
}


class Limits(NamedTuple):
    """The range of a number, or of every number of a tuple; None is no limit."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None

    def allow(self, number: float) -> bool:
        """Whether the number is within the limits; NaN is within none."""
        return (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f"between {self.minimum} and {self.maximum}"
        upper = [f"at most {self.maximum}"] if self.maximum is not None else []
        upper += [f"below {self.below}"] if self.below is not None else []
        if self.minimum is not None:
            return " and ".join([f"{self.minimum} or more", *upper])
        lower = [f"above {self.above}"] if self.above is not None else []
        return " and ".join(lower + upper) or "any number"


class Schedule(NamedTuple):
    """What a setting that counts updates means for a run that is shorter, or longer, than it."""

    shorter: str
    longer: str = ""


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = 0,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    group: Group = "rest",
    static: bool = False,
    schedule: Schedule | None = None,
    only_with: tuple[str, tuple[str, ...]] | None = None,
) -> Any:
    """A field of a `Config`: its default, what it is and where the default comes from.

    Numbers below 0 are refused unless `minimum` says otherwise: None lifts the limit. `above` and `below` leave the
    limit itself out, and `above` replaces `minimum`. The limits of a tuple hold for each of its numbers.

    Floats are traced, so that a sweep over them compiles once and trains as one fleet. Everything else, and
    floats marked `static`, is part of the program: another value is another fleet.

    A setting with a `schedule` counts updates of a run of `SCHEDULED_FOR`; shorter runs want it shorter. A setting
    that is `only_with` another has no effect unless that has one of these values.
    """
    limits = Limits(minimum if above is None else None, maximum, above, below)
    metadata = {"help": help, "limits": limits, "group": group, "static": static, "schedule": schedule}
    metadata["only_with"] = only_with
    return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(frozen_default=True)
def config(cls: type[ConfigT]) -> type[ConfigT]:
    """Make a class of `setting`s a frozen dataclass whose traced fields are the leaves of a pytree."""
    cls = dataclasses.dataclass(frozen=True)(cls)
    # Ablations' settings come last. The order of the leaves is that of a compiled program's arguments, and XLA's
    # choices depend on it, down to the last bit of a result.
    fields = sorted(dataclasses.fields(cls), key=lambda field: field.metadata["group"] == "ablation")  # type: ignore[arg-type]
    traced, static = ([f.name for f in fields if is_traced(f) == wanted] for wanted in (True, False))
    return jax.tree_util.register_dataclass(cls, data_fields=traced, meta_fields=static)


def is_traced(field: dataclasses.Field[Any]) -> bool:
    return field.type is float and not field.metadata.get("static", False)


def limits_of(field: dataclasses.Field[Any]) -> Limits | None:
    """The limits of a setting that is a number or a tuple of numbers; None for every other setting."""
    kind = get_args(field.type)[0] if get_origin(field.type) is tuple else field.type
    return field.metadata["limits"] if kind in (int, float) else None


def names_of(Config: type) -> dict[str, Any]:
    """The settings of a `Config` by name, with the type of each."""
    return {field.name: field.type for field in dataclasses.fields(Config)}


def grouped(Config: type) -> dict[str, list[dataclasses.Field[Any]]]:
    """The settings of a `Config` under their headings, in the order in which they are shown."""
    fields = dataclasses.fields(Config)
    found = {heading: [f for f in fields if f.metadata["group"] == group] for group, heading in HEADINGS.items()}
    return {heading: members for heading, members in found.items() if members}


def schedules(config: Any) -> dict[str, Schedule]:
    """The settings of a `Config` that count updates of a run of `SCHEDULED_FOR`."""
    fields = {field.name: field.metadata.get("schedule") for field in dataclasses.fields(config)}
    return {name: schedule for name, schedule in fields.items() if schedule is not None}


def without_effect(Config: type, values: Mapping[str, Any]) -> set[str]:
    """The settings that change nothing beside these values of the others."""
    conditions = {field.name: field.metadata.get("only_with") for field in dataclasses.fields(Config)}
    defaults = {field.name: field.default for field in dataclasses.fields(Config)}
    return {
        name
        for name, condition in conditions.items()
        if condition is not None and values.get(condition[0], defaults[condition[0]]) not in condition[1]
    }


def scheduled_for(updates: int, steps: int) -> int:
    """What is `updates` of a run of `SCHEDULED_FOR`, of a run of `steps`."""
    return max(1, round(updates * steps / SCHEDULED_FOR))


def make_config(algorithm: Any, settings: Mapping[str, Any]) -> Any:
    """A `Config` of an algorithm from plain values: each of its field's type, within its limits, and all together."""
    fields = {field.name: field for field in dataclasses.fields(algorithm.Config)}
    values = {}
    for name, value in settings.items():
        if name not in fields:
            raise unknown_name(f"setting of {algorithm.name}", name, fields)
        values[name] = _convert(f"{algorithm.name}.{name}", fields[name].type, value)
    made = algorithm.Config(**values)
    for name, field in fields.items():
        _hold_limits(name, getattr(made, name), limits_of(field))
    check = getattr(made, "check", None)
    if check is not None:
        check()
    return made


def _hold_limits(name: str, value: Any, limits: Limits | None) -> None:
    if limits is None:
        return
    if isinstance(value, tuple):
        require(len(value) >= 1, f"{name} is empty; give at least one number, such as 256,256.")
        require(all(map(limits.allow, value)), f"{name} is {value}; each number must be {limits}.")
    else:
        require(limits.allow(value), f"{name} is {value}; it must be {limits}.")


def _convert(name: str, kind: Any, value: Any) -> Any:
    if get_origin(kind) is tuple:
        parts = value.removesuffix(",").split(",") if isinstance(value, str) else value
        try:
            return tuple(get_args(kind)[0](part) for part in parts)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} is {value!r}; it must be numbers with commas between, such as 256,256, or a tuple in Python, "
                "where each value of a list is a setting of its own."
            ) from None
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        require(math.isfinite(value), f"{name} is {value}; it must be a finite number.")
        return float(value)
    choices = get_args(kind)
    if choices and value in choices:
        return value
    if kind is str and isinstance(value, str):
        return value
    expected = " or ".join(map(repr, choices)) if choices else f"a value of type {kind.__name__}"
    raise InputError(f"{name} is {value!r}; it must be {expected}.")


def require(condition: bool | Bool[Array, ""], message: str) -> None:
    """Refuse a setting in one sentence. `Config.check` uses it for settings that do not go together."""
    if not condition:
        raise InputError(message)
