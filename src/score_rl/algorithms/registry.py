"""Algorithms by name. A module is imported when its algorithm is asked for."""

import importlib

from score_rl.algorithms.algorithm import Algorithm
from score_rl.errors import unknown_name

MODULES = {
    "score": "score_rl.algorithms.score",
}


def algorithm_names() -> list[str]:
    return list(MODULES)


def get_algorithm(name: str) -> Algorithm:
    if name not in MODULES:
        raise unknown_name("algorithm", name, MODULES)
    return importlib.import_module(MODULES[name]).ALGORITHM
