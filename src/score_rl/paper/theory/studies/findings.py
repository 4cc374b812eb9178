"""What a study is, what its function returns, and what comes out of running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def judged(holds: bool, words: str = "") -> str:
    """How a verdict says whether a statement holds. The tests look for what it says of one that does not."""
    return f"holds{words}" if holds else f"FAILS{words}"


@dataclass(frozen=True)
class Findings:
    """What a study's own function returns: the table, the verdicts, the numbers and the figures to save."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    verdicts: list[str]
    numbers: dict[str, Any]
    figures: dict[str, Any]


@dataclass(frozen=True)
class StudyResult:
    """A table to print, sentences that say what it shows, and the files written."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    verdicts: list[str]
    files: list[Path]
    numbers: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Study:
    """One study: its name, a sentence, the place in the paper, and the function that runs it."""

    name: str
    summary: str
    paper: str
    run: Callable[[int, bool], Findings]
