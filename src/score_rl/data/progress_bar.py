"""Progress bars on the console, for what takes longer than a moment.

They go to the error stream, so that output stays clean.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from score_rl.live_line import Fact, LiveLine, as_duration, bar_line

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def say(message: str) -> None:
    """Something about a file of the cache that its user should know, also where no bar is wanted."""
    from score_rl.console import open_console
    from score_rl.console import say as say_in_words

    say_in_words(open_console(stderr=True), message)


@contextmanager
def row_progress(label: str, total: int, shown: bool, unit: str = "rows") -> Iterator[Callable[[int], None]]:
    """A bar with rows per second and time left; yields the function that advances it."""
    with _progress(label, total, shown, lambda rows: f"{rows:,.0f} {unit}") as advance:
        yield advance


@contextmanager
def byte_progress(label: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with bytes per second and time left; yields the function that advances it."""
    with _progress(label, total, shown, _as_bytes) as advance:
        yield advance


def _as_bytes(count: float) -> str:
    size, unit = next((each for each in UNITS if count >= each[0]), UNITS[-1])
    return f"{count / size:.1f} {unit}"


@contextmanager
def _progress(label: str, total: int, shown: bool, amount: Callable[[float], str]) -> Iterator[Callable[[int], None]]:
    if not shown:
        yield lambda count: None
        return
    from rich.text import Text

    from score_rl.console import open_console

    began, done = time.monotonic(), 0

    def line(width: int) -> Text:
        share, seconds = done / max(total, 1), time.monotonic() - began
        rate = done / seconds if seconds > 0 else 0.0
        left = f"{as_duration((total - done) / rate)} left" if rate and done < total else ""
        facts = [
            Fact(f"{share:4.0%}", 0),
            Fact(left or f"in {as_duration(seconds)}", 1, "cyan"),
            Fact(f"{amount(done)} of {amount(total)}", 3),
            Fact(f"{amount(rate)}/s", 4),
            Fact(label, 2, "dim"),
        ]
        return bar_line(share, facts, width)

    with LiveLine(line, open_console(stderr=True)):

        def advance(count: int) -> None:
            nonlocal done
            done += count

        yield advance
