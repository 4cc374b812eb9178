"""Algorithms by name. `get_algorithm` imports a module when its algorithm is first asked for."""

import importlib

from score_rl.algorithms.algorithm import Algorithm
from score_rl.errors import unknown_name

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
    return list(MODULES)


def algorithm_name(written: str) -> str:
    """The name as the table has it: CQL, td3_bc and TD3BC are understood too."""
    plain = {_plain(name): name for name in MODULES}
    if _plain(written) not in plain:
        raise unknown_name("algorithm", written, MODULES)
    return plain[_plain(written)]


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def get_algorithm(name: str) -> Algorithm:
    module, _, attribute = MODULES[algorithm_name(name)].partition(":")
    return getattr(importlib.import_module(module), attribute or "ALGORITHM")
