"""The verdict in words. docs/judging.md has the same rules; they were written before anything was measured by them."""

import dataclasses
import itertools
from collections.abc import Mapping

from score_rl.store.judgements import (
    BETTER,
    DOUBTFUL,
    FITTED,
    MODEL,
    PESSIMISTIC,
    SAME,
    WORSE,
    Distance,
    Estimate,
)

CALLED = {FITTED: "fitted Q", MODEL: "the model"}  # in sentences
UNKNOWN = 1 / 3  # of the states: more unknown actions than that
STRAYED = 1 / 4  # of imagined steps, beyond what the behaviour strays
SATURATED = 1 / 2  # of the actions at a bound, and twice as many as in the data
SEEDS_APART = 1 / 2  # of a half-range, on average over states and actions


@dataclasses.dataclass(frozen=True)
class Asked:
    """All that a verdict is made of."""

    estimates: Mapping[str, Estimate]
    distance: Distance
    strayed: float
    strayed_behaviour: float
    seeds_apart: float | None
    training_says: str | None = None  # that values are impossible, for instance


def reasons_for_doubt(asked: Asked) -> list[str]:
    """Why a policy is not to be trusted; each a sentence."""
    distance, found = asked.distance, []
    if asked.training_says:
        found.append(asked.training_says)
    if distance.unknown > UNKNOWN:
        found.append(f"In {distance.unknown:.0%} of the states the data do not tell what its action does.")
    if asked.strayed > STRAYED + asked.strayed_behaviour:
        found.append(f"{asked.strayed:.0%} of the steps imagined with it lie outside of everything recorded.")
    if distance.saturated > max(SATURATED, 2 * distance.saturated_in_data):
        share, usual = distance.saturated, distance.saturated_in_data
        found.append(f"{share:.0%} of its actions are at their bounds, {usual:.0%} in the data.")
    if asked.seeds_apart is not None and asked.seeds_apart > SEEDS_APART:
        found.append(f"Its seeds learned other policies: their actions lie {asked.seeds_apart:.2f} half-ranges apart.")
    fitted, model = asked.estimates[FITTED], asked.estimates[MODEL]
    if fitted.sign * model.sign < 0:
        words = ("better", "worse") if fitted.sign > 0 else ("worse", "better")
        found.append(f"Fitted Q calls it {words[0]} than the behaviour, the model calls it {words[1]}.")
    return found


def verdict(asked: Asked) -> tuple[str, tuple[str, ...]]:
    """One of four, and why."""
    reasons = reasons_for_doubt(asked)
    if reasons:
        return DOUBTFUL, tuple(reasons)
    fitted, pessimistic, model = (asked.estimates[name] for name in (FITTED, PESSIMISTIC, MODEL))
    if fitted.sign > 0 and model.sign > 0 and pessimistic.difference > 0:
        return BETTER, ("Fitted Q and the model both put it above the behaviour, and so does the pessimistic Q.",)
    if fitted.sign + model.sign < 0:
        who = [name for name, one in ((FITTED, fitted), (MODEL, model)) if one.sign < 0]
        return WORSE, (f"It is below the behaviour by {' and '.join(who)}, and above it by neither.",)
    return SAME, ("Not every estimate puts it above the behaviour, and none below.",)


def rank_value(estimates: Mapping[str, Estimate]) -> float:
    """By which policies are ranked: what it gains per step at the least, by the lower ends of both intervals.

    The best of many estimates is the luckiest too. A lower end asks for a gain that is large and sure.
    """
    return min(estimates[PESSIMISTIC].difference_low, estimates[MODEL].difference_low)


def middle_value(estimates: Mapping[str, Estimate]) -> float:
    """The same by the estimates themselves."""
    return min(estimates[PESSIMISTIC].difference, estimates[MODEL].difference)


def agreement(estimates: Mapping[str, Mapping[str, Estimate]]) -> str:
    """How far fitted Q and the model agree about which of two policies is better, in words."""
    names = list(estimates)
    pairs = [
        (a[FITTED].value - b[FITTED].value) * (a[MODEL].value - b[MODEL].value)
        for a, b in itertools.combinations(estimates.values(), 2)
    ]
    signs = [estimates[name][FITTED].sign == estimates[name][MODEL].sign for name in names]
    alike = f"Fitted Q and the model say the same of {sum(signs)} of {len(signs)} policies against the behaviour"
    if not pairs:
        return f"{alike}."
    share = sum(pair > 0 for pair in pairs) / len(pairs)
    return f"{alike}, and put {share:.0%} of all pairs of policies into the same order."
