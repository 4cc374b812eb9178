"""Which columns of a table are what."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from score_rl.errors import InputError, unknown_name

PATTERN = set("*?[")
UNIT = re.compile(r"\[([^\[\]]+)\]\s*$")  # a name may end in its unit, such as "flow [l/h]"


class Mark(NamedTuple):
    """A column of marks: true and false, or the rows in which it holds one value."""

    column: str
    value: str | None = None

    def __str__(self) -> str:
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which columns of a table are what, as a user says it: names, or patterns such as `temp*`.

    A pattern leaves out what another role names in full. `terminal` and `timeout` are columns of marks, or
    COLUMN=VALUE. `cost` is a reward with the other sign.
    """

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    reward: str | None = None
    cost: str | None = None
    episode: str | None = None
    time: str | None = None
    terminal: str | None = None
    timeout: str | None = None
    next_observations: tuple[str, ...] = ()
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by name or pattern


@dataclasses.dataclass(frozen=True)
class Columns:
    """The same with every name in full, as the table has it."""

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    reward: str
    sign: int  # of the reward: -1 for a cost
    episode: str | None
    time: str | None
    terminal: Mark | None
    timeout: Mark | None
    next_observations: tuple[str, ...]
    units: Mapping[str, str]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that must hold numbers."""
        return (*self.observations, *self.actions, self.reward, *self.next_observations)

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        marks = [mark.column for mark in (self.terminal, self.timeout) if mark is not None]
        keys = [key for key in (self.episode, self.time) if key is not None]
        return tuple(dict.fromkeys((*keys, *self.numbers, *marks)))

    def to_json(self) -> dict[str, Any]:
        """What a stored result says of them."""
        plain = {name: value for name, value in vars(self).items() if value not in (None, ())}
        marks = {name: str(plain[name]) for name in ("terminal", "timeout") if name in plain}
        lists = {name: list(plain[name]) for name in ("observations", "actions", "next_observations") if name in plain}
        return plain | marks | lists | {"units": dict(self.units)}


def resolve(roles: Roles, names: Sequence[str], table: str) -> Columns:
    """The columns of a table that these roles mean, or one sentence on what does not fit."""
    if (roles.reward is None) == (roles.cost is None):
        found = "neither a reward nor a cost" if roles.reward is None else "a reward and a cost"
        raise InputError(f"{table}: {found} was named; name one column, as `reward` or as `cost`.")
    for role in ("observations", "actions"):
        if not getattr(roles, role):
            raise InputError(f"{table}: no column was named for `{role}`; it has {_shown(names)}.")
    finder = _Finder(roles, names, table)
    columns = Columns(
        observations=finder.several("observations", roles.observations),
        actions=finder.several("actions", roles.actions),
        reward=finder.one("reward" if roles.cost is None else "cost", roles.reward or roles.cost or ""),
        sign=1 if roles.cost is None else -1,
        episode=None if roles.episode is None else finder.one("episode", roles.episode),
        time=None if roles.time is None else finder.one("time", roles.time),
        terminal=None if roles.terminal is None else finder.mark("terminal", roles.terminal),
        timeout=None if roles.timeout is None else finder.mark("timeout", roles.timeout),
        next_observations=finder.several("next_observations", roles.next_observations),
        units={},
    )
    _refuse_two_roles(columns, table)
    if columns.next_observations and len(columns.next_observations) != len(columns.observations):
        raise InputError(
            f"{table}: `next_observations` names {len(columns.next_observations)} columns and `observations` "
            f"{len(columns.observations)}; give one for each, in the same order."
        )
    return dataclasses.replace(columns, units=_units(roles.units, columns, table))


def columns_called(text: str, names: Sequence[str]) -> list[str]:
    """The columns of this name, or else of this pattern: `flow [l/h]` is a name where there is such a column."""
    if text in names or not PATTERN & set(text):
        return [name for name in names if name == text]
    return [name for name in names if fnmatchcase(name, text)]


class _Finder:
    """Finds names and patterns among the columns of a table."""

    def __init__(self, roles: Roles, names: Sequence[str], table: str) -> None:
        self._names, self._table = names, table
        single = (roles.reward, roles.cost, roles.episode, roles.time, roles.terminal, roles.timeout)
        lists = (*roles.observations, *roles.actions, *roles.next_observations)
        marked = [text.partition("=")[0] for text in (roles.terminal, roles.timeout) if text is not None]
        alone = [text for text in (*single, *marked) if text is not None]
        self._named = {name for name in lists if name in names}.union(
            *(columns_called(text, self._names) for text in alone)
        )

    def one(self, role: str, text: str) -> str:
        matching = columns_called(text, self._names)
        if not matching:
            raise unknown_name(f"column for `{role}` in {self._table}:", text, self._names)
        name = matching[0]
        if len(set(matching)) > 1:
            raise InputError(
                f"{self._table}: {text!r} matches {_shown(matching)}, but `{role}` is one column; name it."
            )
        if list(self._names).count(name) > 1:
            raise InputError(f"{self._table} has several columns called {name!r}; give each its own name.")
        return name

    def several(self, role: str, asked: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for text in asked:
            if text in self._names or not PATTERN & set(text):
                matching = [self.one(role, text)]
            else:
                matching = [name for name in columns_called(text, self._names) if name not in self._named]
                if not matching:
                    raise InputError(
                        f"{self._table}: no column for `{role}` matches {text!r}; it has {_shown(self._names)}."
                    )
            for name in matching:
                if name in found and text in self._names:
                    raise InputError(f"{self._table}: `{role}` names {name!r} twice; give each column once.")
                found += [] if name in found else [self.one(role, name)]
        return tuple(found)

    def mark(self, role: str, text: str) -> Mark:
        column, equals, value = text.partition("=")
        if text in self._names or not equals:
            return Mark(self.one(role, text))
        return Mark(self.one(role, column), value)


def _refuse_two_roles(columns: Columns, table: str) -> None:
    single = {"reward": columns.reward, "episode": columns.episode, "time": columns.time}
    for role, mark in (("terminal", columns.terminal), ("timeout", columns.timeout)):
        single[role] = None if mark is None or mark.value is not None else mark.column
    taken: dict[str, str] = {}
    several = {role: getattr(columns, role) for role in ("observations", "actions", "next_observations")}
    for role, names in {**several, **{role: (name,) for role, name in single.items() if name is not None}}.items():
        for name in names:
            before = taken.setdefault(name, role)
            # The time may well be observed, too.
            if before != role and {before, role} != {"observations", "time"}:
                raise InputError(f"{table}: column {name!r} was named for {before} and for {role}; name it for one.")


def _units(asked: Mapping[str, str], columns: Columns, table: str) -> dict[str, str]:
    """Units in the names of columns, and those that were given over them."""
    named = (*columns.observations, *columns.actions)
    units = {name: found.group(1) for name in named if (found := UNIT.search(name))}
    for text, unit in asked.items():
        matching = columns_called(text, named)
        if not matching:
            raise InputError(
                f"{table}: `units` names {text!r}, which is no observation and no action; those are {_shown(named)}."
            )
        units |= dict.fromkeys(matching, unit)
    return units


def _shown(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "no columns"
