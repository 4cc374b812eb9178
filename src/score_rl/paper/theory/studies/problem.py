"""The problem that the studies of OPO share."""

import numpy as np

from score_rl.paper.theory.examples import behaviour_policy, random_mdp
from score_rl.paper.theory.mdp import FiniteMDP, optimal

ALPHAS = (0.2, 0.5, 0.96)  # α/(1-α) is 1 at 0.5, where exponents cannot be told apart; 0.96 is SCORE's own decay


def random_problem_of(seed: int) -> tuple[FiniteMDP, np.ndarray, np.ndarray]:
    """A random MDP, π* and a behaviour policy π_0 with full support."""
    mdp = random_mdp(5, 3, 0.9, np.random.default_rng(seed + 1), branching=3)
    return mdp, optimal(mdp)[1], behaviour_policy(mdp, 0.3)
