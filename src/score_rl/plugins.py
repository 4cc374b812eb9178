"""Modules that a user names: with algorithms, or with environments that Gymnasium does not know by itself.

Naming a module is the user's own act. A file of data never causes an import, and the folder of an experiment none of a
module that its user has not named before (`algorithms.registry`, `run.trusted_modules`).
"""

import importlib
import sys
import warnings
from pathlib import Path

from score_rl.errors import InputError


def import_named(module: str, what: str = "", *, here: bool = True) -> None:
    """Import a module that somebody names; from the folder in which they work too, if it is they who name it `here`.

    `what` needs it.
    """
    folder = str(Path.cwd())
    if here and folder not in sys.path:
        sys.path.append(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of a machine without a screen
            importlib.import_module(module)
    except (ModuleNotFoundError, ValueError) as error:  # ValueError: the empty name
        missing = getattr(error, "name", None) or module
        if module != missing and not module.startswith(f"{missing}."):
            raise
        raise InputError(
            f"{what or 'this'} needs the module {module!r}, which is neither installed nor in {folder}: install it, or "
            "call this in the folder that has it."
        ) from None
