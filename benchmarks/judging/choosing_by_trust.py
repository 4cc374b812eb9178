"""The rule of `score select` on the policies that the judge was measured on.

`trust.py` measures policies of several methods: their verdicts and true returns. Here the rule chooses among those of
the last age. Nothing is trained. Shares and regret are as in `choosing.py`. `trust_tables.py` puts the table into
docs/selecting.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from score_rl.judge.selection.choosing import recommended
from score_rl.store.judgements import BETTER, DOUBTFUL, SAME, WORSE
from score_rl.store.selections import Ranked, Variant

from .choosing_summary import has_a_choice, share
from .measures import judged_rank
from .policies import DEFAULT

CAREFUL = "score, alpha 0.1"
CLONING = "bc"

Stored = dict[str, Any]


def of_trust(result: Mapping[str, Any]) -> Stored:
    """A stored result of `trust.py` as `choosing_summary` reads it, with the rule's choice."""
    last = max(row["updates"] for row in result["policies"])
    rows = [row for row in result["policies"] if row["updates"] == last]
    table = [_ranked(name, [row for row in rows if row["contender"] == name]) for name in _names(rows)]
    first = recommended(table)
    policies = [
        {"run": row["name"], "variant": row["contender"], "return": row["score"], "moved": row["moved"]} for row in rows
    ]
    return {
        "set": result["data"]["name"],
        "behaviour": result["data"]["behaviour_score"],
        "policies": policies,
        "choice": {
            "run": None if first is None else first.runs[0],
            "better": first is not None and first.verdict == BETTER,
        },
    }


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["contender"] for row in rows))


def _ranked(name: str, rows: Sequence[Mapping[str, Any]]) -> Ranked:
    """A contender with all its seeds, by the rule of `score select`."""
    verdicts = [row["verdict"] for row in rows]
    together = next((bad for bad in (DOUBTFUL, WORSE, SAME) if bad in verdicts), BETTER)
    ranks = {row["name"]: judged_rank(row) for row in rows}
    order = sorted(ranks.items(), key=lambda item: math.inf if item[1] is None else -item[1])
    return Ranked(Variant(name), together, order[-1][1], tuple(run for run, _ in order))


def rules() -> dict[str, Callable[[Stored], float]]:
    """Ways to choose, each with the share that it gets on a set."""
    return {
        "the rule of `score select`": lambda each: _of_run(each, each["choice"]["run"]),
        "always SCORE's default": lambda each: _mean_of(each, DEFAULT),
        f"always {CAREFUL}": lambda each: _mean_of(each, CAREFUL),
        "always behaviour cloning": lambda each: _mean_of(each, CLONING),
        "the least distance from the data": lambda each: _of_run(
            each, min(each["policies"], key=lambda row: row["moved"])["run"]
        ),
        "the best of all": lambda each: max(share(each, row["return"]) for row in each["policies"]),
    }


def _of_run(each: Stored, run: str | None) -> float:
    return 0.0 if run is None else share(each, next(row["return"] for row in each["policies"] if row["run"] == run))


def _mean_of(each: Stored, name: str) -> float:
    return float(np.mean([share(each, row["return"]) for row in each["policies"] if row["variant"] == name]))


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """The share of each rule on each set; the mean regret over sets where something can be gained."""
    sets = [of_trust(result) for result in results]
    counted = [each for each in sets if has_a_choice(each)]
    lines = [
        "| rule | " + " | ".join(map(_short, sets)) + " | mean regret |",
        "|---" * (len(sets) + 2) + "|",
    ]
    for name, rule in rules().items():
        regret = np.mean([1 - rule(each) for each in counted]) if counted else float("nan")
        lines.append(f"| {name} | " + " | ".join(f"{rule(each):.2f}" for each in sets) + f" | {regret:.2f} |")
    left_out = ", ".join(_short(each) for each in sets if not has_a_choice(each)) or "none"
    return "\n".join([*lines, "", f"Nothing can be gained, so in no mean: {left_out}."])


def _short(each: Stored) -> str:
    return str(each["set"]).removeprefix("replica:").removesuffix("-v0").removesuffix("-v1")
