"""What reaches a user: mistakes that can be mended (exit code 2) and an end that was asked for (130)."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


class InputError(ValueError):
    """What was found, what was expected and what to do, in one sentence."""


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Training ended early on request, with a checkpoint; says how to go on."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for a name that does not exist, with the nearest ones that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known: {', '.join(known)}."
    return InputError(f"unknown {kind} {name!r}: {hint}")


def not_installed(need: str) -> InputError:
    """An `InputError` for a library of the extra `report`; `need` is such as "the page needs jinja2"."""
    return InputError(f"{need}, which is not installed: pip install '.[report]' in the folder of score-rl's source.")


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
            raise InputError(f"cannot write to {folder} ({reason}); give another --out.")
        return
