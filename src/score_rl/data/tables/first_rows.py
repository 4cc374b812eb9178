"""What the first rows of a table show: which columns may tell the episodes, and which words stand at their ends."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from score_rl.data.tables.table import import_polars

if TYPE_CHECKING:
    import polars

ENOUGH = 3  # rows of an episode, on average, before its last one says anything
MOSTLY = 0.5  # share of the rows with a word that are the last of an episode
FEW = 5  # words in a column that may be marks


class Words(NamedTuple):
    """A column of a few words, and those that stand mostly at the ends of episodes."""

    column: str
    all: tuple[str, ...]
    at_ends: tuple[str, ...]


def is_plain(sample: "polars.DataFrame", column: str) -> bool:
    """Whether its cells are texts or numbers, and not lists, structures or bytes."""
    pl = import_polars("a table")
    return sample[column].dtype == pl.String or sample[column].dtype.is_numeric()


def may_tell_episodes(sample: "polars.DataFrame", column: str) -> bool:
    """Whether its values repeat, as those of a column must that says which rows belong together."""
    pl = import_polars("a table")
    cells = sample[column]
    plain = cells.dtype == pl.String or cells.dtype.is_integer()
    return plain and not cells.null_count() and 2 * cells.n_unique() <= len(cells)


def tells_apart(sample: "polars.DataFrame", episode: str, time: str) -> bool:
    """Whether no two rows of an episode have the same time."""
    pairs = sample.select(episode, time)
    return pairs.n_unique() == len(pairs)


def ascends(sample: "polars.DataFrame", column: str) -> bool:
    """Whether each row is later than the one before."""
    cells = sample[column].drop_nulls()
    return len(cells) == len(sample) and cells.is_sorted() and cells.n_unique() == len(cells)


def words_at_ends(
    sample: "polars.DataFrame", columns: Sequence[str], episode: str | None, time: str | None
) -> list[Words]:
    """The columns of a few words that may mark ends.

    Where the episodes are known, these are columns with a word that stands mostly in last rows. Elsewhere all are.
    """
    found = []
    last = None if episode is None else _last_rows(sample, episode, time)
    for column in columns:
        words = tuple(map(str, sample[column].drop_nulls().unique().sort().to_list()))
        if not 1 < len(words) + bool(sample[column].null_count()) <= FEW or not words:
            continue
        if last is None:
            found += [Words(column, words, ())] if episode is None else []
            continue
        whole, ending = sample[column].to_list(), last[column].to_list()
        at_ends = tuple(word for word in words if ending.count(word) > MOSTLY * whole.count(word))
        found += [Words(column, words, at_ends)] if at_ends else []
    return found


def _last_rows(sample: "polars.DataFrame", episode: str, time: str | None) -> "polars.DataFrame | None":
    """The last row of each episode, as far as these rows show; None where they show too little of each."""
    if sample[episode].n_unique() * ENOUGH > len(sample):
        return None
    ordered = sample if time is None else sample.sort(time, maintain_order=True)
    return ordered.group_by(episode, maintain_order=True).last()
