"""Finite MDPs to study: random, chain, gridworld and the lucky green lights of section 3.1."""

from __future__ import annotations

import numpy as np

from score_rl.errors import InputError
from score_rl.paper.theory.mdp import FiniteMDP, greedy, optimality_fixed_point


def random_mdp(
    states: int, actions: int, gamma: float, rng: np.random.Generator, branching: int | None = None
) -> FiniteMDP:
    """A Garnet MDP: every pair leads to `branching` random successors with random probabilities."""
    if states < 1 or actions < 1:
        raise InputError(f"a random MDP needs at least one state and one action, got {states} and {actions}.")
    branching = states if branching is None else min(max(branching, 1), states)
    P = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        P[s, a, rng.choice(states, branching, replace=False)] = rng.dirichlet(np.ones(branching))
    P /= P.sum(-1, keepdims=True)
    d0 = rng.dirichlet(np.ones(states))
    return FiniteMDP(P, rng.random((states, actions)), gamma, d0 / d0.sum(), name="random")


def chain(length: int = 6, gamma: float = 0.9, slip: float = 0.1) -> FiniteMDP:
    """Left or right along a chain; 1 for acting in the last state, 0.2 for staying at the first."""
    if length < 2:
        raise InputError(f"a chain needs at least two states, got {length}.")
    P = np.zeros((length, 2, length))
    R = np.zeros((length, 2))
    for s in range(length):
        left, right = max(s - 1, 0), min(s + 1, length - 1)
        for a, (meant, other) in enumerate([(left, right), (right, left)]):
            P[s, a, meant] += 1.0 - slip
            P[s, a, other] += slip
    R[0, 0], R[-1, 1] = 0.2, 1.0
    d0 = np.eye(length)[0]
    return FiniteMDP(P, R, gamma, d0, name="chain")


def gridworld(width: int = 4, gamma: float = 0.9, slip: float = 0.1) -> FiniteMDP:
    """Four moves on a square; 1 in the far corner, everywhere else a wage of 0.1, but for one pit that pays nothing."""
    if width < 2:
        raise InputError(f"a gridworld needs a width of at least two, got {width}.")
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    n = width * width
    P = np.zeros((n, 4, n))
    for (x, y), a in ((xy, a) for xy in np.ndindex(width, width) for a in range(4)):
        for b, (dx, dy) in enumerate(moves):
            target = np.clip(x + dx, 0, width - 1) * width + np.clip(y + dy, 0, width - 1)
            P[x * width + y, a, target] += 1.0 - slip if a == b else slip / 3.0
    R = np.full((n, 4), 0.1)
    R[(width // 2) * width + width // 2 - 1] = 0.0
    R[n - 1] = 1.0
    return FiniteMDP(P, R, gamma, np.eye(n)[0], name="gridworld")


def lucky_green_lights(routes: int = 5, lights: int = 3, green: float = 0.75, gamma: float = 0.8) -> FiniteMDP:
    """The motivating example of section 3.1.

    A vehicle leaves the depot (state 0) by one of `routes` side streets or by the avenue (the last action, so
    that ties never favour it). The avenue is always a decent journey. A side street has `lights` traffic
    lights in a row and is fast only if every one is green, with probability green^lights; one red light makes
    it slow. The avenue is better on average, but a side street that a few drives found all green looks better.
    """
    if routes < 1 or lights < 1 or not 0.0 < green < 1.0:
        raise InputError(f"expected routes, lights ≥ 1 and 0 < green < 1, got {routes}, {lights}, {green}.")
    avenue, fast, slow, arrived, first_light = 1, 2, 3, 4, 5
    n = first_light + routes * lights
    P = np.zeros((n, routes + 1, n))
    R = np.zeros((n, routes + 1))
    P[0, routes, avenue] = 1.0
    for route in range(routes):
        light = first_light + route * lights
        P[0, route, light] = 1.0
        for i in range(lights):
            P[light + i, :, fast if i == lights - 1 else light + i + 1] = green
            P[light + i, :, slow] = 1.0 - green
    P[[avenue, fast, slow, arrived], :, arrived] = 1.0
    # The avenue takes as long as a lucky street, so its reward is discounted to the same moment.
    R[avenue], R[fast], R[slow] = 0.7 * gamma**lights, 1.0, 0.2
    return FiniteMDP(P, R, gamma, np.eye(n)[0], name="lucky green lights")


def behaviour_policy(mdp: FiniteMDP, quality: float, floor: float = 0.05) -> np.ndarray:
    """π_β(a|s) = quality · π*(a|s) + (1 - quality)/A, mixed with the uniform policy until no entry is below floor/A."""
    if not 0.0 <= quality <= 1.0 or not 0.0 <= floor <= 1.0:
        raise InputError(f"quality and floor are shares between 0 and 1, got {quality} and {floor}.")
    best = greedy(optimality_fixed_point(mdp))
    share = min(quality, 1.0 - floor)
    return share * best + (1.0 - share) / mdp.actions


def cautious_driver(mdp: FiniteMDP, avenue: float = 0.9) -> np.ndarray:
    """The behaviour policy of the green lights: mostly the avenue, now and then a side street at random.

    Past the depot there is nothing to decide, and action 0 is taken.
    """
    if not 0.0 < avenue < 1.0:
        raise InputError(f"the share of drives on the avenue is {avenue}, expected strictly between 0 and 1.")
    policy = np.zeros((mdp.states, mdp.actions))
    policy[:, 0] = 1.0
    policy[0] = (1.0 - avenue) / (mdp.actions - 1)
    policy[0, -1] = avenue
    return policy
