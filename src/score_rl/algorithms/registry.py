"""Algorithms by name. A module is imported when its algorithm is asked for."""

import importlib

from score_rl.algorithms.algorithm import Algorithm
from score_rl.errors import unknown_name

MODULES = {
    "score": "score_rl.algorithms.score",
    "bc": "score_rl.algorithms.bc",
    "td3-bc": "score_rl.algorithms.td3_bc",
    "iql": "score_rl.algorithms.iql",
}


def algorithm_names() -> list[str]:
    return list(MODULES)


def get_algorithm(name: str) -> Algorithm:
    if name not in MODULES:
        raise unknown_name("algorithm", name, MODULES)
    return importlib.import_module(MODULES[name]).ALGORITHM
