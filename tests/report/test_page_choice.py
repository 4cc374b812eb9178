"""What `score select` chose, on the page of its stages."""

import re
from pathlib import Path

import pytest

from score_rl.report.page import write_report
from score_rl.store.judgements import BETTER, DOUBTFUL
from score_rl.store.selections import (
    Choice,
    Plan,
    Ranked,
    SelectionRecord,
    SelectionRequest,
    Size,
    StagePlan,
    Variant,
    write_selection,
)
from tests.report.judged_folder import DATASET, write_judged

GOOD, RUINED = Variant("score", {"alpha": 0.3}), Variant("td3-bc", {"alpha": 2.5})


def write_selected(folder: Path, choice: Choice | None) -> Path:
    folder.mkdir()
    write_judged(folder / "stage-1")
    request = SelectionRequest("logs.hdf5", False, ("score", "td3-bc"), (0,), 0.1, 600.0)
    plan = Plan((GOOD, RUINED), Size((64, 64), 128), (StagePlan(30, 2, 10),))
    write_selection(folder, SelectionRecord(request, plan, {"code": "0"}, choice=choice))
    return folder


@pytest.fixture
def table() -> tuple[Ranked, ...]:
    return (
        Ranked(GOOD, BETTER, 0.25, (f"{DATASET}_seed=0",), steps=30),
        Ranked(RUINED, DOUBTFUL, None, (f"{DATASET}_seed=1",), steps=30),
    )


def test_the_choice_comes_first_with_its_reason_and_what_to_type(tmp_path: Path, table: tuple[Ranked, ...]) -> None:
    choice = Choice("stage-1", f"{DATASET}_seed=0", True, "It earns <more>.", "All seeds agree.", table)
    folder = write_selected(tmp_path / "choice", choice)
    page = write_report([folder / "stage-1"], tmp_path / "out").read_text()
    mine = re.search(r'<section id="choice">(.*?)</section>', page, re.DOTALL)
    assert mine is not None
    assert page.index('<section id="choice">') < page.index('<section id="judgement">')
    for text in ("<strong>score alpha=0.3</strong>", "It earns &lt;more&gt;.", "All seeds agree.", "+0.25"):
        assert text in mine[1]
    assert f"score export {folder}/stage-1 --run {DATASET}_seed=0" in mine[1]
    assert f'<span class="state failed">{DOUBTFUL}</span>' in mine[1]


def test_what_to_type_is_one_command_whatever_a_run_is_called(tmp_path: Path) -> None:
    """People paste it into a shell, and a stranger may have written the record."""
    run = "a; touch /tmp/mine"
    choice = Choice("stage-1", run, True, "", "", (Ranked(GOOD, BETTER, 0.25, (run,), steps=30),))
    page = write_report([write_selected(tmp_path / "choice", choice) / "stage-1"], tmp_path / "out").read_text()
    assert "--run &#39;a; touch /tmp/mine&#39; --out policy.onnx" in page


def test_no_recommended_policy_is_said_plainly(tmp_path: Path, table: tuple[Ranked, ...]) -> None:
    folder = write_selected(tmp_path / "choice", Choice(None, None, False, "Keep the behaviour.", "", table[1:]))
    page = write_report([folder], tmp_path / "out").read_text()
    assert "<strong>No policy is recommended.</strong>" in page
    assert "Keep the behaviour." in page
    assert "score export" not in page


def test_a_selection_on_its_way_has_no_section(tmp_path: Path) -> None:
    page = write_report([write_selected(tmp_path / "choice", None)], tmp_path / "out").read_text()
    assert 'id="choice"' not in page
