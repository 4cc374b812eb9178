"""What a person watches: a live bar in a terminal, a line now and then in a log file."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from score_rl.run.messages import Announcer, as_duration

SECONDS_BETWEEN_LINES = 20.0


class TrainingProgress:
    """Updates done, updates per second, time left, the score so far and the algorithm's headline metrics."""

    def __init__(
        self, announcer: Announcer, title: str, total: int, done: float, *, runs: int = 1, unit: str = "updates"
    ) -> None:
        self._announcer, self.title, self.total, self.runs, self.unit = announcer, title, total, runs, unit
        self.live = announcer.console.is_terminal and not announcer.quiet
        self.done, self.first, self.start = done, done, time.perf_counter()
        self._facts: dict[str, str] = {}
        self._last_line = self.start
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
            console=announcer.console,
            disable=not self.live,
        )
        self._task = self._bar.add_task(title, total=total, completed=int(done), rate="", facts="")

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.live and self.done > self.first:
            self._line()
        self._bar.stop()

    @property
    def rate(self) -> float:
        """Updates per second of each run since this process began."""
        return (self.done - self.first) / max(self.seconds, 1e-9)

    @property
    def seconds(self) -> float:
        """Since this process began."""
        return time.perf_counter() - self.start

    def advance(self, done: float) -> None:
        """A fraction counts for the time left; whole numbers are shown."""
        self.done = done
        self._show()

    def show(self, facts: Mapping[str, str]) -> None:
        """What is shown beside the bar. A fact keeps its place; an empty value hides it."""
        self._facts |= facts
        self._show()

    def _show(self) -> None:
        if self.live:
            facts = "  ".join(self._shown())
            self._bar.update(self._task, completed=self.done, rate=self._rate_text(), facts=facts)
        elif time.perf_counter() - self._last_line > SECONDS_BETWEEN_LINES:
            self._line()

    def _line(self) -> None:
        self._last_line = time.perf_counter()
        left = (self.total - self.done) / self.rate if self.rate else float("inf")
        facts = ", ".join(self._shown())
        self._announcer.say(
            f"{self.title}: {int(self.done):,} of {self.total:,} {self.unit}, {self._rate_text()}, "
            f"{as_duration(left)} left{', ' + facts if facts else ''}"
        )

    def _shown(self) -> list[str]:
        return [f"{name} {value}" for name, value in self._facts.items() if value]

    def _rate_text(self) -> str:
        if not self.rate:
            return ""
        each = f"{self.rate:,.0f} {self.unit}/s" if self.rate >= 10 else f"{self.rate:.2g} {self.unit}/s"
        return each if self.runs == 1 else f"{each} in each of {self.runs} runs"
