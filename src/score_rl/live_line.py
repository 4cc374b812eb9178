"""A live line on the console: a bar and as many facts as the terminal is wide, the most important first."""

import threading
from collections.abc import Callable, Sequence
from html import escape
from types import TracebackType
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

LEAST_BAR, MOST_BAR = 8, 40  # characters
GAP = "  "
NOTEBOOK_WIDTH = 100  # characters


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
    line.append("─" * (length - full), style="bar.back")  # thin, so that it is told without colours too
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

    A notebook has it as an output of its own that changes. A file gets the last line alone.
    """

    def __init__(self, compose: Callable[[int], Text], console: Console) -> None:
        self._console = console
        self._line: Any = NotebookLine(compose) if console.is_jupyter else _terminal_line(compose, console)

    def __enter__(self) -> "LiveLine":
        self._line.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.stop()
        if not self._console.is_terminal and not self._console.is_jupyter:
            self._console.line()


def _terminal_line(compose: Callable[[int], Text], console: Console) -> Live:
    return Live(
        get_renderable=lambda: compose(console.width), console=console, refresh_per_second=10, auto_refresh=True
    )


class NotebookLine:
    """The line as an output of a notebook's cell, renewed twice a second. It needs no widgets."""

    def __init__(self, compose: Callable[[int], Text]) -> None:
        self._compose, self._over = compose, threading.Event()
        self._thread = threading.Thread(target=self._keep_showing, daemon=True)

    def start(self, *, refresh: bool) -> None:
        from IPython.display import display

        self._handle = display(self._html(), display_id=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._handle.update(self._html())

    def _keep_showing(self) -> None:
        while not self._over.wait(0.5):
            self._handle.update(self._html())

    def _html(self) -> Any:
        from IPython.display import HTML

        text = escape(self._compose(NOTEBOOK_WIDTH).plain)
        return HTML(f"<pre style='margin:0;white-space:pre-wrap'>{text}</pre>")
