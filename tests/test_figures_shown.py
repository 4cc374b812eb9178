"""Long figures stay in the repository only where a document shows them."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
LONG = 1_000  # lines


def test_no_long_svg_lies_where_nothing_shows_it() -> None:
    documents = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")]
    shown = {
        (document.parent / address).resolve()
        for document in documents
        for address in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", document.read_text())
    }
    kept = [path for folder in ("docs", "benchmarks") for path in (CHECKOUT / folder).rglob("*.svg")]
    assert len(kept) > 5
    assert [path for path in kept if path.resolve() not in shown and path.read_text().count("\n") >= LONG] == []
