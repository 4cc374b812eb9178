"""What the stored experiments say of the paper's findings, made from their numbers by written rules.

A finding is a few questions, each answered on one or more data sets (`sweep_questions.py`). It holds if all answers are
yes, and does not if all are no; it cannot be told if all are open, and holds in part otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from score_rl.paper.evidence.cells import link
from score_rl.paper.evidence.other_findings import OTHERS
from score_rl.paper.evidence.records import Evidence
from score_rl.paper.evidence.sweep_claims import Sweep, sweep
from score_rl.paper.evidence.sweep_questions import (
    MEDIUM,
    REPLAY,
    WALKER,
    WORDS,
    Question,
    all_alike,
    critics,
    early_end,
    higher,
    higher_value,
    same_values,
    short,
    too_much,
    word_of,
)


@dataclass(frozen=True)
class Finding:
    """What was asked of one experiment, and a remark made from its numbers."""

    experiment: str
    questions: tuple[Question, ...]
    remark: Callable[[Sweep], str] = lambda found: ""


def peaks(found: Sweep) -> str:
    """How high u went on the way, with cloning and without."""
    parts = [
        f"{lines['without BC'].peak:.2f} and {lines['SCORE'].peak:.2f} on {short(dataset)}"
        for dataset, lines in found.items()
        if lines["without BC"].peak is not None and lines["SCORE"].peak is not None
    ]
    return f"At its highest u is, without cloning and with it, {', '.join(parts)}."


def first_half(found: Sweep) -> str:
    """Who led on medium-replay before."""
    lines = found[REPLAY]
    early = {name: line.early.value for name, line in lines.items() if line.early is not None}
    listed = ", ".join(f"{name} {value:.1f}" for name, value in early.items())
    return f"In the evaluations before, the scores on {short(REPLAY)} were: {listed}."


def lowest(found: Sweep) -> str:
    """Which variant is lowest on medium, and how nearly its interval misses another."""
    scores = {name: line.late for name, line in found.get(MEDIUM, {}).items() if line.late is not None}
    if len(scores) < 2:
        return ""
    first, second, *_ = sorted(scores, key=lambda name: scores[name].value)
    common = min(score.high for score in scores.values()) - max(score.low for score in scores.values())
    said = f"the intervals have {common:.1f} in common" if common >= 0 else "the intervals do not all overlap"
    return (
        f"On {short(MEDIUM)} {first} is the lowest, with {scores[first].value:.1f} where the next has "
        f"{scores[second].value:.1f}, and {said}."
    )


ALPHAS = ("α = 1", "α = 2", "α = 2.5", "α = 3", "α = 4")
PENALTIES = ("u(s, a) only", "u(s', a') only", "both (0.1)", "both (0.2)")
SHOWN_BY_THE_PAPER = (REPLAY, WALKER)  # in its figure 8

FINDINGS = (
    Finding(
        "ablation-bc",
        (
            Question("the uncertainty u is higher without cloning", higher_value("uncertainty", "without BC", "SCORE")),
            Question("the score is higher with cloning", higher("SCORE", "without BC")),
        ),
        peaks,
    ),
    Finding(
        "ablation-constraint",
        (
            Question("the score is higher with BC than with Fix", higher("BC", "Fix")),
            Question("the score is higher with BC than with MMD", higher("BC", "MMD")),
            Question("Fix converges early on data of one policy", early_end("Fix"), (MEDIUM,)),
            Question("MMD converges early on data of one policy", early_end("MMD"), (MEDIUM,)),
        ),
        first_half,
    ),
    Finding(
        "ablation-pessimism",
        (
            Question(
                "the score is higher with the penalty",
                higher("SCORE", "without pessimism", SHOWN_BY_THE_PAPER),
                (*SHOWN_BY_THE_PAPER, MEDIUM),
            ),
            Question(
                "Q is higher without it",
                higher_value("target", "without pessimism", "SCORE", SHOWN_BY_THE_PAPER),
                (*SHOWN_BY_THE_PAPER, MEDIUM),
            ),
        ),
        lambda found: f"The paper shows no {short(MEDIUM)} here, so it decides nothing.",
    ),
    Finding(
        "ablation-uncertainty",
        (
            Question("the score is higher with the ensemble than with dropout", higher("Ensemble", "Dropout")),
            Question("the score is higher with the ensemble than with min-Q", higher("Ensemble", "Min Q")),
        ),
    ),
    Finding(
        "ablation-penalty",
        (
            Question("the scores of all four are alike", all_alike(*PENALTIES)),
            Question("where the strength is the same, Q and u end alike", same_values(*PENALTIES[:3])),
        ),
        lambda found: "The order is u(s, a) only, u(s', a') only, both at 0.1, both at 0.2.",
    ),
    Finding(
        "sweep-beta",
        (
            Question("β = 2 is over-pessimistic", too_much),
            Question("0.1, 0.2 and 0.5 work alike", all_alike("β = 0.1", "β = 0.2", "β = 0.5")),
        ),
    ),
    Finding(
        "sweep-decay",
        (
            Question("0.98 ends higher than 0.96", higher("γ_bc = 0.98", "γ_bc = 0.96"), (MEDIUM,)),
            Question("0.98 ends higher than 1.0", higher("γ_bc = 0.98", "γ_bc = 1.0"), (MEDIUM, REPLAY)),
            Question("0.96 and 0.98 work alike", all_alike("γ_bc = 0.96", "γ_bc = 0.98"), (REPLAY,)),
            Question("1.0 ends lower than 0.96", higher("γ_bc = 0.96", "γ_bc = 1.0"), (REPLAY,)),
        ),
        lambda found: (
            "Cloning that does not fade is 1.0. Whether 0.96 collapses late shows only in "
            "[longer trainings](results.md#what-disagrees)."
        ),
    ),
    Finding(
        "sweep-critics",
        (
            Question("three critics are unstable", critics(unsteady=True)),
            Question("five are enough", critics(unsteady=False)),
        ),
        lambda found: "The order is M = 3, 5, 7, 9.",
    ),
    Finding(
        "sweep-alpha",
        (Question("the scores of all five values are alike", all_alike(*ALPHAS)),),
        lambda found: (
            f"{lowest(found)} The order is α = 1, 2, 2.5, 3, 4. The paper's text names only 2.5: the other values are "
            "this project's, so they may not be those of its figure 14."
        ),
    ),
)  # fmt: skip


def told(finding: Finding, evidence: Evidence, base: Path) -> str:
    """A finding as an item of a list, with its questions below it."""
    found = sweep(evidence, finding.experiment)[0]
    asked = [
        (question, [answer for dataset in question.datasets if dataset in found
                    if (answer := question.ask(dataset, found[dataset])) is not None])
        for question in finding.questions
    ]  # fmt: skip
    word = word_of([answer.answer for _, answers in asked for answer in answers if answer.counts])
    lines = [f"{opening(finding.experiment, evidence, base)}: **{word}**."]
    for question, answers in asked:
        lines.append(f"    - {question.asked}")
        lines += [f"        - {short(a.dataset)}: *{WORDS[a.answer]}*, {a.numbers}." for a in answers]
    remark = finding.remark(found)
    return "\n".join([*lines, *([f"    - {remark}"] if remark else [])])


def opening(experiment: str, evidence: Evidence, base: Path) -> str:
    return f"- **{experiment}** ({link('stored', [evidence.experiments[experiment][0].parent], base)})"


def findings(evidence: Evidence, base: Path) -> str:
    """What every stored experiment says, as a list."""
    said = [told(finding, evidence, base) for finding in FINDINGS if finding.experiment in evidence.experiments]
    for name, tell in OTHERS.items():
        if name in evidence.experiments:
            said.append(f"{opening(name, evidence, base)}: {tell(evidence.experiments[name][1])}")
    return "\n".join(said) or "Nothing is stored yet."
