"""What makes a data set doubtful to learn from although its form is right.

`score data check` says it, and training before it begins. Nothing here is an error. Each doubt is one sentence on what
was seen and one on what to do.
"""

from collections.abc import Iterator

import numpy as np

from score_rl.data.dataset import Dataset

NARROW = 0.2  # an action that uses less of its bounds leaves most of them unknown
OUTLIERS = 0.001  # share at either end that does not count as used
UNRELATED = 0.8  # E[(s' - s)²]/(2·Var s): 1 where rows are shuffled, 0.2 at most in any locomotion data
JUMP = 3.0  # times the change that nine in ten steps stay below, in most observations at once
LARGE = 30.0  # observations in such units drown the others; the locomotion tasks' deviations stay below 15
ENOUGH = 200  # rows, before anything is said of how they change
SAMPLE = 100_000  # rows that a quantile or a mean is taken of
LOST = 0.1  # share of the recorded rows


def doubts(dataset: Dataset) -> list[str]:
    """All of them, but for those that depend on the method."""
    return [
        *dropped_rows(dataset),
        *unrelated_rows(dataset),
        *unmarked_ends(dataset),
        *constant_observations(dataset),
        *narrow_actions(dataset),
        *other_bounds(dataset),
    ]


def dropped_rows(dataset: Dataset) -> Iterator[str]:
    recorded = dataset.source.get("rows", len(dataset))
    if len(dataset) < (1 - LOST) * recorded:
        yield (
            f"Only {len(dataset):,} of {recorded:,} rows can be learned from: the others are the last of an episode "
            "and have no next observation. Are there too many ends? Otherwise store next_observations."
        )


def unrelated_rows(dataset: Dataset) -> Iterator[str]:
    """Of shuffled rows no observation is near its next one."""
    changes, spread = _sample(_changes(dataset)), dataset.observations.var(axis=0, dtype=np.float64)
    varying = spread > 0
    if len(changes) < ENOUGH or not varying.any():
        return
    if (np.square(changes[:, varying]).mean(axis=0, dtype=np.float64) / (2 * spread[varying])).min() > UNRELATED:
        yield (
            "Consecutive observations differ as much as any two picked at random: the rows look shuffled. Store them "
            "in the order in which they were recorded, episode after episode."
        )


def unmarked_ends(dataset: Dataset) -> Iterator[str]:
    """Where most observations jump at once, one episode may have been glued to another."""
    changes = np.abs(_changes(dataset))
    if len(changes) < ENOUGH:
        return
    usual = np.quantile(_sample(changes), 0.9, axis=0).astype(np.float32)
    moving = usual > 0
    if moving.sum() < 2:
        return
    jumps = (changes[:, moving] > JUMP * usual[moving]).sum(axis=1) > moving.sum() / 2
    if jumps.any():
        rows = _recorded_rows(dataset, np.flatnonzero(~dataset.terminals)[jumps])
        yield (
            f"Most observations jump at once after {len(rows):,} {'row' if len(rows) == 1 else 'rows'} inside an "
            f"episode ({listed(rows)}). Does an episode end there? Mark it in terminals or timeouts."
        )


def constant_observations(dataset: Dataset) -> Iterator[str]:
    constant = np.flatnonzero((dataset.observations == dataset.observations[0]).all(axis=0))
    if len(dataset) > 1 and len(constant):
        yield (
            f"{_numbered('Observation', constant)} never {'changes' if len(constant) == 1 else 'change'}: nothing is "
            "learned about what to do when that is different. Leave it out."
        )


def narrow_actions(dataset: Dataset) -> Iterator[str]:
    least, most = np.quantile(_sample(dataset.actions), (OUTLIERS, 1 - OUTLIERS), axis=0)
    low, high = dataset.action_low, dataset.action_high
    for place in np.flatnonzero((most - least) < NARROW * (high - low)):
        whole = dataset.actions[:, place].min(), dataset.actions[:, place].max()
        yield (
            f"Action {place} stays between {least[place]:.4g} and {most[place]:.4g}, but its bounds are "
            f"{low[place]:g} and {high[place]:g}: the data say nothing about the rest, and a policy may go there. "
            f"Bounds are what a policy may use; they must hold {whole[0]:.6g} to {whole[1]:.6g}, all that was recorded."
        )


def other_bounds(dataset: Dataset) -> Iterator[str]:
    stated = dataset.source.get("stated_action_bounds")
    if stated is None:
        return
    both = zip(stated, (dataset.action_low, dataset.action_high), strict=True)
    if not all(len(told) in (1, len(used)) and np.all(used == np.float32(told)) for told, used in both):
        yield (
            f"The file says that actions lie between {_vector(stated[0])} and {_vector(stated[1])}; what was asked for "
            f"is used instead: {_vector(dataset.action_low)} to {_vector(dataset.action_high)}."
        )


def large_observations(dataset: Dataset) -> Iterator[str]:
    """For methods that take observations as they are."""
    observations = dataset.observations.astype(np.float64)
    size = np.maximum(np.abs(observations.mean(axis=0)), observations.std(axis=0))
    large = np.flatnonzero(size > LARGE)
    if len(large):
        yield (
            f"{_numbered('Observation', large)} {'is' if len(large) == 1 else 'are'} of the order of {size.max():.0f}, "
            "and this method takes observations as they are: large ones drown the others. Pass "
            "--config.normalise-states True."
        )


def listed(numbers: np.ndarray, shown: int = 5) -> str:
    """The first few."""
    text = ", ".join(str(number) for number in numbers[:shown])
    return f"{text}, ..." if len(numbers) > shown else text


def _changes(dataset: Dataset) -> np.ndarray:
    """s' - s, but for terminal steps, whose next observation may not be recorded."""
    going = ~dataset.terminals
    return dataset.next_observations[going] - dataset.observations[going]


def _sample(rows: np.ndarray) -> np.ndarray:
    """Evenly spread, at most SAMPLE."""
    return rows[:: -(-len(rows) // SAMPLE)]


def _recorded_rows(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Where they stand in the file, of which the last rows of episodes may have been dropped."""
    if dataset.source.get("rows", len(dataset)) == len(dataset):
        return rows
    stops = dataset.episodes[:, 1]
    dropped = np.cumsum(~dataset.terminals[stops - 1])
    before = np.searchsorted(stops, rows, side="right")  # episodes that are over
    return rows + np.where(before > 0, dropped[before - 1], 0)


def _numbered(what: str, places: np.ndarray) -> str:
    return f"{what} {places[0]}" if len(places) == 1 else f"{what}s {listed(places)}"


def _vector(numbers: np.ndarray | list[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
