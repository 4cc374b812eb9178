"""Algorithms by name. `get_algorithm` imports a module when its algorithm is first asked for.

Beside the package's own there are plugins, of two kinds:

    an entry point in the group `score_rl.algorithms`, of a package that somebody has installed: it has a name as ours
    "package.module:ALGORITHM", a module that somebody names

A module is never imported because a stored experiment names it: `get_algorithm` takes it only where it is imported
already. `import_algorithm` imports it, for whoever types the name.
"""

import dataclasses
import importlib
import importlib.metadata
import sys
from functools import cache

from score_rl.algorithms.algorithm import Algorithm
from score_rl.errors import InputError, unknown_name
from score_rl.plugins import import_named

GROUP = "score_rl.algorithms"  # of entry points
MODULES = {  # name: module of its ALGORITHM, or module:attribute
    "score": "score_rl.algorithms.score",
    "bc": "score_rl.algorithms.bc",
    "td3-bc": "score_rl.algorithms.td3_bc",
    "iql": "score_rl.algorithms.iql",
    "rebrac": "score_rl.algorithms.rebrac",
    "fql": "score_rl.algorithms.fql",
    "bcq": "score_rl.algorithms.bcq",
    "bear": "score_rl.algorithms.bear",
    "uwac": "score_rl.algorithms.uwac",
    "cql": "score_rl.algorithms.cql",
    "sac-n": "score_rl.algorithms.sac_n",
    "edac": "score_rl.algorithms.edac",
    "pbrl": "score_rl.algorithms.pbrl",
    "pbrl-prior": "score_rl.algorithms.pbrl:WITH_PRIOR",
    "mopo": "score_rl.algorithms.mopo",
    "morel": "score_rl.algorithms.morel",
}


def algorithm_names() -> list[str]:
    """The package's own."""
    return list(MODULES)


@cache
def installed_plugins() -> dict[str, str]:
    """The names of entry points, each with its module and attribute; a name of ours stays ours."""
    found = importlib.metadata.entry_points(group=GROUP)
    return {point.name: point.value for point in found if point.name not in MODULES}


def algorithm_name(written: str) -> str:
    """The name as the table has it: CQL, td3_bc and TD3BC are understood too."""
    if ":" in written:
        return written
    known = {**MODULES, **installed_plugins()}
    plain = {_plain(name): name for name in known}
    if _plain(written) not in plain:
        raise unknown_name("algorithm", written, known)
    return plain[_plain(written)]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def get_algorithm(name: str) -> Algorithm:
    """The algorithm of this name. A module that is named is taken where it is imported, and not imported."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        if module not in sys.modules:
            raise InputError(
                f"the algorithm {name} is in the module {module}, which is not imported, since stored experiments may "
                f"not run modules: import it yourself (--import {module} in the command line)."
            )
        return _checked(name, sys.modules[module], attribute)
    own = algorithm_name(name)
    module, _, attribute = {**installed_plugins(), **MODULES}[own].partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute or "ALGORITHM") if own in MODULES else _checked(own, loaded, attribute)


def import_algorithm(name: str) -> Algorithm:
    """The algorithm that somebody names: its module is imported, also from the folder in which they work."""
    if ":" in name:
        import_named(name.partition(":")[0], f"the algorithm {name}")
    return get_algorithm(name)


def _checked(name: str, module: object, attribute: str) -> Algorithm:
    """A plugin under the name by which it is found again."""
    found = getattr(module, attribute or "ALGORITHM", None)
    if not isinstance(found, Algorithm):
        what = "is not there" if found is None else f"is a {type(found).__name__}"
        raise InputError(
            f"{attribute or 'ALGORITHM'} of the algorithm {name} {what}; a score_rl.algorithms.algorithm.Algorithm is "
            "expected, as docs/extending.md shows."
        )
    return dataclasses.replace(found, name=name)
