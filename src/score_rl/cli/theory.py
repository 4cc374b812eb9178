"""`score theory`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.terminal import OUT, subcommand
from score_rl.console import say


@dataclasses.dataclass(frozen=True)
class TheoryList:
    """List the studies: which statement of the paper each one checks."""


@dataclasses.dataclass(frozen=True)
class TheoryRun:
    """Check one statement of the paper: print the numbers, write the figures."""

    name: Annotated[str, tyro.conf.Positional]
    """A study's name, or all."""
    out: Path = Path("theory")
    """Folder for figures and numbers; each study gets its own inside."""
    seed: int = 0
    """Seed of the random problems and data."""


def theory_command(arguments: Sequence[str]) -> int:
    asked = subcommand("theory", {"list": TheoryList, "run": TheoryRun}, arguments)
    from score_rl.paper.theory.studies import STUDIES, run_study

    if isinstance(asked, TheoryList):
        table = Table("name", "in the paper", "what it shows")
        for study in STUDIES.values():
            table.add_row(study.name, escape(study.paper), escape(study.summary))
        OUT.print(table)
        return 0
    for name in STUDIES if asked.name == "all" else [asked.name]:
        with OUT.status(f"Running {escape(name)} ..."):
            result = run_study(name, asked.out / name, seed=asked.seed)
        table = Table(*result.columns, title=escape(result.title), title_justify="left")
        for row in result.rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        OUT.print(table)
        for verdict in result.verdicts:
            say(OUT, verdict)
        for file in result.files:
            OUT.print(str(file), soft_wrap=True)
    return 0
