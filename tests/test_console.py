"""What strangers wrote is shown; no terminal obeys it."""

import io

from rich.markup import escape
from rich.table import Table

from score_rl.cli.terminal import OUT
from score_rl.console import SafeConsole, open_console
from score_rl.run.messages import Announcer

HOSTILE = "a\x1b[2Jb\x07c\u202ed\rE"
SHOWN = "a\\x1b[2Jb\\x07c\\u202ed\\rE"


def test_control_characters_are_shown_in_lines_tables_and_bars() -> None:
    out = io.StringIO()
    console = open_console(file=out, width=100, force_terminal=True)
    console.print(HOSTILE, markup=False)
    table = Table("name", title=escape(HOSTILE))
    table.add_row(escape(HOSTILE))
    console.print(table)
    said = out.getvalue()
    for hostile in ("\x1b[2J", "\x07", "\u202e", "\r"):
        assert hostile not in said
    assert said.count("\\x1b[2J") == 3
    assert "\x1b[" in said, "rich's own codes stay"


def test_everything_is_printed_by_such_a_console() -> None:
    assert isinstance(OUT, SafeConsole)
    assert isinstance(Announcer().console, SafeConsole)
