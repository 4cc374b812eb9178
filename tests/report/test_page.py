"""The page as text: whole, escaped, honest about what is missing, and never written over something else."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from score_rl.errors import InputError
from score_rl.report.grouping import distinct, gather, group
from score_rl.report.page import write_report
from score_rl.report.page_charts import MOST_POINTS, chart_script, script_checksum
from score_rl.report.results import RETURN
from score_rl.report.short_names import settings_table, with_short_names
from score_rl.report.stored_results import store_results
from tests.report.folders import write_experiment

NASTY = """<script>alert(1)</script>&"'$<img src=x onerror=alert(2)>"""


class Tags(HTMLParser):
    """Every tag of a page, its links, and the texts of its tables."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on")], "no attribute may run anything"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: Path) -> tuple[Tags, str]:
    found = Tags(page)
    return found, re.sub(r"\s+", " ", " ".join(found.text))


def running_scripts(page: Path) -> list[str]:
    """The text of every script element that a browser would run."""
    return re.findall(r"<script>(.*?)</script>", page.read_text(), flags=re.DOTALL | re.IGNORECASE)


def curves_of(page: Path) -> list[dict[str, Any]]:
    """What the page gives to its script: each element is whole, whatever names are in it."""
    held = re.findall(r'<script type="application/json">(.*?)</script>', page.read_text(), flags=re.DOTALL)
    assert page.read_text().count("<script") == len(held) + 1
    return [json.loads(each) for each in held]


def test_curves_are_those_that_were_stored(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0, 2.0, 3.0], 1: [3.0, 4.0, 5.0], 2: [5.0, 6.0, 700.0]},
                     states={2: "diverged"})  # fmt: skip
    curves = {each["quantity"]: each for each in curves_of(write_report([tmp_path / "a"], tmp_path / "out"))}
    (series,) = curves["normalised score (%)"]["series"]
    assert series["mean"] is None, "two seeds are shown themselves"
    assert [run["y"] for run in series["runs"]] == [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]
    assert series["broken"] == [{"x": [10, 20, 30], "y": [5.0, 6.0, 700.0]}]
    assert {"label": "behaviour policy", "value": 40.0} in curves["normalised score (%)"]["lines"]


def test_three_seeds_have_a_mean_with_its_interval(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [2.0], 2: [3.0]}, steps=10)
    curves = {each["quantity"]: each for each in curves_of(write_report([tmp_path / "a"], tmp_path / "out"))}
    (series,) = curves["normalised score (%)"]["series"]
    assert series["mean"] == {"x": [10], "y": [2.0], "low": [-0.48414], "high": [4.4841]}


def test_two_seeds_are_drawn_and_nothing_is_said_of_their_mean(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [2.0]}, steps=10)
    write_experiment(tmp_path / "b", algorithm="bc", scores={0: [1.0], 1: [2.0], 2: [3.0]}, steps=10)
    page = write_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    (dots,) = [each for each in curves_of(page) if each["kind"] == "dots"]
    (block,) = dots["blocks"]
    score, bc = block["rows"]
    assert (score["value"], score["low"], score["seeds"]) == (None, None, [1.0, 2.0])
    assert (bc["value"], bc["low"], bc["seeds"]) == (2.0, -0.48414, [1.0, 2.0, 3.0])
    assert score["paper"] == 99.6


def test_a_page_speaks_of_nothing_that_it_does_not_show(tmp_path: Path) -> None:
    for seeds, there, absent in (
        (1, ("one seed", "nothing is known of the spread"), ("95 %", "mean ± std", "★ marks", "A cross ends")),
        (2, ("mean ± std over seeds", "Each line is one seed"), ("95 %", "★ marks", "A cross ends")),
        (3, ("mean ± std over seeds", "95 % interval", "thin lines"), ("★ marks", "A cross ends")),
    ):
        folder = write_experiment(tmp_path / str(seeds), scores={s: [1.0 + s] for s in range(seeds)}, steps=10)
        _, text = read(write_report([folder], tmp_path / f"out-{seeds}"))
        assert [each for each in there if each not in text] == []
        assert [each for each in absent if each in text] == []


def test_what_all_short_names_share_has_no_column() -> None:
    kept = Path(__file__).parents[2] / "benchmarks" / "results" / "grid-hopper-expert"
    table = settings_table(with_short_names(group(gather([kept]))))
    assert table is not None
    assert list(table.columns) == ["beta", "bc_decay"], "all were trained to choose by"
    assert table.said("SCORE 2") == "beta 0.1, bc_decay 0.98"


def test_long_names_become_short_ones_with_a_table(tmp_path: Path) -> None:
    settings = ({"beta": 0.1, "bc_decay": 0.96}, {"beta": 0.5, "bc_decay": 1.0})
    write_experiment(tmp_path / "a", settings=settings, scores={0: [1.0, 2.0]}, steps=20)
    page = write_report([tmp_path / "a"], tmp_path / "out")
    _, text = read(page)
    assert "SCORE (" not in re.sub(r'title="[^"]*"', "", page.read_text()), "no long name is shown"
    assert "name beta bc_decay SCORE 1 0.1 0.96 SCORE 2 0.5 1" in text
    assert "SCORE 1 beta 0.1, bc_decay 0.96" in text, "beside the name in the summary too"
    labels = {series["label"] for each in curves_of(page) if each["kind"] == "curves" for series in each["series"]}
    assert labels == {"SCORE 1", "SCORE 2"}
    assert "SCORE (beta=0.1, bc_decay=0.96)" in (tmp_path / "out" / "tables" / "scores.csv").read_text(), "in full"


def test_settings_without_effect_are_no_part_of_a_name(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", settings=({"mmd_sigma": 10.0},), scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "b", settings=({"mmd_sigma": 20.0},), scores={1: [2.0]}, steps=10)
    assert {group.label for group in group(gather([tmp_path]))} == {"SCORE"}, "cloning has no MMD"
    write_experiment(tmp_path / "c", settings=({"mmd_sigma": 30.0, "constraint": "mmd"},), scores={1: [2.0]}, steps=10)
    assert {group.label for group in group(gather([tmp_path]))} == {
        "SCORE (constraint=bc)",
        "SCORE (mmd_sigma=30, constraint=mmd)",
    }


def test_a_long_curve_keeps_its_ends(tmp_path: Path) -> None:
    values = list(np.arange(3000.0))
    write_experiment(tmp_path / "a", scores=dict.fromkeys(range(3), values), steps=30000)
    curves = curves_of(write_report([tmp_path / "a"], tmp_path / "out"))
    mean = next(each for each in curves if "score" in each["quantity"])["series"][0]["mean"]
    assert (mean["y"][0], mean["y"][-1], len(mean["y"])) == (0.0, 2999.0, MOST_POINTS)
    assert len(mean["low"]) == len(mean["high"]) == MOST_POINTS


def test_a_whole_report(tmp_path: Path) -> None:
    for number, algorithm in enumerate(("score", "td3-bc")):
        for dataset in ("hopper", "walker2d"):
            write_experiment(
                tmp_path / "runs" / f"{algorithm}-{dataset}", algorithm=algorithm, environment=dataset,
                dataset=f"replica:{dataset}-medium", scores={s: [10.0, 20.0, 30.0 + s + number] for s in range(3)},
            )  # fmt: skip
    page = write_report([tmp_path / "runs"], tmp_path / "out")
    found, text = read(page)
    assert "31.0 ± 0.8" in text
    assert "32.0 ± 0.8" in text
    assert "99.6 ± 2.8" in text
    assert "Over 2 data sets" in text
    assert "in no mean of this page" not in text
    assert len(found.ids) == len(set(found.ids)), "an id twice would mix up figures"
    (profile,) = [each for each in curves_of(page) if each["quantity"] == "share of runs above"]
    assert [series["label"] for series in profile["series"]] == ["SCORE", "TD3-BC"]
    assert {"x", "y", "low", "high"} == set(profile["series"][0]["mean"])
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    linked = {link for link in found.links if not link.startswith(("#", "data:"))}
    assert linked == files - {"index.html"}, "every file is linked, every link is a file"
    for name in (
        "scores",
        "aggregates",
        "profiles",
        "score-replica-hopper-medium",
        "uncertainty-replica-hopper-medium",
    ):
        assert {f"figures/{name}.svg", f"figures/{name}.pdf"} <= files
    assert {"tables/scores.csv", "tables/scores.tex", "tables/aggregates.csv", "tables/aggregates.tex"} <= files


def test_nothing_comes_from_elsewhere_and_only_the_pages_script_runs(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]})
    page = write_report([tmp_path / "a"], tmp_path / "out")
    found, _ = read(page)
    assert not {"iframe", "object", "embed", "img"} & set(found.tags)
    assert running_scripts(page) == [chart_script()]
    assert f"script-src '{script_checksum(chart_script())}'" in page.read_text(), "no other script may run"
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # namespaces, which nobody fetches
    assert set(re.findall(r"https?://[^\"'<\s]+", page.read_text())) <= names
    assert all(link.startswith(("#", "data:,", "figures/", "tables/", "raw/")) for link in found.links)


def test_the_same_runs_make_the_same_page(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0], 1: [2.0]}, steps=10)
    write_report([tmp_path / "a"], tmp_path / "one")
    write_report([tmp_path / "a"], tmp_path / "two")
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path.name


def test_names_with_markup_are_text(tmp_path: Path) -> None:
    write_experiment(tmp_path / "<b>&\"'", scores={0: [1.0], 1: [3.0]}, dataset=NASTY, state="failed",
                     error="<i>no space</i>", states={1: "training"},
                     settings=({"beta": "<u>"}, {"beta": "&"}))  # fmt: skip
    page = write_report([tmp_path], tmp_path / "out")
    found, text = read(page)
    assert not {"img", "b", "i", "u"} & set(found.tags)
    assert running_scripts(page) == [chart_script()]
    assert any(NASTY in curves["title"] for curves in curves_of(page))
    assert NASTY in text
    assert "<i>no space</i>" in text
    assert "SCORE (beta=<u>)" in text
    for path in (tmp_path / "out").rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9.=_-]+", path.name), "file names of a report work everywhere"


def test_what_is_not_finished_is_listed_and_in_no_mean(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", state="running", scores={0: [7.0, 8.0, 9.0], 1: [7.0, 1000.0], 2: [2000.0], 3: []},
                     states={1: "training", 2: "diverged", 3: "waiting"})  # fmt: skip
    _, text = read(write_report([tmp_path / "a"], tmp_path / "out"))
    assert "9.0" in text
    assert "9.0 ±" not in text  # one seed finished: there is no deviation
    assert "1 of 4 seeds" in text
    assert "3 of 4 runs are in no mean of this page" in text
    for state in ("training", "diverged", "waiting"):
        assert state in text
    assert "20 of 30" in text
    assert "still training; last written" in text


def test_without_any_result_it_says_so(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", environment=None, dataset="logs", scores={0: [0.0, 0.0, 0.0]})
    found, text = read(write_report([tmp_path / "a"], tmp_path / "out"))
    assert "No run was judged" in text
    assert "score judge says" in text
    assert not {"scores", "curves", "aggregates", "profiles"} & set(found.ids), "empty sections are absent"
    assert "losses" not in found.ids
    assert not (tmp_path / "out" / "tables").exists(), "docs/report.md says so"
    write_experiment(tmp_path / "b", scores={0: []}, state="running", states={0: "waiting"})
    found, _ = read(write_report([tmp_path / "b"], tmp_path / "out"))
    assert not {"time", "uncertainty"} & set(found.ids)
    assert {link for link in found.links if link.startswith("#")} == {"#summary", "#runs"}


def test_returns_where_there_is_no_reference(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", environment="Pendulum-v1", dataset="swings", scores={0: [-900.0, -350.5]},
                     steps=20, metric=RETURN)  # fmt: skip
    found, text = read(write_report([tmp_path / "a"], tmp_path / "out"))
    assert "-350.5" in text
    assert "Last policies: return" in text
    assert "aggregates" not in found.ids


def test_unequal_training_is_pointed_out(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]}, steps=10)
    write_experiment(tmp_path / "b", scores={0: [1.0, 2.0]}, steps=20, algorithm="bc")
    _, text = read(write_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out"))
    assert "Careful, these were trained for different numbers of updates (10: SCORE; 20: BC)." in text


def test_a_report_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    write_experiment(tmp_path / "a", scores={0: [1.0]})
    write_experiment(tmp_path / "b", scores={0: [1.0]}, dataset="replica:walker2d-medium")
    write_report([tmp_path / "a"], tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "score-replica-hopper-medium.svg").exists()
    write_report([tmp_path / "b"], tmp_path / "out")
    assert not (tmp_path / "out" / "figures" / "score-replica-hopper-medium.svg").exists(), "an old figure would lie"
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("<p>mine</p>")
    with pytest.raises(InputError, match="something else than a report"):
        write_report([tmp_path / "a"], other)
    assert (other / "index.html").read_text() == "<p>mine</p>"
    with pytest.raises(InputError, match="is a file"):
        write_report([tmp_path / "a"], other / "index.html")
    with pytest.raises(InputError, match="does not exist"):
        write_report([tmp_path / "nothing"], tmp_path / "out")
    assert (tmp_path / "out" / "figures").is_dir(), "a mistake must not cost the earlier report"


def test_without_its_libraries_an_earlier_report_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_experiment(tmp_path / "a", scores={0: [7.0, 8.0, 9.0]})
    page = write_report([tmp_path / "a"], tmp_path / "out")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    before = set((tmp_path / "out").rglob("*"))
    with pytest.raises(InputError, match=r"the page needs jinja2.* pip install 'score-rl\[report\]'"):
        write_report([tmp_path / "a"], page.parent)
    assert set((tmp_path / "out").rglob("*")) == before


def test_a_report_among_the_runs_is_not_taken_for_one(tmp_path: Path) -> None:
    write_experiment(tmp_path / "runs" / "a", scores={0: [1.0]})
    write_report([tmp_path / "runs"], tmp_path / "runs" / "page")
    assert len(gather([tmp_path / "runs"])) == 1


@pytest.mark.parametrize(
    "name", ["experiment.json", "metrics.csv", "status.json", "judgement.json", "stored/summary.json", "elsewhere"]
)
def test_nothing_is_shown_or_copied_that_a_link_leads_to(tmp_path: Path, name: str) -> None:
    """A stranger may have packed the folder, and people send their reports around."""
    runs, secret = write_experiment(tmp_path / "runs", scores={0: [1.0]}), tmp_path / "secret"
    if name == "elsewhere":
        write_experiment(secret, scores={0: [2.0]})
        (runs / "experiment.json").unlink()
    if name.startswith("stored"):
        store_results(gather([runs]), tmp_path / "stored")
    place = (tmp_path if name.startswith("stored") else runs) / name
    if place.exists():
        place.rename(secret)
    elif not secret.exists():
        secret.write_text("{}")
    place.symlink_to(secret)
    with pytest.raises(InputError, match=r"is a link"):
        write_report([place.parent], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("raw/*"))


@pytest.mark.slow
def test_the_repositorys_kept_results_make_a_page(tmp_path: Path) -> None:
    from pathlib import Path

    kept = Path(__file__).parents[2] / "benchmarks" / "results"
    page = write_report([kept], tmp_path / "out")
    _, text = read(page)
    assert "101.4 ± 0.2" in text
    assert "48.2 ± 0.3" in text
    assert re.search(r"SCORE \d+ 0\.5 [^A-Z]*300,000", text), "a table says what short names stand for"
    assert "target_noise_clip=" not in text, "what all runs share is no part of a name"
    records, runs = gather([kept]), distinct(gather([kept]))
    assert len(runs) < len(records), "experiments share runs"
    assert f"{len(records) - len(runs)} more records are of the same runs and count once" in text
    assert f"{len(runs)} runs in" in text
    assert "ablation-bc" in text, "folders that are all called runs are told apart"
    where = re.findall(r"which finished only on (.*?)\.(?= )", text)
    assert where, "some methods share no data set with the others"
    assert len(where) == len(set(where)), "one sentence for each set of data sets, not for each method"


def test_a_killed_run_is_listed_as_such_and_ends_no_mean(tmp_path: Path) -> None:
    import os

    write_experiment(tmp_path / "runs" / "a", scores={0: [7.0, 8.0, 9.0], 1: [7.0, 8.0, 9.0]})
    write_experiment(tmp_path / "runs" / "b", scores={2: [100.0]}, state="running", states={2: "training"})
    for file in (tmp_path / "runs" / "b").iterdir():
        os.utime(file, (1e9, 1e9))
    _, text = read(write_report([tmp_path / "runs"], tmp_path / "out"))
    assert "1 silent" in text
    assert "probably killed; score train --resume goes on; last written 2001-09-09" in text
    assert "2 of 3 seeds" in text
    assert "9.0 ± 0.0" in text


def test_many_methods_make_rows_and_few_make_columns(tmp_path: Path) -> None:
    for place in range(11):
        write_experiment(tmp_path / "runs" / str(place), scores={0: [1.0 + place], 1: [2.0]}, steps=10,
                         settings=({"beta": 0.1 * (place + 1)},))  # fmt: skip
    page = write_report([tmp_path / "runs"], tmp_path / "out")
    _, text = read(page)
    assert '<thead><tr><th>method</th><th class="n">replica:hopper-medium</th>' in page.read_text()
    assert "Many lines: press “seeds” for their seeds" in text
    write_report([tmp_path / "runs" / "0", tmp_path / "runs" / "1"], tmp_path / "out")
    assert '<thead><tr><th>data set</th><th class="n">SCORE (beta=0.1)</th>' in page.read_text()
