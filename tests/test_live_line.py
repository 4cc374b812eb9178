"""What a terminal shows while something takes its time: one line at every width, the important first."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from score_rl.live_line import Fact, LiveLine, as_duration, bar_line, fitting
from score_rl.run.messages import Announcer
from score_rl.run.progress import TrainingProgress


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (205, "3 min 25 s"), (7_260, "2 h 01 min"), (float("inf"), "unknown time")],
)
def test_durations(seconds: float, text: str) -> None:
    assert as_duration(seconds) == text


@given(
    st.floats(-0.5, 1.5),
    st.lists(st.builds(Fact, st.text("abc ", max_size=30), st.integers(0, 6)), max_size=8),
    st.integers(10, 200),
)
def test_the_line_is_never_wider_than_the_terminal(share: float, facts: list[Fact], width: int) -> None:
    assert len(bar_line(share, facts, width).plain) <= width


def test_rank_decides_what_stays_and_not_the_place() -> None:
    facts = [Fact("least", 9), Fact("second", 2), Fact("first", 1)]
    assert [fact.text for fact in fitting(facts, 7)] == ["first"]
    assert [fact.text for fact in fitting(facts, 15)] == ["second", "first"]
    assert [fact.text for fact in fitting(facts, 99)] == ["least", "second", "first"]


def last_line(told: io.StringIO) -> str:
    """Without the codes that move the cursor."""
    return [line for line in re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]|\r", "\n", told.getvalue()).split("\n") if line][-1]


def shown(width: int) -> str:
    """The last line that a terminal of this width shows of a training half done."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    title = "replica-halfcheetah-medium_seed=0"
    with TrainingProgress(Announcer(console), title, 20_000, 0, runs=5) as progress:
        progress.start -= 75
        progress.show({"score": "43.9"})
        progress.show({"uncertainty": "0.211", "q": "37.4"})
        progress.advance(10_000)
    return last_line(out)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_bar_share_time_and_score_are_there_at_every_width(width: int) -> None:
    line = shown(width)
    assert "━━━━" in line
    assert " 50%" in line
    assert "1 min 15 s left" in line
    assert ("score 43.9" in line) == (width >= 50)


def test_what_else_is_shown_as_far_as_there_is_room() -> None:
    assert "updates/s" not in shown(50)
    assert "133 updates/s in each of 5 runs" in shown(80)
    wide = shown(200)
    assert wide.index("updates/s") < wide.index("10,000 of 20,000") < wide.index("uncertainty 0.211")
    assert "replica-halfcheetah-medium_seed=0" in wide


def test_a_finished_line_says_how_long_it_took() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None, legacy_windows=False)
    with TrainingProgress(Announcer(console), "run", 100, 0) as progress:
        progress.start -= 30
        progress.advance(100)
    assert "100%  in 30 s" in last_line(out)


def test_in_a_file_a_line_is_printed_once_and_whole() -> None:
    out = io.StringIO()
    with LiveLine(lambda width: bar_line(0.5, [Fact("50%", 0)], width), Console(file=out, width=60)):
        pass
    assert [line for line in out.getvalue().splitlines() if line.strip()] == ["━" * 20 + "─" * 20 + "  50%"]
    assert out.getvalue().endswith("50%\n"), "what is printed next begins a line of its own"


def test_a_bar_can_be_read_without_colours() -> None:
    line = bar_line(0.25, [], 40).plain
    assert line == "━" * 10 + "─" * 30


@pytest.mark.slow
def test_a_notebook_shows_a_line_that_changes_and_the_table_at_the_end(tmp_path: Path) -> None:
    """In a real kernel, without widgets."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        f"import os; os.environ['SCORE_RL_CACHE'] = {str(tmp_path)!r}\n"
        "import score_rl\n"
        "score_rl.train('replica:hopper-medium', transitions=3000, steps=40, eval_every=20, eval_episodes=1,\n"
        f"               config={{'hidden': (16, 16)}}, out={str(tmp_path / 'run')!r})"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output.data["text/html"] for output in notebook.cells[0].outputs if "text/html" in output.get("data", {})]
    assert any("100%" in html and "40 of 40" in html for html in shown), "the last state of the line"
    assert "<table>" in shown[-1]
    assert "replica-hopper-medium_seed=0" in shown[-1]
