"""The rule by which a policy is chosen. docs/selecting.md has it in words; it was written before it was measured.

1. A variant is worth what its worst seed gains over the behaviour at the least: by the lower end of the intervals of
   the pessimistic Q and of the model.
2. It is not to be trusted, or worse, where one of its seeds is; and better where each of its seeds is.
3. Of those that are better, the one that is worth most is chosen, and of its seeds the one that is.
4. Where none is better, the behaviour stays: behaviour cloning is recommended if it can be trusted, else no policy.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from score_rl.errors import count
from score_rl.judge.selection.grid import REFERENCE
from score_rl.judge.verdict import CALLED, middle_value, rank_value
from score_rl.store.judgements import BETTER, DOUBTFUL, SAME, WORSE, DataJudgement, Estimate, PolicyJudgement, rank_of
from score_rl.store.records import RunRecord
from score_rl.store.selections import Choice, Ranked, Variant

FEW = 20  # held-out trajectories

Judged = Mapping[str, PolicyJudgement]


def ranked(variants: Sequence[Variant], records: Sequence[RunRecord], judged: Judged, steps: int) -> list[Ranked]:
    """Every variant with all its seeds, the best first."""
    runs_of: dict[str, list[str]] = {}
    for record in records:
        fitting = [variant for variant in variants if is_of(record, variant)]
        if fitting and record.id in judged:
            closest = max(fitting, key=lambda variant: len(variant.settings))  # one may say more than another
            runs_of.setdefault(closest.label, []).append(record.id)
    table = []
    for variant in variants:
        if mine := runs_of.get(variant.label):
            table.append(_ranked(variant, sorted(mine, key=lambda run: -rank_of(judged[run])), judged, steps))
    return in_order(table)


def in_order(table: Sequence[Ranked]) -> list[Ranked]:
    """Who is not to be trusted comes last; the others by what they are worth."""
    return sorted(table, key=lambda one: (one.verdict == DOUBTFUL, math.inf if one.value is None else -one.value))


def is_of(record: RunRecord, variant: Variant) -> bool:
    """Whether a run is one of the variant's seeds."""
    return record.algorithm == variant.algorithm and all(
        record.config[name] == value for name, value in variant.settings.items()
    )


def _ranked(variant: Variant, runs: Sequence[str], judged: Judged, steps: int) -> Ranked:
    verdicts = [judged[run].verdict for run in runs]
    together = next((bad for bad in (DOUBTFUL, WORSE) if bad in verdicts), SAME)
    together = BETTER if set(verdicts) == {BETTER} else together
    values = [judged[run].rank_value for run in runs]
    known = [value for value in values if value is not None]
    reasons = [reason for run in runs if judged[run].verdict == together for reason in judged[run].reasons]
    return Ranked(
        variant=variant,
        verdict=together,
        value=min(known) if len(known) == len(values) else None,
        runs=tuple(runs),
        reasons=tuple(dict.fromkeys(reasons)),
        steps=steps,
    )


def recommended(final: Sequence[Ranked]) -> Ranked | None:
    """Rules 3 and 4; None where no policy is recommended."""
    better = [one for one in in_order(final) if one.verdict == BETTER]
    reference = [one for one in final if one.variant.algorithm == REFERENCE and one.verdict == SAME]
    return next(iter([*better, *reference]), None)


def choose(final: Sequence[Ranked], earlier: Sequence[Ranked], data: DataJudgement, folder: str) -> Choice:
    """The choice among the variants trained to the end; `earlier` ones left before, and are shown below them."""
    order = (*in_order(final), *in_order(earlier))
    first = recommended(final)
    if first is not None and first.verdict == BETTER:
        return Choice(folder, first.runs[0], True, _why(first, data), _sure(first, order[: len(final)], data), order)
    none = f"Of {len(final)} variants trained to the end none is better than the behaviour by the judge's rules"
    stays = (
        f"{none} ({_counted(final)}). The behaviour that recorded the data earned {data.recorded:.4g} per step: keep it"
    )
    if first is not None:
        why = f"{stays}, or use behaviour cloning, which imitates it and is not distinguishable from it."
        return Choice(folder, first.runs[0], False, why, _not_sure(data), order)
    return Choice(None, None, False, f"{stays}. No policy is recommended.", _not_sure(data), order)


def _why(first: Ranked, data: DataJudgement) -> str:
    """What the judge says of the chosen policy."""
    said: Any = data.runs[first.runs[0]].estimates
    gains = " and ".join(f"{_gain(said[kind])} by {called}" for kind, called in CALLED.items())
    return (
        f"It earns more per step than the behaviour, which earned {data.recorded:.4g}: {gains}. Of all variants that "
        f"are better than the behaviour in each of their seeds, its worst seed gains most for sure: {first.value:+.3g}."
    )


def _gain(said: Estimate) -> str:
    return f"{said.difference:+.3g} ({said.difference_low:+.3g} to {said.difference_high:+.3g})"


def _sure(first: Ranked, final: Sequence[Ranked], data: DataJudgement) -> str:
    """How far the data tell it from the behaviour, and from the other variants."""
    low = rank_value(data.runs[first.runs[0]].estimates)
    others = [one for one in final if one is not first and one.verdict != DOUBTFUL and _middle(one, data) >= low]
    seeds = f"All {len(first.runs)} seeds are" if len(first.runs) > 1 else "Its only seed is"
    sentences = [f"{seeds} better than the behaviour by each estimate, with intervals that leave out 0."]
    if others:
        names = ", ".join(one.variant.label for one in others[:3]) + (", ..." if len(others) > 3 else "")
        number = count(len(others), "other")
        sentences.append(f"The data do not tell it from {number} ({names}): any of them may be the best.")
    else:
        sentences.append("No other variant comes within its interval.")
    return " ".join([*sentences, _judged_on(data)])


def _middle(one: Ranked, data: DataJudgement) -> float:
    """What a variant's worst seed gains by the estimates themselves."""
    return min(middle_value(data.runs[run].estimates) if data.runs[run].estimates else -math.inf for run in one.runs)


def _not_sure(data: DataJudgement) -> str:
    return f"More data, or a longer budget, may tell more. {_judged_on(data)}"


def _judged_on(data: DataJudgement) -> str:
    where = f"{data.trajectories:,} held-out trajectories ({data.rows:,} rows)"
    few = " Intervals over so few trajectories mean little." if data.trajectories < FEW else ""
    return f"Judged on {where}.{few} The best of many estimates is flattered: expect less than it says."


def _counted(final: Sequence[Ranked]) -> str:
    counts = {verdict: sum(one.verdict == verdict for one in final) for verdict in (SAME, WORSE, DOUBTFUL)}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
