"""The one line that the driver shows of all machines."""

import io

import pytest
from rich.console import Console

from score_rl.cluster.view import View
from score_rl.run.messages import Announcer


def view(width: int = 80, *, terminal: bool = True) -> tuple[View, io.StringIO]:
    """100 runs in two fleets, of which one is done; the other trains 2,000 updates a second, and died once."""
    said = io.StringIO()
    console = Console(file=said, width=width, force_terminal=terminal, color_system=None)
    seen = View(Announcer(console), "Ray", 1_000_000, {0: 40, 1: 60})
    seen.lost(1)
    seen.finished(0)
    seen.tell(1, {"step": 250_000, "updates_per_second": 2_000.0})
    return seen, said


def test_in_80_columns_stands_what_matters_most() -> None:
    seen, _ = view()
    line = seen._line(80).plain
    assert len(line) <= 80
    for fact in ("55%", "6 min 15 s left", "40 of 100 runs done", "120,000 run-updates/s"):
        assert fact in line
    assert "on 1 device  1 taken up again" in seen._line(140).plain


@pytest.mark.parametrize("width", range(20, 141, 20))
def test_the_line_fits_into_every_terminal(width: int) -> None:
    seen, _ = view(width)
    assert len(seen._line(width).plain) <= width


def test_a_file_gets_whole_lines_and_no_bar() -> None:
    seen, said = view(terminal=False)
    with seen:
        seen.show()
    text = " ".join(said.getvalue().split())
    assert text == (
        "Ray: 55%, 6 min 15 s left, 40 of 100 runs done, 120,000 run-updates/s, on 1 device, 1 taken up again"
    )


def test_a_fleet_that_failed_is_counted_and_its_time_is_not() -> None:
    seen, _ = view()
    seen.failed(1)
    assert "60 failed" in seen._line(140).plain
    assert "left" not in seen._line(140).plain
