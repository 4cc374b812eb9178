"""How good a choice by estimates is, beside the truth: the figures of DOPE (Fu et al., 2021) and SCOPE-RL."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from score_rl.store.judgements import DOUBTFUL, MODEL, PESSIMISTIC

TOP = 5


def judged_rank(policy: Mapping[str, Any], end: str = "difference_low") -> float | None:
    """By which the judge ranks a stored policy; `end` "difference" is by the middles of the intervals."""
    if policy["rank"] is None:
        return None
    gain = min(policy["estimates"][kind][end] for kind in (PESSIMISTIC, MODEL))
    return float(gain) - (1e12 if policy["verdict"] == DOUBTFUL else 0.0)


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, ties at their mean."""
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    found[order] = np.arange(len(values))
    for value in np.unique(values):
        same = values == value
        found[same] = found[same].mean()
    return found


def rank_correlation(estimates: np.ndarray, truth: np.ndarray) -> float | None:
    """Spearman's; None where either side says the same of all."""
    a, b = ranks(estimates), ranks(truth)
    if a.std() == 0 or b.std() == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def top(estimates: np.ndarray, number: int) -> np.ndarray:
    """The policies that an estimator puts first; of equals, those that stand first."""
    return np.argsort(-estimates, kind="stable")[:number]


def regret(estimates: np.ndarray, truth: np.ndarray, number: int) -> float:
    """What the best of the chosen policies lacks to the best of all, as a share of best minus worst."""
    spread = truth.max() - truth.min()
    return float((truth.max() - truth[top(estimates, number)].max()) / spread) if spread > 0 else 0.0


def sharpe_ratio(estimates: np.ndarray, truth: np.ndarray, behaviour: float, number: int = TOP) -> float | None:
    """(best of the chosen - behaviour)/deviation of the chosen: what is gained for the risk of deploying them."""
    chosen = truth[top(estimates, number)]
    return float((chosen.max() - behaviour) / chosen.std()) if chosen.std() > 0 else None


def absolute_error(estimates: np.ndarray, truth: np.ndarray) -> float | None:
    """The mean error, as a share of the spread of true values."""
    spread = truth.max() - truth.min()
    return float(np.abs(estimates - truth).mean() / spread) if spread > 0 else None
