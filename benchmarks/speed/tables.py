"""Put the stored figures into the documents. Every table of speeds is made here, from JSON, never by hand.

    python -m benchmarks.speed.tables           rewrite the tables and plots
    python -m benchmarks.speed.tables --check   exit code 1 where a document differs from what is stored

A table stands between `<!-- speed:NAME -->` and `<!-- /speed:NAME -->`; the rest of a document is left alone.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro

from score_rl.paper.evidence.documents import refresh, report_stale, with_tables

from . import fleet_tables, summary, update_tables
from .figures import FOLDER, draw_figures
from .importing import importing_table
from .machines import RESULTS, Machine, machines
from .scale_figure import draw_scale, figure_path

ROOT = Path(__file__).resolve().parents[2]
IMPORTING = RESULTS / "importing" / "2-cores.json"
PEERS = RESULTS / "peers" / "h200.json"
DOCUMENTS = (
    *(f"docs/{name}.md" for name in ("algorithms", "performance", "kernels", "ogbench", "data")),
    "README.md",
)
TABLES: dict[str, Callable[[list[Machine]], str]] = {
    "summary": lambda found: summary.summary(found, json.loads(PEERS.read_text())),
    "methods": update_tables.methods,
    "score": update_tables.score,
    "peers": lambda found: summary.peers(json.loads(PEERS.read_text())),
    "d3rlpy": update_tables.d3rlpy,
    "floor": update_tables.floor,
    "scale": fleet_tables.scale,
    "evaluation": fleet_tables.evaluation,
    "workers": fleet_tables.workers,
    "overlap": fleet_tables.overlap,
    "finished": fleet_tables.finished,
    "critics": update_tables.critics,
    "startup": fleet_tables.startup,
    "recording": fleet_tables.recording,
    "versions": update_tables.versions,
    "importing": lambda found: importing_table(json.loads(IMPORTING.read_text())),
    "readme": lambda found: update_tables.readme(found, json.loads(PEERS.read_text())),
}


def rewritten(text: str, found: list[Machine]) -> str:
    """The document with its tables as they are stored."""
    return with_tables(text, "speed", {name: partial(make, found) for name, make in TABLES.items()})


@dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if a document differs from what is stored."""


def main(asked: Arguments) -> int:
    found = machines()
    documents = [ROOT / name for name in DOCUMENTS]
    stale = refresh(documents, lambda text, folder: rewritten(text, found), change=not asked.check)
    if not asked.check:
        for machine in found:
            if machine.of("scale"):
                draw_scale(machine, ROOT / "docs" / figure_path(machine))
        draw_figures(found, ROOT / "docs" / FOLDER)
    return report_stale(stale, ROOT, "make tables" if asked.check else None)


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
