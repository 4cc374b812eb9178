"""Parameters on halfcheetah's shapes, target networks counted, against the paper's run-time table."""

from itertools import pairwise
from typing import Any

import pytest

from score_rl.algorithms.algorithm import Shapes, network_parameters
from score_rl.algorithms.registry import get_algorithm

HALFCHEETAH = Shapes(observation=17, action=6)


def layers(*sizes: int) -> int:
    return sum(i * o + o for i, o in pairwise(sizes))


ACTOR = layers(17, 256, 256, 256, 12)  # three hidden layers, mean and log-std
CRITIC = layers(23, 256, 256, 256, 1)
TD3 = 2 * layers(17, 256, 256, 6) + 4 * layers(23, 256, 256, 1)  # online and target, two critics


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("score", 865_814),
        ("cql", 691_216),
        ("pbrl-prior", 5_658_676),
        ("pbrl", ACTOR + 20 * CRITIC),
        ("sac-n", ACTOR + 20 * CRITIC),
        ("edac", ACTOR + 20 * CRITIC),
        ("bc", layers(17, 256, 256, 6)),
        ("td3-bc", TD3),
    ],
)
def test_parameters_are_the_papers(name: str, expected: Any) -> None:
    assert network_parameters(get_algorithm(name), HALFCHEETAH) == expected


def test_the_dynamics_of_model_based_methods_count() -> None:
    """MOPO: seven networks for mean and log-std of reward and change, beside SAC's own."""
    agent = layers(17, 256, 256, 12) + 4 * layers(23, 256, 256, 1)
    dynamics = 7 * layers(23, 200, 200, 200, 200, 2 * 18)
    assert network_parameters(get_algorithm("mopo"), HALFCHEETAH) == agent + dynamics
