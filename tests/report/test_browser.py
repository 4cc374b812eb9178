"""The page in a real browser: real runs through the real command, no network, two widths, light and dark."""

import csv
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from score_rl.cli import main
from score_rl.data.sources.replica import ready_replica
from tests.end_to_end.conftest import SMALL

pytestmark = pytest.mark.slow
NASTY = """<script>alert(1)<img src=x>&"'"""
DATASETS = ("replica:hopper-medium", "replica:walker2d-medium")


def find_browser() -> Any:
    """A Chromium on this machine: the one that is named, one on the path, or the one playwright brought."""
    named = os.environ.get("SCORE_RL_BROWSER")
    if named:
        return named
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        path = tools.chromium.executable_path
    return path if Path(path).exists() else None


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    found = find_browser()
    if found is None:
        pytest.skip("no Chromium here: install one, run `playwright install chromium`, or set SCORE_RL_BROWSER")
    with sync_api.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


def score(*arguments: Any) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert not end.value.code, arguments


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Any:
    """Runs of two methods, one run that diverges, one file with a name that tries, all in one page."""
    folder = tmp_path_factory.mktemp("report")
    runs, small = folder / "runs", [*SMALL, "--quiet"]
    for method in ("score", "td3-bc"):
        score(
            "train", "--algorithm", method, "--dataset", *DATASETS, "--seeds", 0, 1, 2, "--out", runs / method, *small
        )
    score("train", "--algorithm", "bc", "--dataset", DATASETS[0], "--out", runs / "broken",
          "--config.learning-rate", 1e30, *small)  # fmt: skip
    logs = folder / f"{NASTY}.hdf5"
    shutil.copyfile(ready_replica("hopper-medium", 3000, 0, cache, False), logs)
    score("train", "--dataset", logs, "--environment", "none", "--out", runs / "<b>logs & 'more'",
          *(argument for argument in small if argument not in ("--transitions", "3000")))  # fmt: skip
    score("report", runs, "--out", folder / "page")
    return folder


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    """Open the page; whatever it asks for or complains about is a failure."""
    made = []

    def open_page(width: Any, scheme: Any, folder: Path = report / "page") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page, complaints, requests = context.new_page(), [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        address = (folder / "index.html").resolve().as_uri()
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        made.append((context, complaints, requests, address))
        return page

    yield open_page
    for context, complaints, requests, address in made:
        context.close()
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [address], "the page must bring everything"


def final_scores(folder: Path, dataset: Any) -> Any:
    """The last score of every seed, read from the raw file and by nothing else."""
    last = {}
    with (folder / "metrics.csv").open() as file:
        for row in csv.DictReader(file):
            if row["name"] == "evaluation/score" and row["run"].startswith(dataset.replace(":", "-") + "_"):
                last[row["run"]] = float(row["value"])
    return np.array(list(last.values()))


def table(page: Any, selector: Any) -> Any:
    """A table as the browser shows it, head first."""
    return page.eval_on_selector(
        selector, "table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )


def test_the_tables_hold_the_stored_numbers(opened: Any, report: Path) -> None:
    page = opened(1280, "light")
    head, *rows = table(page, "table.scores")
    assert head == ["data set", "SCORE", "TD3-BC"], "a run that diverged before it was judged has no column"
    by_name = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    for dataset in DATASETS:
        for title, folder in (("SCORE", "score"), ("TD3-BC", "td3-bc")):
            values = final_scores(report / "runs" / folder, dataset)
            assert len(values) == 3
            shown = by_name[dataset][title].splitlines()
            assert shown[0].removesuffix(" ★") == f"{values.mean():.1f} ± {values.std():.1f}"
            half = 4.30265273 * values.std(ddof=1) / np.sqrt(3)
            assert shown[1] == f"{values.mean() - half:.1f} to {values.mean() + half:.1f}"
    assert "paper 99.6 ± 2.8" in by_name[DATASETS[0]]["SCORE"]
    both = [final_scores(report / "runs" / "score", dataset) for dataset in DATASETS]
    assert by_name["overall"]["SCORE"].splitlines()[0].removesuffix(" ★").startswith(f"{np.mean(both):.1f} ±")
    head, *rows = table(page, "#aggregates-table")
    mean = dict(zip(head, next(row for row in rows if row[0] == "SCORE"), strict=True))["Mean"]
    assert mean.splitlines()[0] == f"{np.mean(both):.1f}"


def test_broken_runs_are_listed(opened: Any) -> None:
    page = opened(1280, "dark")
    (row,) = [row for row in table(page, "#others-table") if "diverged" in row]
    assert row[1] == "BC"
    assert "1 diverged" in page.inner_text("#counts")


def test_markup_in_names_is_shown_and_does_nothing(opened: Any) -> None:
    page = opened(375, "light")
    assert NASTY in page.inner_text("#summary-table")
    assert page.evaluate("document.querySelectorAll('script:not([type]), img, b').length") == 1, "the page's own script"
    assert "<b>logs & 'more'" in page.inner_text("#runs")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The repository's own results: dozens of settings on six data sets, kept by a dozen experiments."""
    out = tmp_path_factory.mktemp("kept") / "page"
    score("report", Path(__file__).parents[2] / "benchmarks" / "results", "--out", out)
    return out


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("which", ["trained", "kept"])
def test_it_fits_and_can_be_read(opened: Any, kept: Path, report: Path, width: int, scheme: str, which: str) -> None:
    page = opened(width, scheme, kept if which == "kept" else report / "page")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """width => [...document.querySelectorAll('body *')].filter(part => !part.closest('.wide > *')
        && !part.closest('svg') && !part.closest('details:not([open])')
        && part.getBoundingClientRect().right > width + 0.5)
        .map(part => part.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == [], "only tables may be wider, inside their own container"
    luminance = """colour => { const [r, g, b] = colour.match(/\\d+/g).map(part => { const c = part / 255;
        return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126*r + 0.7152*g + 0.0722*b; }"""
    colours = page.evaluate(
        """() => { const of = (part, name) => getComputedStyle(document.querySelector(part))[name];
        return [of('body', 'backgroundColor'), of('body', 'color'), of('figure svg text', 'fill'),
        of('.legend button', 'color'),
        of('figcaption', 'color')]; }"""
    )
    ground, *inks = [page.evaluate(luminance, colour) for colour in colours]
    assert (ground < 0.1) == (scheme == "dark")
    for ink in inks:
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) > 4.5, colours
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('figure > div svg')].filter(svg => svg.getScreenCTM()).flatMap(svg => {
        const scale = svg.getScreenCTM().a;
        return [...svg.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize) * scale); })"""
    )
    assert len(sizes) > 50
    assert min(sizes) > 7.4
    if os.environ.get("SCORE_RL_SCREENSHOTS"):
        page.screenshot(path=f"{os.environ['SCORE_RL_SCREENSHOTS']}/{which}-{width}-{scheme}.png", full_page=True)


def test_curves_answer_the_pointer(opened: Any) -> None:
    page = opened(1280, "light")
    figure = page.locator("#curves figure.curves").first
    assert figure.locator(".still").count() == 0, "the script replaces the still figure"
    assert page.locator(".figures").first.bounding_box()["width"] > 1000, "figures use the width"
    figure.locator(".canvas svg").scroll_into_view_if_needed()
    box = figure.locator(".canvas svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 40)
    assert "60 updates" in figure.locator(".tip").inner_text(), "the last update"
    assert "SCORE: " in figure.locator(".tip").inner_text()
    button = figure.locator(".legend button", has_text="SCORE")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 60)
    assert "SCORE: " not in figure.locator(".tip").inner_text()
    page.mouse.move(box["x"] + 70, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.up()
    whole = figure.locator(".legend .whole")
    assert whole.is_visible(), "a drag zooms"
    whole.click()
    assert not whole.is_visible()


def test_dots_tell_their_numbers(opened: Any, report: Path) -> None:
    page = opened(1280, "dark")
    figure = page.locator("#scores figure.curves").first
    values = final_scores(report / "runs" / "score", DATASETS[0])
    figure.locator("rect").first.hover()
    said = figure.locator(".tip").inner_text()
    assert said.startswith("SCORE\n")
    assert float(said.split("mean ")[1].split(",")[0]) == pytest.approx(values.mean(), abs=0.06)
    names = figure.locator(".canvas svg text").all_text_contents()
    assert {*DATASETS, "SCORE", "TD3-BC"} <= set(names)


def test_intervals_of_aggregates_are_drawn_whole(opened: Any) -> None:
    page = opened(1280, "light")
    _, *rows = table(page, "#aggregates-table")
    ends = [float(end) for row in rows for cell in row[2:] for end in cell.splitlines()[1].split(" to ")]
    drawn = page.eval_on_selector_all(
        "#aggregates .canvas svg line[opacity]",
        "lines => lines.flatMap(line => [line.x1, line.x2].map(x => x.baseVal.value))",
    )
    assert len(drawn) == len(ends) == 2 * 4 * 2
    scale = (max(drawn) - min(drawn)) / (max(ends) - min(ends))
    lengths = sorted(drawn[n + 1] - drawn[n] for n in range(0, len(drawn), 2))
    page.locator("#aggregates rect").first.hover()
    assert "mean" not in page.locator("#aggregates .tip").inner_text(), "of a median"
    assert lengths == pytest.approx(sorted(scale * (ends[n + 1] - ends[n]) for n in range(0, len(ends), 2)), abs=2)


def test_profiles_answer_the_pointer(opened: Any) -> None:
    page = opened(1280, "light")
    canvas = page.locator("#profiles .canvas svg")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    said = page.locator("#profiles .tip").inner_text()
    assert said.startswith("above ")
    assert "SCORE: " in said


def test_without_scripts_still_figures_are_shown(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((report / "page" / "index.html").as_uri())
    assert page.locator("figure.curves .still svg").first.is_visible()
    context.close()


def test_every_link_leads_to_a_file_in_the_folder(opened: Any, report: Path) -> None:
    page = opened(1280, "light")
    links = page.eval_on_selector_all("a", "links => links.map(link => link.href)")
    here = (report / "page").resolve()
    files = {Path(unquote(urlsplit(link).path)) for link in links if "#" not in link}
    assert len(files) > 20
    assert all(file.is_file() and file.is_relative_to(here) for file in files)
    targets = [urlsplit(link).fragment for link in links if "#" in link]
    assert all(page.locator(f"#{target}").count() == 1 for target in targets)
