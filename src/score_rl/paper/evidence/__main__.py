"""Put the measured scores beside the paper's: README's figures and methods, and the tables of docs/results.md.

    python -m score_rl.paper.evidence           rewrite the tables and figures
    python -m score_rl.paper.evidence --check   exit code 1 where a document or figure differs from what is stored

Everything comes from benchmarks/results: each number links to the file it was read from. A table stands between
`<!-- evidence:NAME -->` and `<!-- /evidence:NAME -->`; the rest of a document is left alone. Nothing is trained.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro

from score_rl.errors import InputError
from score_rl.paper.evidence.documents import refresh, report_stale, with_tables
from score_rl.paper.evidence.figures import draw, drawn_numbers, numbers_in
from score_rl.paper.evidence.findings import findings
from score_rl.paper.evidence.main_table import FIGURES
from score_rl.paper.evidence.reading import RESULTS, read
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.six_tables import SIX_TABLES
from score_rl.paper.evidence.tables import TABLES

DOCUMENTS = (
    "README.md",
    *(f"docs/{name}.md" for name in ("results", "algorithms", "six-sets", "reproduce", "ogbench")),
)


@dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if a document or figure differs from what is stored."""
    checkout: Path = Path()
    """A checkout of this project."""


def rewritten(text: str, evidence: Evidence, base: Path) -> str:
    """A document that lies in `base`, with its tables as they are now."""
    tables = TABLES | SIX_TABLES | {"findings": findings}
    return with_tables(text, "evidence", {name: partial(make, evidence, base) for name, make in tables.items()})


def main(asked: Arguments) -> int:
    root = asked.checkout
    if not (root / RESULTS).is_dir():
        raise InputError(f"{root.resolve()} has no {RESULTS}; run this in a checkout, or name one with --checkout.")
    evidence = read(root)
    documents = [root / name for name in DOCUMENTS]
    stale = refresh(documents, lambda text, folder: rewritten(text, evidence, folder), change=not asked.check)
    if asked.check:
        drawn = sorted((root / FIGURES).glob("*.svg"))
        stale += [path for path in drawn if numbers_in(path) != drawn_numbers(evidence)]
    else:
        draw(evidence, root / FIGURES)
    return report_stale(stale, root, "make evidence" if asked.check else None)


if __name__ == "__main__":
    try:
        raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
    except InputError as mistake:
        raise SystemExit(str(mistake)) from None
