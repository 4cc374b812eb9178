"""Random MDPs, policies and action-value functions for property tests."""

import numpy as np
from hypothesis import strategies as st

from score_rl.paper.theory.examples import random_mdp
from score_rl.paper.theory.mdp import FiniteMDP

seeds = st.integers(0, 2**32 - 1)
discounts = st.floats(0.05, 0.97)


@st.composite
def mdps(draw: st.DrawFn) -> FiniteMDP:
    """Small Garnet MDPs of any shape, from deterministic to dense."""
    states, actions = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    branching = draw(st.integers(1, states))
    return random_mdp(states, actions, draw(discounts), np.random.default_rng(draw(seeds)), branching)


def random_policy(mdp: FiniteMDP, seed: int) -> np.ndarray:
    """A random policy, deterministic in about half of the states."""
    rng = np.random.default_rng(seed)
    soft = rng.dirichlet(np.ones(mdp.actions), size=mdp.states)
    hard = np.eye(mdp.actions)[rng.integers(mdp.actions, size=mdp.states)]
    return np.where(rng.random((mdp.states, 1)) < 0.5, soft / soft.sum(-1, keepdims=True), hard)


def random_q(mdp: FiniteMDP, seed: int) -> np.ndarray:
    """Any action-value function, also outside the range of values."""
    return np.random.default_rng(seed).normal(0.0, mdp.v_max, size=mdp.R.shape)
