"""The page of a judged folder in a real browser, at a desk and on a phone."""

from pathlib import Path
from typing import Any

import pytest

from score_rl.report.page import write_report
from tests.report.judged_folder import write_judged
from tests.report.test_browser import browser  # noqa: F401  the fixture

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    return write_report([write_judged(folder / "runs")], folder / "out")


@pytest.mark.parametrize("width", [420, 1280])
def test_it_fits_and_says_the_verdicts_at_once(browser: Any, page: Path, width: int) -> None:  # noqa: F811
    opened = browser.new_page(viewport={"width": width, "height": 900})
    opened.goto(page.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    outside = opened.evaluate(
        """width => [...document.querySelectorAll('#judgement *')].filter(part => !part.closest('.wide > *')
        && !part.closest('svg') && part.getBoundingClientRect().right > width + 0.5).length""",
        width,
    )
    assert outside == 0, "only tables may be wider, inside their own container"
    table = opened.locator("table.verdicts")
    assert table.evaluate("part => part.scrollWidth <= part.parentElement.clientWidth"), "no verdict is cut off"
    box = table.bounding_box()
    assert box is not None
    assert box["y"] < 700, "without scrolling"
    opened.close()
