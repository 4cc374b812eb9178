"""What several studies need of results over many drawn data sets: some of them, a frequency, the terms' names."""

from __future__ import annotations

from typing import Any

import numpy as np

from score_rl.paper.theory.decomposition import Decomposition
from score_rl.paper.theory.estimates import clopper_pearson
from score_rl.report import drawing as fig

XI = 0.1
TERMS = (
    ("(i) false correlation", "false_correlation", fig.VERMILION),
    ("(ii) intrinsic uncertainty", "intrinsic_uncertainty", fig.BLUE),
    ("(iii) optimisation error", "optimisation_error", fig.GREEN),
    ("SubOpt", "suboptimality", fig.BLACK),
)


def only(judged: Any, index: Any) -> Any:
    """The same named tuple, nested ones included, for some of the data sets."""
    return type(judged)(*(only(x, index) if isinstance(x, tuple) else x[index] for x in judged))


def largest_residual(parts: Decomposition) -> float:
    """How far the three terms are from summing to the suboptimality, at worst."""
    return float(np.abs(parts.total - parts.suboptimality).max())


def frequency(events: np.ndarray) -> tuple[float, float, float]:
    """The frequency of an event and its exact 95% interval."""
    low, high = clopper_pearson(int(events.sum()), events.size)
    return float(events.mean()), low, high


def frequency_text(events: np.ndarray) -> str:
    share, low, high = frequency(events)
    return f"{share:.3f} [{low:.3f}, {high:.3f}]"
