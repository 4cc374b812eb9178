"""What a claim of the paper is, and the words in which it is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from score_rl.paper.evidence.records import Evidence
from score_rl.report.statistics import Estimate, overlap

HOLDS, FAILS, PART, OPEN = "holds", "does not hold", "in part", "not enough data yet"


class Verdict(NamedTuple):
    word: str
    because: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Claim:
    title: str
    rule: str
    judge: Callable[[Evidence], Verdict]


def one_word(answers: Sequence[float]) -> str:
    """One word for several answers: each is 1 for yes, 0 for no, and between them for an answer that only leans."""
    if not answers:
        return OPEN
    if all(answer == 1 for answer in answers):
        return HOLDS
    return FAILS if all(answer == 0 for answer in answers) else PART


def below(one: Estimate, other: Estimate) -> bool:
    """Whether the whole interval of the one is below the whole interval of the other."""
    return overlap(one, other) is False and one.value < other.value
