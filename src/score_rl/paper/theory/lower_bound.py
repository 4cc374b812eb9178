"""What no algorithm can do better: the information-theoretic lower bound, on the smallest problem that has one.

The paper calls term (ii) of the decomposition, and ε_Pess in the theorem, irremovable by the lower bound of Jin et al.
That bound speaks of a class of problems: for every algorithm there is a member on which it does badly. Here is
the smallest such class. One decision: a safe action worth 1/2, and a risky one worth 1 with probability p and 0
otherwise. The data show the risky action n times. Two members, p = 1/2 + δ and p = 1/2 - δ, each with Δ = δ to lose.

An algorithm sees the number of wins X ~ Binomial(n, p) and picks. Whatever it does, the mean of its two losses is at
least

    (δ/2) Σ_x min{Pr(X = x | p = 1/2 + δ), Pr(X = x | p = 1/2 - δ)},

and picking the risky action for more than n/2 wins attains it on both (ties by a coin). So this is the least worst
loss of any algorithm on the two. It is largest for δ about 0.38/√n, where it is about 0.085/√n.
"""

from __future__ import annotations

import math

import numpy as np

from score_rl.errors import InputError


def wins(trials: int, p: float) -> np.ndarray:
    """Pr(X = x) for x = 0 … n, X ~ Binomial(n, p)."""
    if trials < 1 or not 0.0 <= p <= 1.0:
        raise InputError(f"expected n ≥ 1 and 0 ≤ p ≤ 1, got {trials} and {p}.")
    if p in (0.0, 1.0):
        return np.eye(trials + 1)[trials if p else 0]
    x = np.arange(trials + 1)
    log_choose = math.lgamma(trials + 1) - np.array([math.lgamma(i + 1) + math.lgamma(trials - i + 1) for i in x])
    return np.exp(log_choose + x * math.log(p) + (trials - x) * math.log1p(-p))


def least_worst_loss(trials: int, delta: float) -> float:
    """The least worst loss of any algorithm on the pair p = 1/2 ± δ."""
    return 0.5 * delta * float(np.minimum(wins(trials, 0.5 + delta), wins(trials, 0.5 - delta)).sum())


def hardest_pair(trials: int, points: int = 400) -> tuple[float, float]:
    """(δ, the least worst loss) of the pair on which every algorithm loses most."""
    deltas = np.linspace(0.0, min(0.5, 2.0 / math.sqrt(trials)), points + 1)[1:]
    losses = [least_worst_loss(trials, float(delta)) for delta in deltas]
    best = int(np.argmax(losses))
    return float(deltas[best]), losses[best]


def greedy_rule(trials: int) -> np.ndarray:
    """The probability of the risky action after x wins: it is taken for more than half, a coin decides at half."""
    x = np.arange(trials + 1)
    return np.where(2 * x == trials, 0.5, (2 * x > trials).astype(float))


def pessimistic_rule(trials: int, width: float) -> np.ndarray:
    """The risky action is taken if its sample mean exceeds 1/2 by more than U = width."""
    return (np.arange(trials + 1) / trials > 0.5 + width).astype(float)


def loss(rule: np.ndarray, p: float) -> float:
    """The expected loss of a rule at p: |p - 1/2| times the probability of the wrong action."""
    risky = float(wins(len(rule) - 1, p) @ rule)
    return (p - 0.5) * (1.0 - risky) if p > 0.5 else (0.5 - p) * risky


def worst_loss(rule: np.ndarray, points: int = 401) -> float:
    """The largest loss of a rule over all p."""
    return max(loss(rule, float(p)) for p in np.linspace(0.0, 1.0, points))


def hoeffding_width(trials: int, xi: float) -> float:
    """√(log(2/ξ)/2n): the mean of n rewards in [0, 1] is that near to its expectation with probability 1-ξ."""
    return math.sqrt(math.log(2.0 / xi) / (2.0 * trials))
