"""Where this package prints: control characters of what strangers wrote are shown, and no terminal obeys them."""

import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from score_rl.errors import printable


class SafeConsole(Console):
    """Escapes whatever cannot be printed, in text of any origin; rich's own codes for colours and lines stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=printable(segment.text, lines=True))


def open_console(*, stderr: bool = False, **options: Any) -> Console:
    """A console on the standard output, or on that for errors."""
    return SafeConsole(stderr=stderr, highlight=False, **options)


def say(console: Console, text: str, *, markup: bool = False) -> None:
    """Prose: in a terminal it breaks between words, in a file each paragraph stays one line.

    What people copy, such as a command, is printed with `soft_wrap` instead: the terminal then joins it again.
    """
    if console.is_terminal:
        kept = textwrap.TextWrapper(console.width, break_long_words=False, break_on_hyphens=False)
        text = "\n".join(kept.fill(line) for line in text.split("\n"))
    console.print(text, markup=markup, highlight=False, soft_wrap=True)
