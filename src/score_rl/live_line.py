"""A live line on the console: a bar and as many facts as the terminal is wide, the most important first."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

LEAST_BAR, MOST_BAR = 8, 40  # characters
GAP = "  "


class Fact(NamedTuple):
    """One piece of the line. Of two facts, the one with the lower rank stays longer where space is short."""

    text: str
    rank: int
    style: str = ""


def fitting(facts: Sequence[Fact], width: int) -> list[Fact]:
    """The facts that fit into this width, in their order: chosen by rank, and of equal ranks the first."""
    left, kept = width, set()
    for number, fact in sorted(enumerate(facts), key=lambda numbered: numbered[1].rank):
        needed = len(GAP) + len(fact.text)
        if fact.text and needed <= left:
            kept.add(number)
            left -= needed
    return [fact for number, fact in enumerate(facts) if number in kept]


def bar_line(share: float, facts: Sequence[Fact], width: int) -> Text:
    """A bar that is filled by `share`, then the facts that fit."""
    shown = fitting(facts, width - LEAST_BAR)
    used = sum(len(GAP) + len(fact.text) for fact in shown)
    length = max(1, min(MOST_BAR, width - used))
    full = int(length * min(max(share, 0.0), 1.0))
    line = Text("━" * full, style="bar.complete", no_wrap=True, overflow="crop", end="")
    line.append("━" * (length - full), style="bar.back")
    for fact in shown:
        line.append(GAP)
        line.append(fact.text, style=fact.style or None)
    return line


def as_duration(seconds: float) -> str:
    """3 min 25 s, for people."""
    if seconds == float("inf"):
        return "unknown time"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


class LiveLine:
    """Draws one line ten times a second; `compose` is asked for it with the width of the terminal.

    A file gets the last line alone.
    """

    def __init__(self, compose: Callable[[int], Text], console: Console) -> None:
        self._live = Live(
            get_renderable=lambda: compose(console.width), console=console, refresh_per_second=10, auto_refresh=True
        )

    def __enter__(self) -> "LiveLine":
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
