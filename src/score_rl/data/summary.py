"""A data set at a glance: what `score data info` prints."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from score_rl.data.dataset import Dataset
from score_rl.envs.tasks import normalised_score

if TYPE_CHECKING:
    from rich.console import RenderableType

SATURATED = 0.99  # of the half-width of the action range
SAMPLE = 10_000  # rows that coverage is measured on, so that data sets of different sizes compare
GRID = 20
BAR = 40


def summary(dataset: Dataset) -> "RenderableType":
    """Dimensions, trajectories, returns and their histogram, and how much of its space the data set covers."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for key, value in facts(dataset).items():
        table.add_row(Text(key, style="bold"), Text(value, overflow="fold"))
    values, complete = dataset.returns()
    shown, which = (values[complete], "complete") if complete.any() else (values, "partial")
    title = Text(f"\nreturns of the {len(shown)} {which} trajectories", style="bold")
    return Group(Text(dataset.name, style="bold"), table, title, *(Text(line) for line in histogram(shown)))


def facts(dataset: Dataset) -> dict[str, str]:
    """The table's lines, in order."""
    values, complete = dataset.returns()
    whole = values[complete] if complete.any() else values
    lines = {
        "environment": dataset.environment or "not known",
        "rows": f"{len(dataset):,}",
        **_dropped(dataset),
        "observations": f"{dataset.observation_dim} dimensions{_names(dataset.observation_names, dataset.units)}",
        "actions": f"{dataset.action_dim} dimensions{_names(dataset.action_names, dataset.units)}, "
        f"{_span(dataset.action_low, dataset.action_high)}",
        **_trajectory_facts(dataset),
        "return": _mean_and_range(whole),
        **_unequal(dataset),
    }
    scores = normalised_score(dataset.environment or "", whole)
    if scores is not None:
        lines["normalised score"] = f"{scores.mean():.1f} ± {scores.std():.1f}"
    lines["reward"] = _reward(dataset.rewards)
    lines["saturated actions"] = f"{100 * saturation(dataset):.1f} % lie within 1 % of a bound"
    lines["action range used"] = f"{100 * action_range_used(dataset):.0f} % of {GRID} equal bins per dimension"
    lines["effective dimension"] = (
        f"{effective_dimension(dataset):.1f} of {dataset.observation_dim + dataset.action_dim} "
        "(how many directions the states and actions vary in)"
    )
    lines["cells visited"] = (
        f"{100 * cells_visited(dataset):.0f} % of a {GRID} × {GRID} grid, ±3 deviations along the two main directions"
    )
    lines["checksum"] = dataset.checksum
    return lines


def _dropped(dataset: Dataset) -> dict[str, str]:
    if not dataset.dropped_rows:
        return {}
    alone = dataset.dropped_trajectories
    vanished = f", {alone:,} of them a whole trajectory" if alone else ""
    return {"dropped": f"{dataset.dropped_rows:,} recorded rows without a next observation{vanished}"}


def _trajectory_facts(dataset: Dataset) -> dict[str, str]:
    complete, lengths = dataset.returns().complete, dataset.recorded.lengths
    partial = len(complete) - int(complete.sum())
    inside = int((dataset.terminals & dataset.followed()).sum())
    within = f" ({inside:,} inside a trajectory)" if inside else ""
    whole = " recorded rows (returns are over them too)" if dataset.dropped_rows else ""
    return {
        "trajectories": f"{len(complete):,}: {int(complete.sum()):,} complete, {partial:,} partial",
        "trajectory length": f"{lengths.mean():.1f} on average, {lengths.min()} to {lengths.max()}{whole}",
        "marks": f"{int(dataset.terminals.sum()):,} terminals{within}, {int(dataset.timeouts.sum()):,} timeouts",
    }


def saturation(dataset: Dataset) -> float:
    """The share of action values within 1 % of a bound, where a squashed policy has no gradient left."""
    return float((np.abs(_unit_actions(dataset)) > SATURATED).mean())


def action_range_used(dataset: Dataset) -> float:
    """The share of equal bins between the bounds, over all action dimensions, that hold at least 0.1 % of the rows."""
    bins = np.clip((_unit_actions(dataset) + 1.0) / 2.0 * GRID, 0, GRID - 1).astype(np.int64)
    counts = np.stack([np.bincount(column, minlength=GRID) for column in bins.T])
    return float((counts >= max(1.0, 1e-3 * len(dataset))).mean())


