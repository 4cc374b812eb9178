"""Questions to a stored sweep or ablation, each answered yes, no or open by a written rule.

    higher, lower   one interval lies wholly above or below the other; open if they overlap
    alike           all intervals overlap, each with each; no if two do not

Scores are compared by the mean of each run's last six evaluations. The last policies stand beside and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from score_rl.paper.evidence.cells import interval
from score_rl.paper.evidence.sweep_claims import Line, alike_in, enough, unstable
from score_rl.paper.evidence.verdicts import PART, below, one_word
from score_rl.report.statistics import Estimate

YES, NO, NEITHER = 1.0, 0.0, 0.5
WORDS = {YES: "yes", NO: "no", NEITHER: "open"}
UNDECIDED, IN_PART = "cannot be told", "holds in part"
SAME = 0.1  # values of Q and u within this share of each other are alike
MEDIUM, REPLAY = "replica:hopper-medium", "replica:hopper-medium-replay"
WALKER = "replica:walker2d-medium-replay"
EVERY = (MEDIUM, REPLAY, WALKER)


class Answer(NamedTuple):
    """To a question, on one data set."""

    dataset: str
    answer: float
    numbers: str
    counts: bool = True  # what the paper does not show is answered too, and decides nothing


Ask = Callable[[str, Mapping[str, Line]], Answer | None]


@dataclass(frozen=True)
class Question:
    text: str
    ask: Ask
    datasets: tuple[str, ...] = (MEDIUM, REPLAY)

    @property
    def asked(self) -> str:
        """With a capital where it begins with a word, and not with a symbol such as β."""
        first, rest = self.text[0], self.text[1:]
        return f"{first.upper() if first.isascii() else first}{rest}?"


def word_of(answers: Sequence[float]) -> str:
    """One word for all answers of a finding."""
    if answers and all(answer == NEITHER for answer in answers):
        return UNDECIDED
    word = one_word(answers)
    return IN_PART if word == PART else word


def compared(one: Estimate, other: Estimate) -> float:
    """Whether the one is higher."""
    return YES if below(other, one) else NO if below(one, other) else NEITHER


def short(dataset: str) -> str:
    return dataset.partition(":")[2]


def fine(value: Estimate) -> str:
    """Two digits where the first one means nothing, as of u."""
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"


def beside(*lines: Line) -> str:
    *first, last = [f"{line.last.value:.1f}" for line in lines if line.last is not None]
    return f"last policies {', '.join(first)} and {last}"


def higher(one: str, other: str, counted: Sequence[str] = EVERY) -> Ask:
    """Whether the one variant's score is higher than the other's."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        a, b = lines[one], lines[other]
        if a.late is None or b.late is None:
            return None
        numbers = f"{interval(a.late)} against {interval(b.late)} ({beside(a, b)})"
        return Answer(dataset, compared(a.late, b.late), numbers, dataset in counted)

    return ask


def higher_value(what: str, one: str, other: str, counted: Sequence[str] = EVERY) -> Ask:
    """The same of what stands at the end: the Q target or u."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        a, b = getattr(lines[one], what), getattr(lines[other], what)
        if a is None or b is None:
            return None
        said = fine if what == "uncertainty" else interval
        return Answer(dataset, compared(a, b), f"{said(a)} against {said(b)}", dataset in counted)

    return ask


def all_alike(*names: str) -> Ask:
    """Whether the scores of these variants are alike."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        mine = [lines[name] for name in names]
        scores = [line.late for line in mine if line.late is not None]
        if len(scores) < len(names):
            return None
        numbers = f"{', '.join(map(interval, scores))} ({beside(*mine)})"
        return Answer(dataset, float(alike_in(scores)), numbers)

    return ask


def same_values(*names: str) -> Ask:
    """Whether Q and u of these variants end within a tenth of each other."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        q = [value.value for name in names if (value := lines[name].target) is not None]
        u = [value.value for name in names if (value := lines[name].uncertainty) is not None]
        if len(q) < len(names) or len(u) < len(names):
            return None
        same = all(max(values) - min(values) <= SAME * max(map(abs, values)) for values in (q, u))
        numbers = f"Q {', '.join(f'{value:.1f}' for value in q)}; u {', '.join(f'{value:.3f}' for value in u)}"
        return Answer(dataset, float(same), numbers)

    return ask


def early_end(name: str) -> Ask:
    """Whether a variant's score does not rise any more in the second half of its evaluations."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        line = lines[name]
        if line.late is None or line.early is None:
            return None
        rising = compared(line.late, line.early) == YES
        return Answer(dataset, NO if rising else YES, f"{interval(line.early)}, then {interval(line.late)}")

    return ask


def too_much(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
    """Whether β = 2 drives Q below zero and the score down."""
    much, usual = lines["β = 2.0"], lines["β = 0.2"]
    if much.late is None or usual.late is None or much.target is None:
        return None
    answer = float(below(much.late, usual.late) and much.target.value < 0)
    numbers = (
        f"{interval(much.late)} against {interval(usual.late)} ({beside(much, usual)}), Q {much.target.value:,.0f}"
    )
    return Answer(dataset, answer, numbers)


def critics(*, unsteady: bool) -> Ask:
    """Whether three critics are unstable, or whether five are enough."""

    def ask(dataset: str, lines: Mapping[str, Line]) -> Answer | None:
        mine = [lines[f"M = {number}"] for number in (3, 5, 7, 9)]
        scores = [line.late for line in mine if line.late is not None]
        if len(scores) < len(mine):
            return None
        three, five, *more = scores
        numbers = f"{', '.join(map(interval, scores))} ({beside(*mine)})"
        answer = unstable(three, five, more) if unsteady else enough(five, more)
        return Answer(dataset, float(answer), numbers if unsteady else "the same numbers")

    return ask
