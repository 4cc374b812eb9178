"""What reaches a user: mistakes that can be mended (exit code 2) and a stop that was asked for (exit code 130).

How a message names an argument
    Code below the command line knows arguments of functions (`eval_every`), not flags (--eval-every). A message puts
    the name of an argument into backticks:

        raise InputError(f"`eval_every` is {n}; it must be a multiple of `log_every`, {m}.")

    Python users read it as it is. The command line turns each such name into its flag. More forms:

        `config.beta`                            --config.beta
        `config.iql.temperature`                 --config.iql.temperature
        `config.normalise_states=True`           --config.normalise-states True

    Backticks in messages are for arguments only. Whoever prints a message calls `as_read`: it turns arguments into
    flags inside a command (`in_command_line`) and leaves the text alone elsewhere. Notes and warnings on the console
    follow the same rule.
"""

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_ARGUMENT = re.compile(r"`([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_-]*){0,2})(?:=([^`]*))?`")
_command_line = ContextVar("command_line", default=False)


class InputError(ValueError):
    """What was found, what was expected and what to do, in one sentence; arguments stand in backticks."""


class MachineError(InputError):
    """What is wrong with this machine, such as a full disk: on another one the same may go well."""


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Training ended early on request, with a checkpoint; says how to go on."""


def with_flags(message: str) -> str:
    """The message with every argument in backticks turned into its flag."""

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        return "--" + name.replace("_", "-") + (f" {value}" if value is not None else "")

    return _ARGUMENT.sub(flag, message)


@contextmanager
def in_command_line() -> Iterator[None]:
    """Whoever reads messages meanwhile types flags."""
    token = _command_line.set(True)
    try:
        yield
    finally:
        _command_line.reset(token)


def as_read(message: str) -> str:
    """The message as its reader can use it: with flags in a command, with arguments elsewhere."""
    return with_flags(message) if _command_line.get() else message


def printable(text: str, *, lines: bool = False) -> str:
    """Foreign text as it may be shown: control characters stand escaped. `lines` lets line breaks stay.

    A terminal would obey them. So would a reader's eye: some characters turn the direction of what follows.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else c.encode("unicode_escape").decode() for c in text)


def count(number: int, one: str, several: str | None = None) -> str:
    """1 run, 2 runs; 1 trajectory, 2 trajectories."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for a name that does not exist, with the nearest ones that do."""
    known = sorted(known)
    spelled = {each.rpartition("/")[2].lower(): each for each in known} | {each.lower(): each for each in known}
    near = dict.fromkeys(spelled[each] for each in difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=0.5))
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known: {', '.join(known)}."
    return InputError(f"unknown {kind} {name!r}: {hint}")


def not_installed(need: str, extra: str = "report") -> InputError:
    """An `InputError` for a library of an extra; `need` is such as "the page needs jinja2"."""
    return InputError(f"{need}, which is not installed: pip install 'score-rl[{extra}]'.")


def refuse_unwritable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written to, before anything is computed; nothing is left behind."""
    for place in (folder, *folder.absolute().parents):
        try:
            place.stat()
        except FileNotFoundError:
            continue  # it would be made: look at what is above it
        except OSError as error:
            reason = error.strerror
        else:
            allowed = os.access(place, os.W_OK | os.X_OK)
            reason = "Not a directory" if not place.is_dir() else "" if allowed else "Permission denied"
        if reason:
            raise InputError(f"cannot write to {folder} ({reason}); give another `out`.")
        return
