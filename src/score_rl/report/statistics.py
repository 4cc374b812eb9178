"""Means, intervals, aggregates and profiles over seeds and data sets.

Two kinds of interval, both 95 %:
- over the seeds of one run group (tables, curves): Student's t around the mean. With five seeds a bootstrap of the
  mean is known to be too narrow; t is not, for values that are about normal.
- over whole suites (aggregates, profiles): the stratified bootstrap of rliable, which draws seeds within every data
  set.

Fewer than three seeds have no interval: it is NaN, never zero. Student's t of two seeds spans a hundred points where
they are ten apart, and a bootstrap of two knows nothing but the two. The seeds themselves are shown instead.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from score_rl.errors import InputError, not_installed
from score_rl.report.results import Curve

CONFIDENCE = 0.95
FEWEST_SEEDS = 3  # that an interval is made from
REPETITIONS = 2_000
TARGET = 100.0  # percent: the score below which the optimality gap counts
AGGREGATES = ("median", "iqm", "mean", "optimality_gap")


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; NaN bounds where nothing can be said."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


@dataclasses.dataclass(frozen=True)
class MeanCurve:
    """The mean over seeds along training, and Student's interval around it."""

    steps: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    high: Float[np.ndarray, " points"]
    runs: int


@dataclasses.dataclass(frozen=True)
class Profile:
    """The share of runs with a score above each threshold."""

    thresholds: Float[np.ndarray, " points"]
    share: Float[np.ndarray, " points"]
    low: Float[np.ndarray, " points"]
    high: Float[np.ndarray, " points"]


def require_rliable(extra: str = "report") -> tuple[Any, Any]:
    """rliable's library and metrics, or a sentence on how to get them with an extra."""
    try:
        from rliable import library, metrics
    except ModuleNotFoundError as missing:
        raise not_installed("the statistics need rliable", extra) from missing
    return library, metrics


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, and restore it afterwards.

    rliable documents `random_state`, but draws from the global generator.
    """
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


# -- over seeds ------------------------------------------------------------------------------------------------------


def t_interval(values: Float[np.ndarray, " seeds *points"]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of Student's 95 % interval around the mean over the first axis."""
    number = len(values)
    if number < FEWEST_SEEDS:
        nothing = np.full(np.shape(values)[1:], np.nan)
        return nothing, nothing
    from scipy.special import stdtrit

    half = stdtrit(number - 1, 0.5 + CONFIDENCE / 2) * values.std(0, ddof=1) / np.sqrt(number)
    return values.mean(0) - half, values.mean(0) + half


def printed_interval(mean: float, std: float, number: int) -> Estimate:
    """Student's 95 % interval of a mean, from its standard deviation (divided by n, not n - 1) and n alone."""
    if number < FEWEST_SEEDS:
        return Estimate(mean, np.nan, np.nan)
    from scipy.special import stdtrit

    half = float(stdtrit(number - 1, 0.5 + CONFIDENCE / 2)) * std / np.sqrt(number - 1)
    return Estimate(mean, mean - half, mean + half)


def overlap(one: Estimate, other: Estimate) -> bool | None:
    """Whether two intervals have a point in common; None where one of them has no interval."""
    if not (one.has_interval and other.has_interval):
        return None
    return one.low <= other.high and other.low <= one.high


def welch(one: Sequence[float], mean: float, std: float, number: int) -> float | None:
    """Welch's p for equal means of these values and of `number` others.

    Of the others only the mean and the standard deviation (divided by n) are known. None where either side has no
    spread to judge by.
    """
    if len(one) < 2 or number < 2:
        return None
    mine, theirs = float(np.var(one, ddof=1)) / len(one), std**2 / (number - 1)
    both = mine + theirs
    if not both:
        return None
    from scipy.special import stdtr

    freedom = both**2 / (mine**2 / (len(one) - 1) + theirs**2 / (number - 1))
    return float(2 * stdtr(freedom, -abs(np.mean(one) - mean) / both**0.5))


def agreement(values: Sequence[float], mean: float, std: float, number: int) -> str:
    """Whether Student's 95 % intervals of two means overlap, in a word.

    Means may differ by more than chance although their intervals overlap. Where Welch's test says so at 5 %, its p
    stands beside the yes.
    """
    both = overlap(mean_over_seeds(np.array(values, float)), printed_interval(mean, std, number))
    if both is None:
        return "too few seeds"
    chance = welch(values, mean, std, number)
    return "no" if not both else "yes" if chance is None or chance >= 1 - CONFIDENCE else f"yes, but p = {chance:.2f}"


