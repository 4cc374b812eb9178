"""Parameters on halfcheetah's shapes, target networks counted, against the paper's run-time table."""

import jax
import pytest

from score_rl.algorithms.algorithm import Shapes
from score_rl.algorithms.registry import get_algorithm

HALFCHEETAH = Shapes(observation=17, action=6)
ACTOR = 17 * 256 + 256 + 2 * (256 * 256 + 256) + 256 * 12 + 12  # three hidden layers, mean and log-std
CRITIC = 23 * 256 + 256 + 2 * (256 * 256 + 256) + 256 + 1


def networks(name):
    """Of a method's state: online networks, targets and priors; no optimisers, no schedules."""
    algorithm = get_algorithm(name)
    state = jax.eval_shape(lambda: algorithm.init(algorithm.Config(), HALFCHEETAH, jax.random.key(0)))
    actor = [algorithm.policy(state), getattr(state, "target_actor", None)]
    return [
        *actor,
        *(getattr(state, field, None) for field in ("critics", "target_critics", "priors", "target_priors")),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("score", 865_814),
        ("cql", 691_216),
        ("pbrl-prior", 5_658_676),
        ("pbrl", ACTOR + 20 * CRITIC),
        ("sac-n", ACTOR + 20 * CRITIC),
        ("edac", ACTOR + 20 * CRITIC),
    ],
)
def test_parameters_are_the_papers(name, expected):
    assert sum(leaf.size for leaf in jax.tree.leaves(networks(name))) == expected
