"""What people read in a terminal, and what a file gets of it."""

import io

import pytest

from score_rl.console import SafeConsole, say

MESSAGE = (
    "Note, SCORE: bc_decay_every is 10,000 and training has 6,000 updates, so λ never falls; the folder is "
    "runs/a-folder-with-a-name-that-is-much-longer-than-any-terminal-that-anybody-would-ever-use/experiment."
)


def said(width: int, *, terminal: bool) -> list[str]:
    out = io.StringIO()
    say(SafeConsole(file=out, width=width, force_terminal=terminal, color_system=None), MESSAGE)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_terminal_breaks_between_words_and_never_inside_one(width: int) -> None:
    lines = said(width, terminal=True)
    assert len(lines) > 1
    assert " ".join(line.strip() for line in lines) == MESSAGE
    assert all(len(line.rstrip()) <= width or " " not in line.strip() for line in lines), "but for a word without room"


def test_a_file_gets_each_paragraph_as_one_line() -> None:
    assert said(60, terminal=False) == [MESSAGE]