def mean_over_seeds(values: Float[np.ndarray, " seeds"]) -> Estimate:
    if not len(values):
        raise InputError("there is no value to take the mean of; finish a run first.")
    low, high = t_interval(np.asarray(values, float))
    return Estimate(float(np.mean(values)), float(low), float(high))


def mean_curve(curves: Sequence[Curve]) -> MeanCurve:
    """The mean at the steps at which every run was measured, so that it counts as many runs as it says.

    Where one run stopped early, the mean ends with it.
    """
    if not curves:
        raise InputError("there is no curve to take the mean of; finish a run first.")
    common = sorted(set.intersection(*(set(curve.steps.tolist()) for curve in curves)))
    if not common:
        raise InputError(
            f"{len(curves)} runs were never measured at the same update, so they have no mean; "
            "train them with the same --log-every and --eval-every."
        )
    steps = np.array(common)
    values = np.stack([curve.values[np.searchsorted(curve.steps, steps)] for curve in curves])
    low, high = t_interval(values)
    return MeanCurve(steps, values.mean(0), low, high, len(curves))


# -- over suites -----------------------------------------------------------------------------------------------------


def score_matrix(method: str, scores: Mapping[str, Sequence[float]]) -> Float[np.ndarray, "seeds datasets"]:
    """Final scores by data set, as the matrix that the bootstrap needs. Every data set must have as many seeds."""
    numbers = {dataset: len(values) for dataset, values in scores.items()}
    if not numbers or 0 in numbers.values():
        missing = [dataset for dataset, number in numbers.items() if not number]
        raise InputError(f"{method} has no score on {', '.join(missing) or 'any data set'}; finish runs there first.")
    if len(set(numbers.values())) > 1:
        shown = ", ".join(f"{number} on {dataset}" for dataset, number in numbers.items())
        raise InputError(
            f"{method} has unequal numbers of seeds ({shown}), which an aggregate would weigh unequally; finish the "
            "missing runs, or leave these data sets out."
        )
    matrix = np.array(list(scores.values()), float).T
    if not np.isfinite(matrix).all():
        raise InputError(f"{method} has a score that is not finite; leave that run out and say so.")
    return matrix


def comparable(
    scores: Mapping[str, Mapping[str, Sequence[float]]],
) -> tuple[dict[str, Float[np.ndarray, "seeds datasets"]], list[str], list[str]]:
    """Matrices of the methods that can be compared, the data sets they share, and a sentence for all left out.

    The rule: the data sets are those on which every method has a score. Where there is none, methods with the fewest
    data sets are left out, one after the other, until there is one. A method with unequal numbers of seeds on them is
    left out as well. All of these are named.
    """
    tried = {method: {d: list(v) for d, v in mine.items() if len(v)} for method, mine in scores.items()}
    notes = [f"{method} has no finished run with a score." for method, mine in tried.items() if not mine]
    tried = {method: mine for method, mine in tried.items() if mine}
    if not tried:
        return {}, [], notes
    left: dict[str, list[str]] = {}
    while not (shared := _shared(tried)):
        fewest = min(reversed(tried), key=lambda method: len(tried[method]))
        left.setdefault(", ".join(tried.pop(fewest)), []).insert(0, fewest)
    for where, methods in left.items():
        notes.append(f"Left out of the aggregates: {'; '.join(methods)}, which finished only on {where}.")
    every = list(dict.fromkeys(dataset for mine in tried.values() for dataset in mine))
    if len(shared) < len(every):
        others = ", ".join(dataset for dataset in every if dataset not in shared)
        notes.append(f"Not every method finished on {others}: left out of the aggregates.")
    matrices = {}
    for method, mine in tried.items():
        try:
            matrices[method] = score_matrix(method, {dataset: mine[dataset] for dataset in shared})
        except InputError as reason:
            notes.append(f"Left out of the aggregates: {reason}")
    return matrices, shared, notes


@dataclasses.dataclass(frozen=True)
class Company:
    """Methods that finished on the same data sets."""

    datasets: list[str]
    matrices: dict[str, Float[np.ndarray, "seeds datasets"]]


