"""The one exception for what a user can mend: the command line prints it and exits with 2."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """What was found, what was expected and what to do, in one sentence."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for a name that does not exist, with the nearest ones that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"known: {', '.join(known)}."
    return InputError(f"unknown {kind} {name!r}: {hint}")
