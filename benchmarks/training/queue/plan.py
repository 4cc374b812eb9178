"""The order of jobs: the most value per minute first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from .fleets import Job
from .speeds import Speeds


@dataclass(frozen=True)
class Planned:
    """A job, and what is expected of it."""

    job: Job
    seconds: float  # with the GPU to itself
    begun: bool = False

    @property
    def value(self) -> float:
        """Wanted runs, each as often as its weight says."""
        return self.job.runs * self.job.line.weight

    @property
    def value_per_minute(self) -> float:
        return 60 * self.value / self.seconds


def ordered(jobs: Iterable[Job], begun: Iterable[Job], speeds: Speeds) -> list[Planned]:
    """What was begun comes first: much of it is paid for. Then value per minute decides, and then the table's order."""
    first = [Planned(job, speeds.seconds(job), begun=True) for job in begun]
    rest = [Planned(job, speeds.seconds(job)) for job in jobs]
    return [*first, *sorted(rest, key=lambda planned: -planned.value_per_minute)]


def show(plan: Sequence[Planned], speeds: Speeds, minutes: float, console: Console) -> None:
    """What so many minutes begin with, as a table. Times are those of one job after the other; side by side they are
    shorter, so twice the minutes are shown."""
    table = Table(box=None, header_style="bold")
    for heading in ("job", "runs", "minutes", "all so far", "value a minute"):
        table.add_column(heading, justify="left" if heading == "job" else "right", overflow="fold")
    total = 0.0
    shown = 0
    for planned in plan:
        if total > 2 * 60 * minutes:
            break
        shown += 1
        total += planned.seconds
        guess = "" if speeds.knows(planned.job.line.method) else " (a guess)"
        name = planned.job.name + (" (begun)" if planned.begun else "")
        cells = (f"{planned.seconds / 60:.1f}{guess}", f"{total / 60:.1f}", f"{planned.value_per_minute:.1f}")
        table.add_row(name, str(planned.job.runs), *cells)
    console.print(table)
    if plan[shown:]:
        rest = sum(planned.seconds for planned in plan[shown:]) / 60
        console.print(f"and {len(plan) - shown} more jobs, {rest:,.0f} minutes")
