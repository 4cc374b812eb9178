"""How well the judge ranks the whole grids that `choosing.py` measured: the table of docs/judging.md."""

from collections.abc import Sequence

import numpy as np

from score_rl.store.judgements import DOUBTFUL

from .choosing_summary import DEFAULT, Stored
from .measures import TOP, rank_correlation, regret, sharpe_ratio

HEADINGS = (
    "data", "policies", "rank correlation: judge", "least distance", "regret@1: judge", "least distance",
    "always the default", "at random", "regret@5: judge", "Sharpe@5: judge",
)  # fmt: skip
UNTRUSTED = 1e12  # by which a policy that is not to be trusted comes after all others


def grid_measures(stored: Sequence[Stored]) -> str:
    """A line for each set, and the means. Regret is a share of best minus worst."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    rows = [_measures(each) for each in stored]
    for each, row in zip(stored, rows, strict=True):
        name = each["set"].removeprefix("replica:")
        lines.append(f"| {name} | {len(each['policies'])} | {' | '.join(map(_shown, row))} |")
    columns = ([value for value in column if value is not None] for column in zip(*rows, strict=True))
    means = [float(np.mean(known)) if known else None for known in columns]
    number = sum(len(each["policies"]) for each in stored)
    return "\n".join([*lines, f"| all, mean | {number} | {' | '.join(map(_shown, means))} |"])


def _measures(each: Stored) -> tuple[float | None, ...]:
    policies = each["policies"]
    truth = np.array([row["return"] for row in policies])
    judge = np.array([_value(row["value"], row["verdict"]) for row in policies])
    near = np.array([-np.inf if row["moved"] is None else -row["moved"] for row in policies])
    spread = np.ptp(truth)
    plain = [row["return"] for row in policies if row["variant"] == DEFAULT]
    return (
        rank_correlation(judge, truth),
        rank_correlation(near, truth),
        regret(judge, truth, 1),
        regret(near, truth, 1),
        float((truth.max() - np.mean(plain)) / spread) if plain else None,
        float((truth.max() - truth.mean()) / spread),
        regret(judge, truth, TOP),
        sharpe_ratio(judge, truth, each["behaviour"]),
    )


def _value(value: float | None, verdict: str) -> float:
    return -np.inf if value is None else value - UNTRUSTED * (verdict == DOUBTFUL)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
