"""Which modules may be run because the folder of an experiment names them in its environment.

A Gymnasium id such as "module:Id-v0" runs a module. Whoever trains with it names it, which is remembered in the cache.
The folder of an experiment names it too, but a stranger may have packed that folder. So only such modules are run for
it as this user has named before on this machine, names in SCORE_RL_MODULES, or has imported (`--import`).
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from score_rl.disk import cache_folder, private_folder, write_file
from score_rl.envs import is_module_named
from score_rl.errors import InputError
from score_rl.plugins import import_named
from score_rl.store.records import ExperimentRecord

NAMED = "SCORE_RL_MODULES"
OWN = ("ogbench",)  # packages whose environments this package itself names


def trust_module(environment: str | None) -> None:
    """The user has named this environment. Where there is no place to remember it, it must be named again."""
    module = _module(environment)
    if module is None:
        return
    import_named(module, f"the environment {environment}")
    if module in _remembered():
        return
    try:
        private_folder(_file().parent)
        write_file(_file(), "\n".join(sorted({*_remembered(), module})) + "\n")
    except InputError:
        return


def refuse_foreign_modules(record: ExperimentRecord) -> None:
    """Before anything of a folder's environment is made."""
    refuse_foreign([record.request.environment, *(run.environment for run in record.runs)], record.folder)


def refuse_foreign(environments: Iterable[str | None], where: Path | None) -> None:
    """Refuse environments that stand in a file or folder, and whose module this user has not named."""
    for environment in dict.fromkeys(environments):
        module = _module(environment)
        if module is not None and module not in _trusted():
            raise InputError(
                f"{where} names the environment {environment!r}, which would run the module {module!r}, and you have "
                f"not trained with it on this machine: if you trust it, import it (--import {module} in the command "
                f"line), or set {NAMED}={module}."
            )


def _module(environment: str | None) -> str | None:
    """What making this environment would run; None if that is this package and Gymnasium alone."""
    if environment is None or not is_module_named(environment):
        return None
    module = environment.rpartition(":")[0]
    return None if module.partition(".")[0] in OWN else module


def _trusted() -> set[str]:
    return {*sys.modules, *_remembered(), *os.environ.get(NAMED, "").replace(",", " ").split()}


def _remembered() -> set[str]:
    try:
        if not _file().is_file():
            return set()
        private_folder(_file().parent)
        return set(_file().read_text(errors="replace").split())
    except (InputError, OSError):
        return set()


def _file() -> Path:
    return cache_folder() / "trusted" / "modules.txt"
