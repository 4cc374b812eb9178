"""What the columns of a table could be, judged by their names and by the first rows: a command to begin with."""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from score_rl.data.tables.roles import Roles
from score_rl.data.tables.table import Table, import_polars
from score_rl.data.tables.times import TimeForm
from score_rl.errors import InputError

if TYPE_CHECKING:
    import polars

WORDS: Mapping[str, tuple[str, ...]] = {
    "episode": ("episode", "trip", "trajectory", "traj", "batch", "run", "session", "patient", "flight", "cycle"),
    "time": ("t", "time", "timestamp", "datetime", "date", "ts", "step", "tick", "minute", "second", "index"),
    "reward": ("r", "reward", "rewards", "rew", "score", "profit"),
    "cost": ("cost", "costs", "loss", "penalty"),
    "terminal": ("terminal", "terminals", "terminated", "done", "dones", "failed", "failure", "died"),
    "timeout": ("timeout", "timeouts", "truncated", "truncation"),
    "actions": (
        "a", "act", "action", "actions", "u", "control", "command", "cmd", "setpoint", "sp", "valve", "pump", "power",
        "fan", "heater", "throttle", "steering", "brake", "torque", "dose", "damper", "voltage", "speedset",
    ),
    "next_observations": ("next",),
}  # fmt: skip
FEW = 5  # words in a column that may be marks
SINGLE = ("episode", "time", "reward", "cost", "terminal", "timeout")


@dataclasses.dataclass(frozen=True)
class Proposal:
    """Which columns seem to be what, what is not clear, and which columns are left out."""

    roles: Roles
    unclear: tuple[str, ...]
    left_out: tuple[str, ...]


def propose(table: Table) -> Proposal:
    """Guess by whole words of the names: `valve_1` and `ValvePosition` are actions, `cooling` is none."""
    sample = table.sample
    chosen: dict[str, str] = {}
    for role in SINGLE:
        free = [name for name in table.names if name not in chosen.values()]
        named = [name for name in free if _fits(role, name, table)]
        if named and not (role == "cost" and "reward" in chosen):
            chosen[role] = named[0]
    if "time" not in chosen:
        dated = [name for name in table.names if name not in chosen.values() and _holds_dates(table, name)]
        chosen |= {"time": dated[0]} if len(dated) == 1 else {}
    rest = [name for name in table.names if name not in chosen.values()]
    numbers = [name for name in rest if _is_number(sample[name])]
    following = [name for name in numbers if _words(name)[:1] == ["next"]]
    actions = [name for name in numbers if name not in following and _named_as("actions", name)]
    observations = [name for name in numbers if name not in following and name not in actions]
    if len(following) != len(observations):
        following = []
    unclear = []
    if not actions:
        unclear.append("which of the observations are actions")
    if "reward" not in chosen and "cost" not in chosen:
        unclear.append("which column is the reward")
    if "episode" not in chosen and "terminal" not in chosen and "timeout" not in chosen:
        unclear.append("which column tells the episodes; without one the whole table is one")
    unclear += _marks(sample, [name for name in rest if name not in numbers], chosen)
    unclear += _gaps(sample, [*observations, *actions])
    roles = Roles(
        tuple(observations), tuple(actions), next_observations=tuple(following),
        **dict[str, Any](chosen),
    )  # fmt: skip
    return Proposal(roles, tuple(unclear), tuple(name for name in rest if name not in numbers))


def _marks(sample: "polars.DataFrame", texts: Sequence[str], chosen: Mapping[str, str]) -> Iterator[str]:
    """Columns of a few words, one of which may mark the ends of episodes."""
    for name in texts if "terminal" not in chosen else ():
        words = sample[name].drop_nulls().unique().sort().to_list()
        if 1 < len(words) <= FEW:
            yield (
                f"whether {name} marks failures (it holds {', '.join(map(str, words))}); if so, add "
                f"--terminal {shlex.quote(f'{name}={words[0]}')}, with the word that does"
            )


def _gaps(sample: "polars.DataFrame", names: Sequence[str]) -> Iterator[str]:
    """Columns with empty cells."""
    missing = [name for name in names if sample[name].null_count()]
    if missing:
        yield (
            f"what becomes of empty cells ({', '.join(missing)}); add --missing forward for the value before, or "
            "--missing drop to leave such rows out"
        )


def command(file: str, roles: Roles, *, out: str, bounds: bool) -> str:
    """What to type to import a file so; `bounds` says whether actions go beyond ±1."""
    parts = [f"score data import {shlex.quote(file)}"]
    for role in (
        "episode",
        "time",
        "observations",
        "actions",
        "reward",
        "cost",
        "terminal",
        "timeout",
        "next_observations",
    ):
        value = getattr(roles, role)
        names = value if isinstance(value, tuple) else (value,) if value is not None else ()
        if role in ("observations", "actions") and not names:
            names = ("COLUMN",)
        if names:
            parts.append(f"--{role.replace('_', '-')} {' '.join(map(shlex.quote, names))}")
    if roles.reward is None and roles.cost is None:
        parts.append("--reward COLUMN")
    if bounds:
        parts.append("--action-bounds data")
    return " \\\n    ".join([*parts, f"--out {shlex.quote(out)}"])


def beyond_one(table: Table, columns: Sequence[str]) -> bool:
    """Whether any of these columns goes beyond ±1 in the first rows."""
    cells = [table.sample[name] for name in columns]
    return any(float(str(cell.abs().max())) > 1 for cell in cells if cell.dtype.is_numeric() and cell.count())


def _fits(role: str, name: str, table: Table) -> bool:
    if not _named_as(role, name):
        return False
    if role == "time":
        return _is_time(table, name)
    return _is_number(table.sample[name]) if role in ("reward", "cost") else True


def _named_as(role: str, name: str) -> bool:
    words = _words(name)
    if role == "time":  # `run_time` is one, `time_constant` is none
        return bool(words) and words[-1] in WORDS[role]
    if role in ("reward", "cost"):  # `reward_sum` and `energy cost` are, `cost_of_heat_per_day` may be another thing
        return bool({" ".join(words), *(words if len(words) == 2 else ())} & set(WORDS[role]))
    return any(word in WORDS[role] for word in words)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.split(r"[^A-Za-z]+", spaced) if word]


def _is_number(cells: "polars.Series") -> bool:
    pl = import_polars("a table")
    return bool(cells.dtype.is_numeric() or cells.dtype == pl.Boolean)


def _holds_dates(table: Table, column: str) -> bool:
    """Whether a column of texts, or of a type of its own, holds times of day."""
    if _is_number(table.sample[column]) or not table.sample[column].count():
        return False
    try:
        return TimeForm.of(table, column).seconds is not None
    except InputError:
        return False


def _is_time(table: Table, column: str) -> bool:
    try:
        TimeForm.of(table, column)
    except InputError:
        return False
    return True
