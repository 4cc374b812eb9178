"""What a person watches: a live bar in a terminal, a line now and then in a log file."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.text import Text

from score_rl.live_line import Fact, LiveLine, as_duration, bar_line
from score_rl.run.messages import Announcer

SECONDS_BETWEEN_LINES = 20.0
SCORES = ("score", "success", "return")  # facts that say how good the policies are
# What stays where the terminal is narrow: a lower rank stays longer.
SHARE, LEFT, SCORE, SPEED, COUNT, METRIC, TITLE = range(7)


class TrainingProgress:
    """Updates done, updates per second, time left, the score so far and the algorithm's headline metrics."""

    def __init__(
        self, announcer: Announcer, title: str, total: int, done: float, *, runs: int = 1, unit: str = "updates"
    ) -> None:
        self._announcer, self.title, self.total, self.runs, self.unit = announcer, title, total, runs, unit
        self.live = (announcer.console.is_terminal or announcer.console.is_jupyter) and not announcer.quiet
        self.done, self.first, self.start = done, done, time.perf_counter()
        self._facts: dict[str, str] = {}
        self._last_line = self.start
        self._bar = LiveLine(self._live_line, announcer.console)

    def __enter__(self) -> "TrainingProgress":
        if self.live:
            self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self._bar.__exit__(kind, error, trace)
        elif self.done > self.first:
            self._line()

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
        if not self.live and time.perf_counter() - self._last_line > SECONDS_BETWEEN_LINES:
            self._line()

    def _live_line(self, width: int) -> Text:
        share = self.done / self.total if self.total else 1.0
        facts = [
            Fact(f"{share:4.0%}", SHARE),
            Fact(self._time_text(), LEFT, "cyan"),
            *(
                Fact(f"{name} {value}", SCORE, "bold")
                for name, value in self._facts.items()
                if value and name in SCORES
            ),
            Fact(self._rate_text(), SPEED),
            Fact(f"{int(self.done):,} of {self.total:,}", COUNT),
            *(Fact(f"{name} {value}", METRIC) for name, value in self._facts.items() if value and name not in SCORES),
            Fact(self.title, TITLE, "dim"),
        ]
        return bar_line(share, facts, width)

    def _time_text(self) -> str:
        if self.done >= self.total:
            return f"in {as_duration(self.seconds)}"
        return f"{as_duration(self._left)} left" if self.rate else ""

    @property
    def _left(self) -> float:
        """Seconds until the end, at the pace so far."""
        return (self.total - self.done) / self.rate if self.rate else float("inf")

    def _line(self) -> None:
        self._last_line = time.perf_counter()
        facts = ", ".join(self._shown())
        self._announcer.say(
            f"{self.title}: {int(self.done):,} of {self.total:,} {self.unit}, {self._rate_text()}, "
            f"{as_duration(self._left)} left{', ' + facts if facts else ''}"
        )

    def _shown(self) -> list[str]:
        return [f"{name} {value}" for name, value in self._facts.items() if value]

    def _rate_text(self) -> str:
        if not self.rate:
            return ""
        each = f"{self.rate:,.0f} {self.unit}/s" if self.rate >= 10 else f"{self.rate:.2g} {self.unit}/s"
        return each if self.runs == 1 else f"{each} in each of {self.runs} runs"