def effective_dimension(dataset: Dataset) -> float:
    """(Σλ)²/Σλ² over the eigenvalues λ of the correlation matrix of states and actions.

    It is 1 if all of them move together, and their number if each moves on its own.
    """
    variances, _ = _principal_axes(_standardised(dataset))
    return float(variances.sum() ** 2 / np.square(variances).sum()) if variances.sum() > 0 else 0.0


def cells_visited(dataset: Dataset) -> float:
    """The share of a grid over the two main directions of states and actions that a sample of the rows visits.

    A narrow policy traces a thin loop. A mixture of policies, or noise, fills the plane.
    """
    rows = _standardised(dataset)
    variances, axes = _principal_axes(rows)
    scale = np.sqrt(np.maximum(variances[:2], 1e-12))
    plane = rows @ axes[:, :2] / scale
    inside = (np.abs(plane) < 3.0).all(axis=1)
    cells = ((plane[inside] + 3.0) / 6.0 * GRID).astype(np.int64)
    return len(np.unique(cells, axis=0)) / GRID ** plane.shape[1]


def histogram(values: np.ndarray, bins: int = 12) -> list[str]:
    """Counts in equal bins as lines of text."""
    counts, edges = np.histogram(values, bins=min(bins, len(values)) if np.ptp(values) > 0 else 1)
    widest = counts.max()
    digits = decimals(edges[1] - edges[0], figures=2)
    return [
        f"{low:>10.{digits}f} to {high:>10.{digits}f} {count:>8,} {'█' * int(np.ceil(BAR * count / widest))}".rstrip()
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def decimals(spread: float, *, least: int = 1, figures: int = 3) -> int:
    """How many decimals show a difference of this size with so many significant figures; `least` at least."""
    if not spread > 0:
        return least
    return max(least, figures - 1 - math.floor(math.log10(spread)))


def _mean_and_range(values: np.ndarray) -> str:
    digits = decimals(float(values.std()) or float(np.abs(values).max()))
    numbers = (values.mean(), values.std(), values.min(), values.max())
    mean, deviation, least, most = (f"{number:.{digits}f}" for number in numbers)
    return f"{mean} ± {deviation}, {least} to {most}"


def _unequal(dataset: Dataset) -> dict[str, str]:
    """That sums over recordings of unequal length do not compare."""
    lengths = dataset.recorded.lengths
    stopped = lengths[~dataset.terminals[dataset.trajectories[:, 1] - 1]]
    if len(np.unique(stopped)) < 2:
        return {}
    return {"": "recordings that stopped differ in length: compare rewards per step, not returns"}


def _reward(rewards: np.ndarray) -> str:
    digits = decimals(float(rewards.std(dtype=np.float64)) or float(np.abs(rewards).max()), least=3)
    mean = rewards.mean(dtype=np.float64)
    return f"{mean:.{digits}f} on average, {rewards.min():.{digits}f} to {rewards.max():.{digits}f}"


def _names(names: tuple[str, ...] | None, units: Mapping[str, str]) -> str:
    if names is None:
        return ""
    return f" ({', '.join(f'{name} [{units[name]}]' if name in units else name for name in names)})"


def _unit_actions(dataset: Dataset) -> np.ndarray:
    centre = (dataset.action_high + dataset.action_low) / 2.0
    return (dataset.actions - centre) / ((dataset.action_high - dataset.action_low) / 2.0)


def _standardised(dataset: Dataset) -> np.ndarray:
    """A sample of states and actions side by side, each column with mean 0 and deviation 1 (or 0 if constant)."""
    chosen = np.linspace(0, len(dataset) - 1, min(SAMPLE, len(dataset))).astype(np.int64)
    rows = np.concatenate([dataset.observations[chosen], dataset.actions[chosen]], axis=1).astype(np.float64)
    deviations = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)


def _principal_axes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances along the principal axes, largest first, and the axes as columns."""
    variances, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    return variances[::-1], axes[:, ::-1]


def _span(low: np.ndarray, high: np.ndarray) -> str:
    if np.ptp(low) == 0 and np.ptp(high) == 0:
        return f"{low[0]:g} to {high[0]:g}"
    return ", ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
