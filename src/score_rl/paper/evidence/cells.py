"""What stands in a cell: numbers, links to the files they come from, and Markdown around them."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from score_rl.paper.evidence.records import Result
from score_rl.report.published import SEEDS, Printed, printed
from score_rl.report.statistics import Estimate, agreement, mean_over_seeds

NOTHING = "–"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Markdown; the columns numbered in `right` are numbers."""
    rule = ["---:" if column in set(right) else "---" for column in range(len(headings))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, rule, *rows))


def link(text: str, files: Sequence[Path], base: Path) -> str:
    """The text as a link to its file; further files after it."""
    if not files:
        return text
    first, *more = (Path(os.path.relpath(file, base)).as_posix() for file in files)
    return f"[{text}]({first})" + "".join(f" [+]({file})" for file in more)


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values):.1f}" if len(values) > 1 else "")


def interval(estimate: Estimate) -> str:
    return f"{estimate.value:,.1f}" + (f" [{estimate.low:.1f}, {estimate.high:.1f}]" if estimate.has_interval else "")


def spaced(text: str) -> str:
    """1 M and 200 k, as the documents write them."""
    return re.sub(r"(\d)([Mk])\b", r"\1 \2", text)


# -- of one result ---------------------------------------------------------------------------------------------------


def length(result: Result) -> str:
    """1 M × 5: updates and seeds; in bold where that is less than the paper's."""
    text = spaced(str(result.protocol))
    return f"**{text}**" if result.protocol.shorter else text


def length_if_shorter(result: Result) -> str:
    return f" ({length(result)})" if result.protocol.shorter else ""


def in_fresh_episodes(result: Result, base: Path) -> str:
    return NOTHING if result.fresh is None else link(spread(result.fresh), result.files, base)


def paper_of(result: Result) -> Printed | None:
    return printed(result.algorithm, result.dataset)


def difference(result: Result) -> str:
    paper = paper_of(result)
    return NOTHING if paper is None else f"{np.mean(result.scores) - paper.mean:+.1f}"


def overlaps(result: Result) -> str:
    """Whether Student's 95 % intervals of both means overlap, and Welch's p where that hides a difference."""
    paper = paper_of(result)
    return NOTHING if paper is None else agreement(result.scores, *paper, SEEDS)


def late(result: Result) -> str:
    """The mean over seeds of their means of the last six evaluations, with Student's 95 % interval."""
    return interval(mean_over_seeds(np.array(result.late))) if result.late else NOTHING


# -- of several ------------------------------------------------------------------------------------------------------


def overall(results: Sequence[Result]) -> tuple[float, str]:
    """The mean of the means, and the same as text: ± the mean of the deviations."""
    mean = float(np.mean([np.mean(result.scores) for result in results]))
    return mean, f"{mean:.1f} ± {np.mean([np.std(result.scores) for result in results]):.1f}"
