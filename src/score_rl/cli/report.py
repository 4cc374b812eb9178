"""`score report`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape

from score_rl.cli.options import parse
from score_rl.cli.terminal import OUT
from score_rl.errors import InputError


@dataclasses.dataclass(frozen=True)
class ReportArguments:
    """Make a page of stored runs: scores beside the paper's, curves, aggregates, run time, provenance.

    Nothing is trained. The page opens in any browser, without a network; beside it lie its figures (SVG, PDF),
    its tables (CSV, LaTeX) and the files it was made of. Runs that still train are shown as they stand: call it
    again for news. Runs that failed, diverged or are missing are listed, and are in no mean.

    Examples:
      score report runs --out page
      score report runs/hopper runs/walker2d --out page
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that training wrote, or folders above them."""
    out: Path
    """Folder of the page; new, empty, or an earlier report, which is replaced."""


def report_command(arguments: Sequence[str]) -> int:
    asked = parse(ReportArguments, arguments, "score report")
    if not asked.runs:
        raise InputError("score report needs at least one folder of runs, such as: score report runs --out page.")
    with OUT.status("Reading the runs ...") as status:
        from score_rl.report.page import write_report

        page = write_report(asked.runs, asked.out, say=lambda message: status.update(escape(message)))
    OUT.print(f"Page: {page}", soft_wrap=True, markup=False)
    return 0