def companies(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[list[Company], list[str]]:
    """For the data sets of every method: all methods that finished on them, widest first; and who was left out.

    Where all methods finished everywhere this is one company. Where one has fifteen data sets and another three,
    there is a company over fifteen and one over three.
    """
    have = {method: {d: list(v) for d, v in mine.items() if len(v)} for method, mine in scores.items()}
    notes = [f"{method} has no finished run with a score." for method, mine in have.items() if not mine]
    wanted: dict[frozenset[str], list[str]] = {}
    for mine in have.values():
        if mine:
            wanted.setdefault(frozenset(mine), list(mine))
    found = []
    for datasets in sorted(wanted.values(), key=len, reverse=True):
        matrices = {}
        for method, mine in have.items():
            if not set(datasets) <= set(mine):
                continue
            try:
                matrices[method] = score_matrix(method, {dataset: mine[dataset] for dataset in datasets})
            except InputError as reason:
                notes.append(f"Left out of the aggregates over {len(datasets)} data sets: {reason}")
        if matrices:
            found.append(Company(datasets, matrices))
    return found, notes


def _shared(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """The data sets that all methods have, in the order of the first."""
    first, *others = scores.values()
    return [dataset for dataset in first if all(dataset in mine for mine in others)]


def aggregates(
    matrices: Mapping[str, Float[np.ndarray, "seeds datasets"]],
    *,
    target: float = TARGET,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> dict[str, dict[str, Estimate]]:
    """Median, IQM, mean and optimality gap of each method, with 95 % stratified-bootstrap intervals.

    Median and mean are taken over data sets of the means over seeds; the interquartile mean over all runs; the gap
    is what is missing to `target` on average, scores above it counting as `target`. Every method draws the same
    random numbers, so its interval does not depend on which others are there.
    """
    return {
        method: dict(_aggregated(np.asarray(matrix, float).tobytes(), matrix.shape, target, repetitions, seed))
        for method, matrix in matrices.items()
    }


@functools.lru_cache(maxsize=256)
def _aggregated(
    scores: bytes, shape: tuple[int, ...], target: float, repetitions: int, seed: int
) -> dict[str, Estimate]:
    """Of one method. A page asks for the same several times, and each takes about a second."""
    library, metrics = require_rliable()

    def measure(scores: Float[np.ndarray, "seeds datasets"]) -> Float[np.ndarray, " 4"]:
        return np.array(
            [
                metrics.aggregate_median(scores),
                metrics.aggregate_iqm(scores),
                metrics.aggregate_mean(scores),
                metrics.aggregate_optimality_gap(scores, target),
            ]
        )

    points, (low, high) = _bootstrap(library, np.frombuffer(scores).reshape(shape), measure, repetitions, seed)
    numbers = zip(points, low, high, strict=True)
    return {name: Estimate(*map(float, three)) for name, three in zip(AGGREGATES, numbers, strict=True)}


def profiles(
    matrices: Mapping[str, Float[np.ndarray, "seeds datasets"]],
    thresholds: Float[np.ndarray, " points"] | None = None,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> dict[str, Profile]:
    """The share of all runs of a method that score above each threshold, with 95 % bootstrap bands."""
    library, _ = require_rliable()
    if thresholds is None:
        highest = max((float(matrix.max()) for matrix in matrices.values()), default=TARGET)
        thresholds = np.linspace(0.0, max(highest, 1.0) * 1.02, 101)
    points = np.asarray(thresholds, float)

    def measure(scores: Float[np.ndarray, "seeds datasets"]) -> Float[np.ndarray, " points"]:
        return 1.0 - np.searchsorted(np.sort(scores, axis=None), points, side="right") / scores.size

    found = {}
    for method, matrix in matrices.items():
        share, (low, high) = _bootstrap(library, matrix, measure, repetitions, seed)
        found[method] = Profile(points, share, low, high)
    return found


def _bootstrap(library: Any, matrix: np.ndarray, measure: Any, repetitions: int, seed: int) -> tuple[Any, Any]:
    """Point and interval of one method; no interval where there are too few seeds to draw from."""
    if matrix.ndim != 2:
        raise InputError(f"scores have shape {matrix.shape}; expected (seeds, data sets).")
    if len(matrix) < FEWEST_SEEDS:
        point = measure(matrix)
        return point, np.full((2, *point.shape), np.nan)
    with seeded(seed):
        points, intervals = library.get_interval_estimates(
            {"": matrix}, measure, reps=repetitions, confidence_interval_size=CONFIDENCE
        )
    return points[""], intervals[""]
