"""What reaches a user: mistakes that can be mended (exit code 2) and an end that was asked for (130)."""

import difflib
from collections.abc import Iterable


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
