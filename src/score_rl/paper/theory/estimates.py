"""Estimates and their intervals: a probability, a rank correlation, the slope of a power law."""

from __future__ import annotations

import math

import numpy as np

from score_rl.errors import InputError


def _binomial_tail(successes: int, trials: int, p: float) -> float:
    """Pr(X ≥ successes) for X ~ Binomial(trials, p)."""
    if successes <= 0:
        return 1.0
    k = np.arange(successes, trials + 1)
    log_choose = math.lgamma(trials + 1) - np.array([math.lgamma(i + 1) + math.lgamma(trials - i + 1) for i in k])
    return float(np.exp(log_choose + k * math.log(p) + (trials - k) * math.log1p(-p)).sum())


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability: its coverage is at least `level` for every true value.

    The lower end is the p at which Pr(X ≥ successes) equals (1-level)/2, the upper end that of the other tail;
    both tails are monotone in p, so bisection finds them.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(f"{successes} successes of {trials} trials is not a proportion.")
    tail = (1.0 - level) / 2.0

    def crossing(k: int) -> float:
        """The p with Pr(X ≥ k) = tail."""
        if k <= 0:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if _binomial_tail(k, trials, middle) > tail else (middle, high)
        return 0.5 * (low + high)

    return crossing(successes), 1.0 - crossing(trials - successes)


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, ties sharing their mean rank."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - 0.5 * (counts + 1))[where]


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ; NaN if one of the two is constant."""
    x, y = np.asarray(x, dtype=np.float64).ravel(), np.asarray(y, dtype=np.float64).ravel()
    if x.size != y.size or x.size < 2:
        raise InputError(f"a rank correlation needs two equally long series, got {x.size} and {y.size} values.")
    a, b = ranks(x), ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else float("nan")


def power_law_slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(p, c) of the least-squares fit y ≈ c·x^p on log-log axes."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape != y.shape or x.size < 2 or min(x.min(), y.min()) <= 0:
        raise InputError("a power law is fitted to two or more pairs of positive numbers.")
    slope, offset = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(np.exp(offset))
