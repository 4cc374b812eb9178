"""What would become of the first rows of a table, before all of it is read."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from score_rl.data.sources.reader import Recording
from score_rl.data.tables.frames import FrameTable
from score_rl.data.tables.importing import Options, recording_of_table
from score_rl.data.tables.roles import Columns, Roles, resolve
from score_rl.data.tables.table import Advance, Part, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

FIRST, LAST = 3, 2  # rows of the first trajectory that are shown


class Beginning(FrameTable):
    """The first rows of a table, each with its column there."""

    whole = False

    def __init__(self, table: Table) -> None:
        super().__init__(table.sample, table.name, {}, named=table.named)
        self._table = table

    def location(self, row: int) -> str:
        return self._table.location(row)

    def parts(self, columns: Sequence[str], numbers: Collection[str], advance: Advance) -> Iterator[Part]:
        yield from super().parts(columns, numbers, lambda rows: None)


def preview(table: Table, roles: Roles, options: Options) -> "RenderableType":
    """The first rows of the first trajectory and its last ones, as training would see them."""
    from rich.console import Group
    from rich.text import Text

    columns = resolve(roles, table.names, table.name)
    beginning = Beginning(table)
    recording = recording_of_table(beginning, roles, options)
    rows = len(beginning.sample)
    title = f"The first {rows:,} rows of {table.name} would become {len(recording.columns['rewards']):,} rows"
    ends = np.flatnonzero(recording.columns["trajectory_ends"])
    trajectories = f" in {len(ends):,} {'trajectory' if len(ends) == 1 else 'trajectories'}."
    shuffled = recording.origin["recipe"]["sorted_here"]
    trajectories += " The table is not sorted, so these are from all over it; importing sorts all rows." * shuffled
    return Group(Text(title + trajectories), _shown_rows(recording, columns, int(ends[0]) + 1))


def _shown_rows(recording: Recording, columns: Columns, length: int) -> "RenderableType":
    from rich.table import Table as Grid

    arrays = recording.columns
    shown = [*range(min(FIRST, length)), *range(max(FIRST, length - LAST), length)]
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    grid.add_column("step of the first trajectory")
    for row in shown:
        grid.add_column(str(row), justify="right")
    for what, names in (("observations", columns.observations), ("actions", columns.actions)):
        grid.add_row(what, style="bold")
        for column, name in enumerate(names):
            unit = columns.units.get(name)
            called = f"  {name} [{unit}]" if unit and f"[{unit}]" not in name else f"  {name}"
            grid.add_row(_plain(called), *(f"{arrays[what][row, column]:.6g}" for row in shown))
    grid.add_row("reward", *(f"{arrays['rewards'][row]:.6g}" for row in shown))
    grid.add_row("what follows", *(_follows(recording, row) for row in shown))
    return grid


def _follows(recording: Recording, row: int) -> str:
    arrays = recording.columns
    if arrays["terminals"][row]:
        return "terminal"
    given = "next_observations" in arrays
    if arrays["trajectory_ends"][row]:
        return "timeout" if given else "timeout, dropped"
    return "as given" if given else "next row"


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
