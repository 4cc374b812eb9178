"""The page for logs alone: the judgement first, nothing empty, and no ruined policy in green."""

import csv
import re
from pathlib import Path

import pytest

from score_rl.report.page import write_report
from score_rl.report.results import read_experiment
from score_rl.store.judgements import BETTER, DOUBTFUL, read_judgement
from tests.report.folders import write_experiment
from tests.report.judged_folder import DATASET, write_judged
from tests.report.test_page import curves_of, read


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    return write_report([write_judged(folder / "runs")], folder / "out")


def part(page: Path, name: str) -> str:
    """The text of a section."""
    return re.search(rf'<section id="{name}">(.*?)</section>', page.read_text(), re.DOTALL).group(1)  # type: ignore[union-attr]


def test_the_judgement_comes_first(page: Path) -> None:
    text = page.read_text()
    assert 0 < text.index('<section id="judgement">') < text.index('<section id="summary">')
    assert text.index('href="#judgement"') < text.index('href="#summary"')


def test_verdicts_and_reasons_are_said_in_words_best_first(page: Path) -> None:
    mine = part(page, "judgement")
    good, ruined = mine.index(f"{DATASET}_<wbr>seed=0"), mine.index(f"{DATASET}_<wbr>seed=1")
    assert good < ruined
    assert "97% of its actions are at their bounds." in mine
    assert "They agree." in mine
    assert "A remark." in mine
    assert "took no part in training" in mine
    assert re.search(rf"{DATASET}_<wbr>seed=2</th><td>not judged", mine)


def test_a_ruined_policy_is_nowhere_green(page: Path) -> None:
    text = page.read_text()
    assert f'<span class="state failed">{DOUBTFUL}</span>' in text
    assert f'<span class="state finished">{BETTER}</span>' in text
    row = re.search(rf"<tr><th scope=\"row\">{DATASET}_<wbr>seed=1</th><td>{DATASET}.*?</tr>", text, re.DOTALL)
    assert row is not None
    assert "state finished" not in row.group(0)
    assert DOUBTFUL in row.group(0)
    head = text[text.index('id="counts"') : text.index("</ul>")]
    assert "1 of them" in head, "three runs finished, and one is ruined"


def test_estimates_stand_beside_the_behaviour_and_in_a_file(page: Path) -> None:
    mine = part(page, "judgement")
    assert "-1.25" in mine
    assert "+0.5<small>+0.4 to +0.6</small>" in mine
    assert "left out where they are made of fewer than five" in mine
    rows = list(csv.DictReader((page.parent / "tables" / f"judgement-{DATASET}.csv").read_text().splitlines()))
    assert {row["policy"] for row in rows} == {f"{DATASET}_seed=0", f"{DATASET}_seed=1", "behaviour"}
    assert ">importance sampling</th>" not in mine, "a column with nothing in it"
    assert "importance sampling" not in {row["estimator"] for row in rows if row["policy"] != "behaviour"}
    assert (page.parent / "raw").is_dir()
    assert list((page.parent / "raw").glob("*.judgement.json"))


def test_the_script_has_the_estimates_too(page: Path) -> None:
    (dots,) = [each for each in curves_of(page) if each["kind"] == "dots"]
    assert (dots["level"], dots["zero"]) == (90, "the behaviour")
    assert [block["name"] for block in dots["blocks"]] == [f"{DATASET}_seed=0", f"{DATASET}_seed=1"]
    first = dots["blocks"][0]["rows"][0]
    assert (first["label"], first["value"], first["low"], first["high"]) == ("fitted Q", 0.5, 0.4, 0.6)


def test_nothing_is_empty_and_nothing_speaks_of_episodes_or_papers(page: Path) -> None:
    found, text = read(page)
    html = page.read_text()
    for name in ("scores", "curves", "aggregates", "profiles"):
        assert f'<section id="{name}">' not in html
    assert "paper" not in part(page, "summary")
    assert "behaviour policy" not in part(page, "summary")
    assert "last score" not in part(page, "runs")
    assert len(found.ids) == len(set(found.ids))
    assert "nan" not in text.lower().split()


def test_columns_are_called_by_their_names_and_names_are_escaped(page: Path) -> None:
    mine = part(page, "judgement")
    assert "valve 0.25" in mine
    assert "pump&lt;b&gt;" in mine
    assert "pump<b>" not in mine


def test_what_was_trained_on_since_is_marked(tmp_path: Path) -> None:
    folder = write_judged(tmp_path / "runs")
    text = (folder / "judgement.json").read_text().replace('"step": 30', '"step": 20')
    (folder / "judgement.json").write_text(text)
    page = write_report([folder], tmp_path / "out")
    assert "after update 20; trained on since" in part(page, "judgement")
    assert all(run.verdict is None for run in read_experiment(folder)), "an old verdict is none of the new policy"


def test_data_that_were_trained_on_are_said_to_flatter(tmp_path: Path) -> None:
    page = write_report([write_judged(tmp_path / "runs", held_out=False)], tmp_path / "out")
    assert "which flatters" in part(page, "judgement")


def test_without_a_judgement_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path / "runs", dataset=DATASET, scores={0: (1.0,)}, environment=None)
    page = write_report([folder], tmp_path / "out")
    assert '<section id="judgement">' not in page.read_text()
    assert "score judge" in part(page, "summary")


def test_a_judgement_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = write_judged(tmp_path / "runs")
    record = read_judgement(folder)
    assert record is not None
    again = record.data[0].runs[f"{DATASET}_seed=1"]
    assert (again.verdict, again.distance is not None, again.step) == (DOUBTFUL, True, 30)
    assert list(again.shown) == ["fitted Q", "fitted Q, pessimistic", "model"]
    assert record.data[0].remarks == ("A remark.",)
