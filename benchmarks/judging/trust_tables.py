"""Put what `trust.py` and `d3rlpy_parity.py` stored into docs/judging.md and docs/selecting.md.

python -m benchmarks.judging.trust_tables           rewrite them
python -m benchmarks.judging.trust_tables --check   exit code 1 where the document differs from what is stored
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from score_rl.paper.evidence.documents import refresh, report_stale, with_tables
from score_rl.store.judgements import BETTER, DOUBTFUL, FITTED, IMPORTANCE, MODEL, PESSIMISTIC, ROBUST, SAME, WORSE

from .choosing import FINDING, NAMED_LATER
from .choosing_by_trust import table as rule_table
from .choosing_summary import choices_table, in_order, rules_table, settings_table
from .grid_measures import grid_measures
from .measures import TOP, absolute_error, judged_rank, rank_correlation, regret, sharpe_ratio
from .policies import DEFAULT

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS, PICTURE = (
    (ROOT / "docs" / "judging.md", ROOT / "docs" / "selecting.md"),
    ROOT / "docs" / "figures" / "judging" / "trust.svg",
)
ESTIMATORS = (FITTED, PESSIMISTIC, MODEL, IMPORTANCE, ROBUST)
COLOURS = {BETTER: "#009e73", SAME: "#777777", WORSE: "#e69f00", DOUBTFUL: "#d55e00"}
MEASURES = (
    "rank correlation", "per step", "regret@1", "regret@5", "absolute error", "Sharpe@5", "picks below the behaviour",
)  # fmt: skip
MIDDLES = "judge, by the middles of its intervals"
DRAWS = 2_000  # of policies at random
ACROSS = 3  # data sets beside each other in the figure


@dataclasses.dataclass(frozen=True)
class Measured:
    """One data set's policies: truth, and by whom they are ranked."""

    name: str
    behaviour: float
    truth: np.ndarray  # scores
    per_step: np.ndarray | None
    ranked_by: Mapping[str, np.ndarray]  # higher is better
    default: int | None  # the place of SCORE as it comes
    policies: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Measured":
        policies = stored["policies"]
        ranked = {kind: [p["estimates"].get(kind, {}).get("value") for p in policies] for kind in ESTIMATORS}
        ranked["judge"] = [judged_rank(p) for p in policies]
        ranked[MIDDLES] = [judged_rank(p, "difference") for p in policies]
        ranked["least distance from the data"] = [None if p["moved"] is None else -p["moved"] for p in policies]
        ranked["highest Q"] = [p["own_value"] for p in policies]
        last = max(p["updates"] for p in policies)
        plain = [n for n, p in enumerate(policies) if (p["contender"], p["updates"]) == (DEFAULT, last)]
        steps = [p["per_step"] for p in policies]
        return cls(
            name=stored["data"]["name"],
            behaviour=stored["data"]["behaviour_score"],
            truth=np.array([p["score"] for p in policies]),
            per_step=None if None in steps else np.array(steps),
            ranked_by={name: _numbers(column) for name, column in ranked.items()},
            default=plain[0] if plain else None,
            policies=policies,
        )

    def regret_of_random(self, number: int) -> float:
        """The mean over choices."""
        rng, spread = np.random.default_rng(0), np.ptp(self.truth)
        draws = [rng.choice(self.truth, min(number, len(self.truth)), replace=False).max() for _ in range(DRAWS)]
        return float(np.mean((self.truth.max() - np.array(draws)) / spread))


def _numbers(column: Sequence[float | None]) -> np.ndarray:
    """What has no estimate comes last."""
    return np.array([-np.inf if value is None else value for value in column])


