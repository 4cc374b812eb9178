"""What the columns of a table could be, judged by their names and by the first rows: a command to begin with."""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from score_rl.data.tables.conversion import Missing
from score_rl.data.tables.csv_table import CsvTable, as_they_look
from score_rl.data.tables.first_rows import ascends, is_plain, may_tell_episodes, tells_apart, words_at_ends
from score_rl.data.tables.roles import Roles
from score_rl.data.tables.table import Table, import_polars
from score_rl.data.tables.times import TimeForm
from score_rl.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars

WORDS: Mapping[str, tuple[str, ...]] = {
    "episode": ("episode", "trip", "trajectory", "traj", "batch", "run", "session", "patient", "flight", "cycle"),
    "time": (
        "t", "time", "timestamp", "datetime", "date", "ts", "step", "tick", "minute", "second", "hour", "day", "week",
        "month", "index",
    ),
    "reward": ("r", "reward", "rewards", "rew", "score", "profit", "revenue"),
    "cost": ("cost", "costs", "loss", "penalty", "spend", "expense"),
    "terminal": ("terminal", "terminals", "terminated", "done", "dones", "failed", "failure", "died"),
    "timeout": ("timeout", "timeouts", "truncated", "truncation"),
    "actions": (
        "a", "act", "action", "actions", "u", "control", "command", "cmd", "setpoint", "sp", "valve", "pump", "power",
        "fan", "heater", "throttle", "steering", "brake", "torque", "dose", "damper", "voltage", "speedset", "bid",
        "budget", "price", "discount",
    ),
    "next_observations": ("next",),
}  # fmt: skip
PARTS_OF_TIME = {"step", "tick", "minute", "second", "hour", "day", "week", "month", "index"}  # may begin anew
SINGLE = ("reward", "cost", "terminal", "timeout")


@dataclasses.dataclass(frozen=True)
class Proposal:
    """Which columns seem to be what, what is not clear, and which columns are left out."""

    roles: Roles
    missing: Missing  # what to do about empty cells: "error" where there are none
    unclear: tuple[str, ...]
    left_out: tuple[str, ...]


def propose(table: Table, given: Mapping[str, str | None] | None = None) -> Proposal:
    """Guess by whole words of the names and by the first rows: `valve_1` and `ValvePosition` are actions, `cooling` is
    none. `given` are the columns of single roles that are known."""
    sample = table.sample
    chosen = {role: name for role, name in (given or {}).items() if name is not None}
    taken = {_column_of(role, text, table) for role, text in chosen.items()}
    for role, name in _keys(table, chosen, taken):
        chosen[role] = name
        taken.add(name)
    for role in SINGLE:
        named = [name for name in table.names if name not in taken and _fits(role, name, table)]
        if named and role not in chosen:
            chosen[role] = named[0]
            taken.add(named[0])
    other = chosen.pop("cost") if "reward" in chosen and "cost" in chosen else None
    rest = [name for name in table.names if name not in taken]
    numbers = [name for name in rest if _is_number(sample[name])]
    following = [name for name in numbers if _words(name)[:1] == ["next"]]
    actions = [name for name in numbers if name not in following and _named_as("actions", name)]
    observations = [name for name in numbers if name not in following and name not in actions]
    if len(following) != len(observations):
        following = []
    texts = [name for name in rest if name not in numbers]
    if not numbers:
        _refuse_units_below_names(table)
    missing = _missing(sample, [*observations, *actions], [*following, chosen.get("reward", chosen.get("cost"))])
    unclear = [*_lacking(actions, chosen), *_unread_times(table, texts, chosen), *_marks(sample, texts, chosen)]
    if other is not None:
        unclear.append(
            f"whether {other} belongs to the reward, where it is left out; if so, write one column of "
            f"{chosen['reward']} and {other}"
        )
    if missing != "error":
        gaps = ", ".join(name for name in numbers if sample[name].null_count())
        unclear.append(
            f"what becomes of empty cells ({gaps}); --missing forward takes the value before, --missing drop leaves "
            "such rows out"
        )
    roles = Roles(
        tuple(observations), tuple(actions), next_observations=tuple(following),
        **dict[str, Any](chosen),
    )  # fmt: skip
    return Proposal(roles, missing, tuple(unclear), tuple(texts))


def _column_of(role: str, text: str, table: Table) -> str:
    """The column that a name, or COLUMN=VALUE, means."""
    name = text if text in table.names else text.partition("=")[0]
    if name not in table.names:
        raise unknown_name(f"column for `{role}` in {table.name}:", name, table.names)
    return name


