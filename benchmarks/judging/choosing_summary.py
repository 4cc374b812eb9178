"""What the measurement of choices says: shares of what can be gained, by rule and by set."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from score_rl.store.judgements import DOUBTFUL

DEFAULT = "score alpha=2.5 beta=0.2 bc_decay=0.98"
NAMED = "score alpha=0.3 beta=0.2 bc_decay=1"
CLONING = "bc"
RUINOUS = -1.0
NOTHING_TO_CHOOSE = 0.05  # of the behaviour's absolute return

Stored = dict[str, Any]
Rule = Callable[[Stored], float]


def share(stored: Stored, value: float) -> float:
    """Of a return: 0 is the behaviour, 1 the best policy."""
    return (value - stored["behaviour"]) / max(_gain(stored), _counts(stored))


def shares(stored: Stored) -> dict[str, list[float]]:
    """By variant, the share of each seed."""
    found: dict[str, list[float]] = {}
    for row in stored["policies"]:
        found.setdefault(row["variant"], []).append(share(stored, row["return"]))
    return found


def has_a_choice(stored: Stored) -> bool:
    """Whether the best policy gains something that counts."""
    return _gain(stored) >= _counts(stored)


def _gain(stored: Stored) -> float:
    return float(max(row["return"] for row in stored["policies"]) - stored["behaviour"])


def _counts(stored: Stored) -> float:
    return max(NOTHING_TO_CHOOSE * abs(float(stored["behaviour"])), 1e-9)


def safest(stored: Sequence[Stored], finding: Sequence[str]) -> str:
    """The setting of SCORE in the grid whose least share over the sets for finding is highest."""
    mine = [shares(each) for each in stored if each["set"] in finding]
    names = [name for name in (mine[0] if mine else {}) if name.startswith("score") and "critic_norm" not in name]
    return max(names, key=lambda name: min(min(each[name]) for each in mine), default=NAMED)


def of_run(stored: Stored, run: str | None) -> float:
    """The share of one policy; 0, the behaviour's, where none is recommended."""
    if run is None:
        return 0.0
    return share(stored, next(row["return"] for row in stored["policies"] if row["run"] == run))


def first_by(key: Callable[[Any], tuple[bool, float]]) -> Rule:
    return lambda stored: of_run(stored, min(stored["policies"], key=key)["run"])


def always(name: str) -> Rule:
    return lambda stored: float(np.mean(shares(stored).get(name, [np.nan])))


def rules(safe: str) -> dict[str, Rule]:
    """Ways to choose, each with the share that it gets."""
    return {
        "score select": lambda stored: of_run(stored, stored["choice"]["run"]),
        "always SCORE's default": always(DEFAULT),
        f"always {NAMED}": always(NAMED),
        f"always {safe}": always(safe),
        "always behaviour cloning": always(CLONING),
        "the highest estimate, no verdicts": first_by(lambda row: (False, -_known(row["value"], -1e9))),
        "the highest estimate that is trusted": first_by(
            lambda row: (row["verdict"] == DOUBTFUL, -_known(row["value"], -1e9))
        ),
        "the least distance from the data": first_by(lambda row: (False, _known(row["moved"], 1e9))),
        "the oracle": lambda stored: 1.0,
    }


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def summary(stored: Sequence[Stored], finding: Sequence[str], later: Sequence[str] = ()) -> str:
    """Tables in Markdown: rules, settings that are never ruinous, verdicts against the truth, normalised critics."""
    if not stored:
        return "nothing is stored"
    order = in_order(stored, finding)
    return "\n\n".join(
        [rules_table(order, finding, later), settings_table(order), choices_table(order), _normalised(order)]
    )


def in_order(stored: Sequence[Stored], finding: Sequence[str]) -> list[Stored]:
    """Sets for finding a setting first."""
    return sorted(stored, key=lambda each: (each["set"] not in finding, each["set"]))


def rules_table(order: Sequence[Stored], finding: Sequence[str], later: Sequence[str] = ()) -> str:
    """What each way to choose gets on each set, and its mean regret over those held aside: over all of them, and over
    those that were named later than the rule was changed."""
    safe = safest(order, finding)
    aside = [each for each in order if each["set"] not in finding and has_a_choice(each)]
    new = [each for each in aside if each["set"] in later]
    sets = " | ".join(each["set"].removeprefix("replica:") for each in order)
    lines = [f"| rule | {sets} | mean regret, held aside | of those named later |"]
    lines.append("|---" * (len(order) + 3) + "|")
    for name, rule in rules(safe).items():
        values = [*(rule(each) for each in order), _regret(rule, aside), _regret(rule, new)]
        lines.append(f"| {name} | " + " | ".join(map(_shown, values)) + " |")
    return "\n".join(lines)


def _regret(rule: Rule, sets: Sequence[Stored]) -> float:
    return float(np.mean([1 - rule(each) for each in sets])) if sets else float("nan")


def _shown(value: float | np.floating[Any]) -> str:
    """A share; a dash where a set was not asked."""
    return "–" if np.isnan(value) else f"{value:.2f}"


def settings_table(stored: Sequence[Stored]) -> str:
    """How many settings of SCORE are ruinous, and which never are."""
    tables = [shares(each) for each in stored]
    names = [name for name in tables[0] if name.startswith("score") and "critic_norm" not in name]
    least = {name: min(min(table[name]) for table in tables) for name in names}
    never = sorted((name for name in names if least[name] > RUINOUS), key=lambda name: -least[name])
    lines = [f"Never ruinous on these {len(tables)} sets: {len(never)} of {len(names)} settings of SCORE."]
    lines += ["", "| setting | " + " | ".join(each["set"] for each in stored) + " | least |"]
    lines.append("|---" * (len(tables) + 2) + "|")
    for name in dict.fromkeys([*never[:8], NAMED, DEFAULT]):
        worst = " | ".join(f"{min(table[name]):.2f}" for table in tables)
        lines.append(f"| {name} | {worst} | {least[name]:.2f} |")
    return "\n".join(lines)


def choices_table(stored: Sequence[Stored]) -> str:
    """How often each verdict stands at a policy that is truly above the behaviour, and at a ruinous one."""
    counts: dict[str, list[float]] = {}
    for each in stored:
        for row in each["policies"]:
            counts.setdefault(row["verdict"], []).append(of_run(each, row["run"]))
    lines = ["| verdict | policies | truly above the behaviour | ruinous |", "|---|---|---|---|"]
    for verdict, found in sorted(counts.items()):
        above, ruined = sum(one > 0 for one in found), sum(one < RUINOUS for one in found)
        lines.append(f"| {verdict} | {len(found)} | {above} | {ruined} |")
    return "\n".join(lines)


def _normalised(stored: Sequence[Stored]) -> str:
    """Normalised critics against plain ones, at the same settings, where they were tried."""
    tables = {each["set"]: shares(each) for each in stored}
    tables = {name: table for name, table in tables.items() if any(key.endswith("critic_norm=1") for key in table)}
    if not tables:
        return "Normalised critics were not tried."
    lines = ["| setting | " + " | ".join(f"{name}: plain, normalised" for name in tables) + " |"]
    lines.append("|---" * (len(tables) + 1) + "|")
    for name in (name for name in next(iter(tables.values())) if name.endswith("critic_norm=1")):
        plain = name.removesuffix(" critic_norm=1")
        cells = " | ".join(f"{np.mean(table[plain]):.2f}, {np.mean(table[name]):.2f}" for table in tables.values())
        lines.append(f"| {plain} | {cells} |")
    return "\n".join(lines)
