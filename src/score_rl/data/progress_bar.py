"""Progress bars on the console, for what takes longer than a moment.

They go to the error stream, so that output stays clean.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(label: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with rows per second and time left; yields the function that advances it."""
    from rich.progress import MofNCompleteColumn

    with _progress(label, total, shown, MofNCompleteColumn()) as advance:
        yield advance


@contextmanager
def byte_progress(label: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with bytes per second and time left; yields the function that advances it."""
    from rich.progress import DownloadColumn

    with _progress(label, total, shown, DownloadColumn()) as advance:
        yield advance


@contextmanager
def _progress(label: str, total: int, shown: bool, amount: object) -> Iterator[Callable[[int], None]]:
    if not shown:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

    assert isinstance(amount, ProgressColumn)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        amount,
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.advance(task, count)