def _keys(table: Table, chosen: Mapping[str, str], taken: Set[str]) -> Iterator[tuple[str, str]]:
    """The columns of episodes and times that are not known: by their names, else by what the rows show."""
    sample = table.sample
    free = [name for name in table.names if name not in taken]
    may = [name for name in free if may_tell_episodes(sample, name) and not _named_as("time", name)]
    named = [name for name in free if _named_as("episode", name) and is_plain(sample, name)]
    named += [name for name in may if _words(name)[-1:] == ["id"]]
    episode = chosen.get("episode") or next(iter(named), None)
    free = [name for name in free if name != episode]
    dated = [name for name in free if _holds_dates(table, name)]
    named = [name for name in free if _named_as("time", name) and _is_time(table, name)]
    time = chosen.get("time") or _best_time(sample, episode, [*named, *(dated if len(dated) == 1 else ())])
    if episode is None and time is not None and not ascends(sample, time):
        texts = [name for name in may if name != time and not _is_number(sample[name])]
        episode = next((name for name in texts if tells_apart(sample, name, time)), None)
    found = {"episode": episode, "time": time}
    yield from ((role, name) for role, name in found.items() if name is not None and role not in chosen)


def _best_time(sample: "polars.DataFrame", episode: str | None, times: Sequence[str]) -> str | None:
    """The first that sorts the rows, of each episode where these are known; else the first that is more than a part."""
    for name in times:
        if ascends(sample, name) if episode is None else tells_apart(sample, episode, name):
            return name
    return next((name for name in times if not PARTS_OF_TIME & set(_words(name)[-1:])), None)


def _lacking(actions: Sequence[str], chosen: Mapping[str, str]) -> Iterator[str]:
    """What the names do not say."""
    if not actions:
        yield "which of the observations are actions"
    if "reward" not in chosen and "cost" not in chosen:
        yield "which column is the reward, or --cost"
    if not {"episode", "terminal", "timeout"} & set(chosen):
        yield "which column tells the episodes; without one the whole table is one"


def _refuse_units_below_names(table: Table) -> None:
    """Some loggers write a second line of units. It makes texts of all columns."""
    kinds = import_polars("a table").selectors
    below = table.sample[1:].select(kinds.string())
    if isinstance(table, CsvTable) and as_they_look(below).select(kinds.numeric()).width:
        raise InputError(
            f"{table.name}, {table.location(0)}: it holds texts where all lines below hold numbers; remove it, and "
            "write units behind the names, as in 'temp [°C]'."
        )


def _unread_times(table: Table, texts: Sequence[str], chosen: Mapping[str, str]) -> Iterator[str]:
    """Columns that are named as times, and hold something else."""
    for name in texts if "time" not in chosen else ():
        if _named_as("time", name):
            try:
                TimeForm.of(table, name)
            except InputError as error:
                yield f"whether the rows stand in the order of {name}, which cannot be read: {str(error).rstrip('.')}"


def _marks(sample: "polars.DataFrame", texts: Sequence[str], chosen: Mapping[str, str]) -> Iterator[str]:
    """Columns of a few words, one of which may mark the ends of episodes."""
    if "terminal" in chosen:
        return
    for words in words_at_ends(sample, texts, chosen.get("episode"), chosen.get("time")):
        word = (words.at_ends or words.all)[0]
        which = (
            f"mostly at the ends of episodes: {', '.join(words.at_ends)}"
            if words.at_ends
            else "name the word that does"
        )
        yield (
            f"whether {words.column} marks failures, after which nothing follows (it holds {', '.join(words.all)}; "
            f"{which}); if so, add --terminal {shlex.quote(f'{words.column}={word}')}"
        )


def _missing(sample: "polars.DataFrame", fillable: Sequence[str], others: Sequence[str | None]) -> Missing:
    """What to do about empty cells in the first rows."""
    if any(name is not None and sample[name].null_count() for name in others):
        return "drop"
    return "forward" if any(sample[name].null_count() for name in fillable) else "error"


def command(file: str, found: Proposal, *, out: str, bounds: bool) -> str:
    """What to type to import a file so; `bounds` says whether actions go beyond ±1."""
    roles = found.roles
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
    if found.missing != "error":
        parts.append(f"--missing {found.missing}")
    return " \\\n    ".join([*parts, f"--out {shlex.quote(out)}"])


def beyond_one(table: Table, columns: Sequence[str]) -> bool:
    """Whether any of these columns goes beyond ±1 in the first rows."""
    cells = [table.sample[name] for name in columns]
    return any(float(str(cell.abs().max())) > 1 for cell in cells if cell.dtype.is_numeric() and cell.count())


def _fits(role: str, name: str, table: Table) -> bool:
    return _named_as(role, name) and (role not in ("reward", "cost") or _is_number(table.sample[name]))


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
