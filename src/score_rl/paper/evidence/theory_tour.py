"""The pictures of docs/theory.md and what its studies found: every study is run, and nothing of it is typed by hand.

    python -m score_rl.paper.evidence.theory_tour            run every study, about a minute on two cores
    python -m score_rl.paper.evidence.theory_tour --check    exit code 1 where the page says something else

What a study found stands between `<!-- theory:NAME -->` and `<!-- /theory:NAME -->`. Rounding errors differ between
machines, so the check takes all numbers below 1e-6 for one number, and others for equal within one percent.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro

from score_rl.disk import write_file
from score_rl.paper.evidence.cells import table
from score_rl.paper.evidence.documents import with_tables
from score_rl.paper.theory.studies import STUDIES, run_study
from score_rl.paper.theory.studies.findings import StudyResult

PAGE = Path("docs", "theory.md")
FIGURES = Path("docs", "figures", "theory")
TABLES = {name: f"{name}_table" for name in ("bridge", "corrections")}  # studies whose table stands on the page too
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
ROUNDING, WITHIN = 1e-6, 0.01


@dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if the page differs from what the studies find."""
    checkout: Path = Path()
    """A checkout of this project."""


def block_of(study: str) -> str:
    """The name of a study's block on the page."""
    return study.replace("-", "_")


def verdicts(result: StudyResult) -> str:
    """What a study found, as a list."""
    return "\n".join(f"- {escaped(verdict)}" for verdict in result.verdicts)


def table_of(result: StudyResult) -> str:
    return table(result.columns, [list(map(escaped, row)) for row in result.rows])


def escaped(text: str) -> str:
    """Stars and bars that are no Markdown, as in π* and (s|a)."""
    return text.replace("*", "\\*").replace("|", "\\|")


def blocks_of(results: Mapping[str, StudyResult]) -> dict[str, str]:
    """Every block of the page, as it should be."""
    found = {block_of(name): verdicts(result) for name, result in results.items()}
    return found | {block: table_of(results[name]) for name, block in TABLES.items() if name in results}


def blocks_in(text: str) -> dict[str, str]:
    """Every block of the page, as it is."""
    found = re.findall(r"<!-- theory:(\w+) -->\n\n(.*?)\n\n<!-- /theory:\1 -->", text, re.DOTALL)
    return {str(name): str(content) for name, content in found}


def same(one: str, other: str) -> bool:
    """Whether two texts say the same: the same words, and numbers that differ by no more than machines do."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(_equal(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs)


def _equal(a: float, b: float) -> bool:
    return max(a, b) < ROUNDING or abs(a - b) <= WITHIN * max(abs(a), abs(b))


def main(asked: Arguments) -> int:
    page = asked.checkout / PAGE
    with tempfile.TemporaryDirectory() as scratch:
        results = {}
        for name in STUDIES:
            print(f"Running {name} ...", flush=True)
            results[name] = run_study(name, Path(scratch) / name)
        text, wanted = page.read_text(encoding="utf-8"), blocks_of(results)
        if asked.check:
            there = blocks_in(text)
            stale = [name for name, content in wanted.items() if not same(content, there.get(name, ""))]
            print(f"{PAGE} differs from what is found in: {', '.join(stale)}" if stale else f"{PAGE} is up to date")
            return int(bool(stale))
        write_file(page, with_tables(text, "theory", {name: partial(str, content) for name, content in wanted.items()}))
        for picture in sorted(Path(scratch).glob("*/*.svg")):
            shutil.copy(picture, asked.checkout / FIGURES / picture.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