def stored_results(folder: Path = RESULTS / "judging") -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def estimators_table(found: Sequence[Measured]) -> str:
    """Means over the data sets."""
    lines = ["| ranked by | " + " | ".join(MEASURES) + " |", "|---" * (1 + len(MEASURES)) + "|"]
    for name in ("judge", MIDDLES, *ESTIMATORS, "least distance from the data", "highest Q"):
        columns = [(each, each.ranked_by[name]) for each in found]
        error = [absolute_error(v, e.per_step) for e, v in columns if name in ESTIMATORS and e.per_step is not None]
        below = sum(e.truth[int(np.argmax(v))] < e.behaviour for e, v in columns)
        cells = (
            _mean([rank_correlation(v, e.truth) for e, v in columns]),
            _mean([rank_correlation(v, e.per_step) for e, v in columns if e.per_step is not None]),
            _mean([regret(v, e.truth, 1) for e, v in columns]),
            _mean([regret(v, e.truth, TOP) for e, v in columns]),
            _mean(error),
            _mean([sharpe_ratio(v, e.truth, e.behaviour) for e, v in columns]),
            f"{below} of {len(found)}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    plain = [(e, e.truth[e.default]) for e in found if e.default is not None]
    lost = [(e.truth.max() - value) / np.ptp(e.truth) for e, value in plain]
    lines.append(
        f"| always the default | | | {_mean(lost)} | | | | {sum(v < e.behaviour for e, v in plain)} of {len(plain)} |"
    )
    lines.append(
        f"| random | | | {_mean([e.regret_of_random(1) for e in found])} | "
        f"{_mean([e.regret_of_random(TOP) for e in found])} | | | |"
    )
    best = sum(e.truth.max() < e.behaviour for e in found)
    lines.append(f"| oracle | 1.00 | | 0.00 | 0.00 | | | {best} of {len(found)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.2f}" if known else ""


def sets_table(found: Sequence[Measured]) -> str:
    """What the judge's first choice truly earns on each data set."""
    lines = ["| data | behaviour | best | default | judge's first | rank correlation: judge, fitted Q, model |"]
    lines.append("|---|---|---|---|---|---|")
    for each in found:
        pick = each.truth[int(np.argmax(each.ranked_by["judge"]))]
        default = "" if each.default is None else f"{each.truth[each.default]:.0f}"
        ranks = ", ".join(_mean([rank_correlation(each.ranked_by[n], each.truth)]) for n in ("judge", FITTED, MODEL))
        lines.append(
            f"| {each.name} | {each.behaviour:.0f} | {each.truth.max():.0f} | {default} | {pick:.0f} | {ranks} |"
        )
    return "\n".join(lines)


def verdicts_table(found: Sequence[Measured]) -> str:
    """How often a verdict was right, by what policies truly earn per episode."""
    lines = ["| verdict | truly above the behaviour | truly below |", "|---|---|---|"]
    said = [(p["verdict"], p["score"] > each.behaviour) for each in found for p in each.policies]
    for verdict in COLOURS:
        above = [better for words, better in said if words == verdict]
        lines.append(f"| {verdict} | {sum(above)} | {len(above) - sum(above)} |")
    return "\n".join(lines)


def parity_sentence() -> str:
    """Fitted Q beside d3rlpy's."""
    file = RESULTS / "judging-d3rlpy.json"
    if not file.exists():
        return "Not measured yet."
    stored = json.loads(file.read_text())
    truth = stored["with_truth"]
    return (
        f"{stored['about']}, {stored['updates']:,} updates each: our estimates correlate by\n"
        f"{stored['correlation']:.3f} with those of d3rlpy {stored['d3rlpy']} (ranks {stored['rank_correlation']:.2f})."
        f" The rank correlation with the true values is {truth['ours']:.2f}\nfor ours and {truth['d3rlpy']:.2f} for "
        "d3rlpy's. Times were not compared: other work kept the machine busy."
    )


def draw(found: Sequence[Measured], path: Path = PICTURE) -> None:
    """Truth against what fitted Q and the model say, coloured by verdict."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "score-rl"
    rows = 2 * -(-len(found) // ACROSS)  # two for each line of data sets
    figure = Figure(figsize=(2.5 * ACROSS, 1.9 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, ACROSS, squeeze=False)
    for place in range(rows // 2 * ACROSS):
        for row, kind in enumerate((FITTED, MODEL)):
            axis = grid[2 * (place // ACROSS) + row, place % ACROSS]
            if place >= len(found):
                axis.set_visible(False)
                continue
            each = found[place]
            for verdict, colour in COLOURS.items():
                mine = np.array([p["verdict"] == verdict for p in each.policies])
                axis.plot(each.truth[mine], each.ranked_by[kind][mine], "o", color=colour, markersize=4, label=verdict)
            axis.axvline(each.behaviour, color="#1a1b1c", linewidth=0.8, linestyle=(0, (4, 2)))
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=8)
            axis.locator_params(nbins=4)
            if row == 0:
                axis.set_title(each.name.removeprefix("replica:"), fontsize=9, loc="left", fontweight="bold")
            else:
                axis.set_xlabel("true score", fontsize=8.5)
            if place % ACROSS == 0:
                axis.set_ylabel(f"{kind}, per step", fontsize=8.5)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(COLOURS), fontsize=8.5, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _chosen() -> list[dict[str, Any]]:
    """What `choosing.py` measured of whole grids."""
    return in_order(stored_results(RESULTS / "choosing"), FINDING)


def tables(results: Sequence[Mapping[str, Any]]) -> dict[str, Callable[[], str]]:
    found = [Measured.of(result) for result in results]
    return {
        "rule": lambda: rule_table(results),
        "grid": lambda: rules_table(_chosen(), FINDING, NAMED_LATER),
        "settings": lambda: settings_table(_chosen()),
        "choices": lambda: choices_table(_chosen()),
        "ranks": lambda: grid_measures(_chosen()),
        "estimators": lambda: estimators_table(found),
        "sets": lambda: sets_table(found),
        "verdicts": lambda: verdicts_table(found),
        "parity": parity_sentence,
    }


@dataclasses.dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if the document differs from what is stored."""


def main(asked: Arguments) -> int:
    results = stored_results()
    stale = refresh(
        DOCUMENTS, lambda text, folder: with_tables(text, "judging", tables(results)), change=not asked.check
    )
    if not asked.check:
        draw([Measured.of(result) for result in results])
    return report_stale(stale, ROOT, "make tables" if asked.check else None)


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
