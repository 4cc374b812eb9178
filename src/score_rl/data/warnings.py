"""What makes it doubtful to learn from a data set whose form is right.

`score data check` prints these warnings, and so does training before it begins. None of them is an error. Each says in
one sentence what was seen and in another what to do.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from score_rl.data.columns import IMPORTED, drop_remedy
from score_rl.data.dataset import Dataset
from score_rl.data.ownership import recorded_source
from score_rl.envs.tasks import task_of

NARROW = 0.2  # an action that uses less of its bounds leaves most of them unknown
OUTLIERS = 0.001  # share at either end that does not count as used
UNRELATED = 0.6  # change over one row by that over more rows, squared: 1 where rows are shuffled
APART = (2, 3, 5, 8)  # rows, over which recorded observations change more than over one
JUMP = 3.0  # times the change that nine in ten steps stay below, in most observations at once
LARGE = 30.0  # observations in such units drown the others; the locomotion tasks' deviations stay below 15
ENOUGH = 200  # rows, before anything is said of how they change
SAMPLE = 100_000  # rows that a quantile or a mean is taken of
LOST = 0.1  # share of the recorded rows or trajectories
CONTINUED = 0.5  # share of the terminals
ENDLESS = ("halfcheetah",)  # tasks that end by their step limit alone


def find_warnings(dataset: Dataset) -> list[str]:
    """All warnings that do not depend on the method."""
    return [
        *find_dropped_rows(dataset),
        *find_impossible_terminals(dataset),
        *find_continued_terminals(dataset),
        *find_unrelated_rows(dataset),
        *find_unmarked_ends(dataset),
        *find_constant_observations(dataset),
        *find_narrow_actions(dataset),
        *find_other_bounds(dataset),
    ]


def find_dropped_rows(dataset: Dataset) -> Iterator[str]:
    """Too many rows or trajectories have no next observation."""
    rows, trajectories = len(dataset), len(dataset.trajectories)
    recorded_rows, recorded_trajectories = rows + dataset.dropped_rows, trajectories + dataset.dropped_trajectories
    advice = f"{drop_remedy(recorded_source(dataset.source))}."
    if dataset.dropped_rows > LOST * recorded_rows:
        yield (
            f"Only {rows:,} of {recorded_rows:,} rows can be learned from: the others are the last of a trajectory "
            f"and have no next observation. {advice}"
        )
    elif dataset.dropped_trajectories > LOST * recorded_trajectories:
        yield (
            f"Only {trajectories:,} of {recorded_trajectories:,} trajectories can be learned from: the others are one "
            f"row each, without a next observation. {advice}"
        )


def find_few_dropped_rows(dataset: Dataset) -> Iterator[str]:
    """What was dropped, where that is too little for a warning."""
    if dataset.dropped_rows and not list(find_dropped_rows(dataset)):
        alone = dataset.dropped_trajectories
        vanished = f", and with them {alone:,} trajectories of one row" if alone else ""
        yield (
            f"{dataset.dropped_rows:,} of {len(dataset) + dataset.dropped_rows:,} rows are left out{vanished}: they "
            "are the last of a trajectory and have no next observation."
        )


def find_impossible_terminals(dataset: Dataset) -> Iterator[str]:
    """Terminals in a task that never ends, such as the one in D4RL's halfcheetah_medium of version 1."""
    task = task_of(dataset.environment or "")
    if task in ENDLESS and dataset.terminals.any():
        rows = dataset.recorded_rows(np.flatnonzero(dataset.terminals))
        yield (
            f"{task} never ends, but {len(rows):,} {'row is' if len(rows) == 1 else 'rows are'} terminal "
            f"({listed(rows)}): what follows counts as 0. If the recording only stopped, mark it in timeouts."
        )


def find_continued_terminals(dataset: Dataset) -> Iterator[str]:
    """Most terminals end a trajectory although the next row goes on from there."""
    last = dataset.trajectories[:-1, 1] - 1
    last = last[dataset.terminals[last]]
    reached = dataset.next_observations[last]
    moves = (reached != dataset.observations[last]).any(axis=1)  # a row without a next observation holds its own
    continued = int((moves & (reached == dataset.observations[last + 1]).all(axis=1)).sum())
    if continued > CONTINUED * len(last):
        yield (
            f"The recording goes on after {continued:,} of {len(last):,} terminals: the next row begins where they "
            "lead. Mark the last row of each trajectory in trajectory_ends, or every terminal counts as the end of one."
        )


def find_unrelated_rows(dataset: Dataset) -> Iterator[str]:
    """In shuffled rows no observation is near its next one, be they shuffled all over or within each trajectory."""
    one, farther = _change_by_distance(dataset)
    varying = farther > 0
    if varying.any() and (one[varying] / farther[varying]).min() > UNRELATED:
        yield (
            "Consecutive observations differ as much as any two picked at random: the rows look shuffled. Store them "
            "in the order in which they were recorded, trajectory after trajectory and, within each, in the order of "
            "time."
        )


def find_unmarked_ends(dataset: Dataset) -> Iterator[str]:
    """Where most observations jump at once, one trajectory may have been glued to another.

    Not in what this library recorded: there a robot has fallen.
    """
    recipe = recorded_source(dataset.source).get("recipe")
    if recipe and recipe.get("kind") != IMPORTED:
        return
    changes = np.abs(_changes(dataset))
    if len(changes) < ENOUGH:
        return
    usual = np.quantile(_sample(changes), 0.9, axis=0).astype(np.float32)
    moving = usual > 0
    if moving.sum() < 2:
        return
    jumps = (changes[:, moving] > JUMP * usual[moving]).sum(axis=1) > moving.sum() / 2
    if jumps.any():
        rows = dataset.recorded_rows(np.flatnonzero(_goes_on(dataset))[jumps])
        yield (
            f"Most observations jump at once after {len(rows):,} {'row' if len(rows) == 1 else 'rows'} inside a "
            f"trajectory ({listed(rows)}). Does a trajectory end there? Mark it in terminals, timeouts or "
            "trajectory_ends."
        )


