"""`score report` as a person calls it: on what was trained, while it trains, and on what is not there."""

import re
from pathlib import Path

from tests.end_to_end.conftest import SMALL, Score, start_process, wait_for


def test_it_says_where_the_page_is(score: Score, tmp_path: Path) -> None:
    assert score("train", "--dataset", "replica:hopper-medium", "--seeds", 0, 1, "--out", "runs/a", *SMALL).code == 0
    done = score("report", "runs", "--out", "page")
    assert done.code == 0, done.err
    assert "Page: page/index.html" in done.out
    text = (tmp_path / "page" / "index.html").read_text()
    assert len(re.findall(r'class="state finished"', text)) >= 2
    assert score("report", "runs/a", "--out", "page").code == 0, "an earlier report is replaced"


def test_mistakes_are_one_sentence(score: Score, tmp_path: Path) -> None:
    missing = score("report", "nowhere", "--out", "page")
    assert missing.code == 2
    assert "does not exist" in missing.err
    assert not (tmp_path / "page").exists()
    (tmp_path / "empty").mkdir()
    assert "holds no results" in score("report", "empty", "--out", "page").err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert score("train", "--dataset", "replica:hopper-medium", "--out", "runs/a", *SMALL).code == 0
    taken = score("report", "runs", "--out", "mine")
    assert taken.code == 2
    assert "something else than a report" in taken.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    assert score("report", "runs").code == 2, "--out is needed"
    assert score("report", "--out", "page").code == 2, "so are the runs"


def test_runs_that_still_train_are_shown_as_such(score: Score, tmp_path: Path) -> None:
    endless = [*SMALL]
    endless[endless.index("--steps") + 1] = "10000000"
    process = start_process("train", "--dataset", "replica:hopper-medium", "--out", tmp_path / "runs", *endless)
    metrics = tmp_path / "runs" / "metrics.csv"
    try:
        wait_for(lambda: metrics.exists() and "evaluation/score" in metrics.read_text(), process)
        done = score("report", "runs", "--out", "page")
        assert process.poll() is None, "it must still train while the page is made"
    finally:
        process.kill()
        process.communicate()
    assert done.code == 0, done.err
    text = re.sub(r"<[^>]+>|\s+", " ", (tmp_path / "page" / "index.html").read_text())
    assert "still training" in text
    assert "of 10,000,000" in text
    assert "1 of 1 runs is in no mean of this page" in re.sub(" +", " ", text)
