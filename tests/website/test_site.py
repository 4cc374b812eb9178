"""The documentation site: it builds without a warning, needs nothing from the network, and has every page."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="score-rl[docs] is not installed")
pytest.importorskip("mkdocstrings", reason="score-rl[docs] is not installed")

CHECKOUT = Path(__file__).parents[2]
FETCHES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NOT_FETCHED = {"canonical", "next", "prev"}  # links of the head that a browser does not load


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


class _Fetched(HTMLParser):
    """What a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        if tag in FETCHES and about.get("rel") not in NOT_FETCHED:
            self.found.append(about.get(FETCHES[tag]) or "")


def fetched(text: str) -> list[str]:
    parser = _Fetched()
    parser.feed(text)
    return parser.found


def pages(site: Path) -> Iterator[Path]:
    return site.rglob("*.html")


@pytest.mark.slow
def test_every_document_is_a_page_that_another_page_leads_to(site: Path) -> None:
    home = (site / "index.html").read_text()
    for document in (CHECKOUT / "docs").glob("*.md"):
        page = f"{document.stem}.html"
        assert (site / page).exists()
        assert document.stem == "index" or f'href="{page}"' in home, f"{page} is not in the navigation"


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in pages(site):
        for address in fetched(page.read_text()):
            assert address.startswith("data:") or "//" not in address, f"{page.name} loads {address}"
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import ['\"]?http", sheet.read_text()), sheet.name


@pytest.mark.slow
def test_links_lead_to_files_of_the_site(site: Path) -> None:
    """Also those to the repository's files, and to their lines."""
    for page in pages(site):
        for address in re.findall(r'<a href="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            if address.startswith("/"):  # of the page for addresses that do not exist
                continue
            assert (page.parent / address).exists(), f"{page.name}: {address}"
    (line,) = re.findall(
        r'href="(repository/[^"]*score\.py\.html)#([^"]*)">[^<]*<code>[^<]*</code></a>[^<]*<code>update',
        (site / "architecture.html").read_text(),
    )
    assert f'id="{line[1]}"' in (site / line[0]).read_text()


@pytest.mark.slow
def test_public_names_show_how_they_are_called(site: Path) -> None:
    import score_rl

    text = (site / "api.html").read_text()
    for name in score_rl.__all__:
        assert f'id="score_rl.{name}"' in text or f"score_rl.{name}" in text, name
    assert "hold_out" in text
    assert "&gt;&gt;&gt; experiment = score_rl.train" in re.sub(r"<[^>]*>", "", text)


def test_what_a_page_loads_is_found() -> None:
    text = '<script src="https://a/b.js"></script><img src="c.svg"><link rel="canonical" href="https://d">'
    assert fetched(text) == ["https://a/b.js", "c.svg"]