def find_constant_observations(dataset: Dataset) -> Iterator[str]:
    """Columns of the observations that never change."""
    constant = np.flatnonzero((dataset.observations == dataset.observations[0]).all(axis=0))
    if len(dataset) > 1 and len(constant):
        changes = "changes" if len(constant) == 1 else "change"
        yield (
            f"{_numbered('Observation', constant, dataset)} never {changes}: nothing is learned"
            " about what to do when that is different. Leave it out."
        )


def find_narrow_actions(dataset: Dataset) -> Iterator[str]:
    """Actions that use little of their bounds."""
    least, most = np.quantile(_sample(dataset.actions), (OUTLIERS, 1 - OUTLIERS), axis=0)
    low, high = dataset.action_low, dataset.action_high
    for column in np.flatnonzero((most - least) < NARROW * (high - low)):
        whole = dataset.actions[:, column].min(), dataset.actions[:, column].max()
        yield (
            f"Action {dataset.labels.action(int(column))} stays between {least[column]:.4g} and {most[column]:.4g}, "
            f"but its bounds are {low[column]:g} and {high[column]:g}: the data say nothing about the rest, and a "
            f"policy may go there. Bounds are what a policy may use; they must hold {whole[0]:.6g} to {whole[1]:.6g}, "
            "all that was recorded."
        )


def find_other_bounds(dataset: Dataset) -> Iterator[str]:
    """Action bounds that were asked for and differ from those of the file."""
    stated = dataset.source.get("stated_action_bounds")
    if stated is None:
        return
    both = zip(stated, (dataset.action_low, dataset.action_high), strict=True)
    if not all(len(told) in (1, len(used)) and np.all(used == np.float32(told)) for told, used in both):
        yield (
            f"The file says that actions lie between {_vector(stated[0])} and {_vector(stated[1])}; what was asked for "
            f"is used instead: {_vector(dataset.action_low)} to {_vector(dataset.action_high)}."
        )


def find_large_observations(dataset: Dataset, method: str) -> Iterator[str]:
    """Observations that drown the others in a method that takes them as they are."""
    observations = dataset.observations.astype(np.float64)
    size = np.maximum(np.abs(observations.mean(axis=0)), observations.std(axis=0))
    large = np.flatnonzero(size > LARGE)
    if len(large):
        are = "is" if len(large) == 1 else "are"
        yield (
            f"{_numbered('Observation', large, dataset)} {are} of the order of {size.max():.0f}, "
            f"and {method} takes observations as they are: large ones drown the others. Pass "
            "`config.normalise_states=True`."
        )


def _change_by_distance(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The mean squares of the changes in each observation: over one row, and the most of those over more rows.

    Recorded rows differ the more the farther they are apart; in shuffled ones it makes no difference. Where too few
    trajectories are long, all rows are what is farther. Where there are too few rows, there is nothing.
    """
    lengths = dataset.trajectories[:, 1] - dataset.trajectories[:, 0]
    long = dataset.trajectories[lengths > max(APART)]
    long = long[:: max(1, -(-int((long[:, 1] - long[:, 0]).sum()) // SAMPLE))]
    lengths = long[:, 1] - long[:, 0]
    if lengths.sum() - len(long) < ENOUGH:
        changes = _sample(_changes(dataset))
        if len(changes) < ENOUGH:
            return np.zeros(0), np.zeros(0)
        whole = 2 * dataset.observations.var(axis=0, dtype=np.float64)
        return np.square(changes, dtype=np.float64).mean(axis=0), whole
    first = np.cumsum(lengths) - lengths
    number = np.repeat(np.arange(len(long)), lengths)  # of each row's trajectory
    rows = dataset.observations[np.arange(len(number)) + (long[:, 0] - first)[number]].astype(np.float64)
    squares = [np.square(rows[by:] - rows[:-by])[number[by:] == number[:-by]].mean(axis=0) for by in (1, *APART)]
    return squares[0], np.max(squares[1:], axis=0)


def listed(numbers: np.ndarray | Sequence[object], shown: int = 5) -> str:
    """The first few numbers or names."""
    text = ", ".join(str(number) for number in numbers[:shown])
    return f"{text}, ..." if len(numbers) > shown else text


def _goes_on(dataset: Dataset) -> np.ndarray:
    """All rows but the terminal ones that end a trajectory, whose next observation may not be recorded."""
    return ~dataset.terminals | dataset.followed()


def _changes(dataset: Dataset) -> np.ndarray:
    """s' - s, where the recording goes on."""
    rows = _goes_on(dataset)
    return np.asarray(dataset.next_observations[rows] - dataset.observations[rows])


def _sample(rows: np.ndarray) -> np.ndarray:
    """Evenly spread rows, at most SAMPLE."""
    return rows[:: max(1, -(-len(rows) // SAMPLE))]


def _numbered(what: str, columns: np.ndarray, dataset: Dataset) -> str:
    called = [dataset.labels.observation(int(column)) for column in columns]
    return f"{what} {called[0]}" if len(called) == 1 else f"{what}s {listed(called)}"


def _vector(numbers: np.ndarray | list[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
