"""How stored runs were measured, and which of them stand for a method on one of the paper's data sets.

The paper's protocol: 1 M updates, 5 seeds, the last policy, 10 episodes. Whatever is shorter is shown with its length.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from score_rl.algorithms.registry import get_algorithm
from score_rl.report.grouping import group, tell_apart, unusual
from score_rl.report.published import (
    D4RL,
    FILE,
    PAPER_STEPS,
    RECOLLECTED,
    REPLICA,
    SEEDS,
    UNIFORM,
    data_kind,
    paper_dataset,
    paper_datasets,
)  # fmt: skip
from score_rl.report.results import SCORE, Group, RunResult

PAPER_EPISODES = 10
METHODS = ("score", "mopo", "morel", "bcq", "bear", "uwac", "cql", "td3-bc", "pbrl-prior", "pbrl")  # the paper's order
_NEAREST = (D4RL, RECOLLECTED, UNIFORM, REPLICA, FILE)  # to what the paper was measured on


@dataclasses.dataclass(frozen=True, order=True)
class Protocol:
    updates: int
    seeds: int  # that finished
    episodes: int
    each: int = 1  # updates that one step of the method stands for

    @property
    def shorter(self) -> bool:
        """Than the paper's, in any respect."""
        return bool(self.shortened())

    def shortened(self) -> dict[str, int]:
        """What is less than the paper's."""
        paper = {"updates": PAPER_STEPS, "seeds": SEEDS, "episodes": PAPER_EPISODES}
        return {name: mine for name, number in paper.items() if (mine := getattr(self, name)) < number}

    def __str__(self) -> str:
        return span([self])


def rounded(number: int) -> str:
    """1M, 300k, 300: short enough for a table of many columns."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{name}"
    return f"{number:,}"


def protocol_of(found: Group) -> Protocol:
    first = found.runs[0]
    each = get_algorithm(found.algorithm).counts_as
    episodes = first.request.get("eval_episodes") or PAPER_EPISODES
    return Protocol(first.steps * each, len(found.final(SCORE)), episodes, each)


def ordinary(run: RunResult) -> bool:
    """A result with its authors' settings, but for schedules; of SCORE, one common β and γ_bc on all data sets."""
    return not run.chooses_settings and not unusual(run, run.config)


def candidates(results: Iterable[RunResult]) -> dict[tuple[str, str], list[Group]]:
    """{(algorithm, the paper's data set): groups of runs of one protocol each, the closest to the paper's first}.

    Ablations and other physics are left out. Closest: any finished run at all, then most updates (beyond the paper's
    million nothing is gained), then most seeds, then the data nearest to D4RL's, then as `widest_first` has it.
    """
    known = [run for run in results if paper_dataset(run.dataset) and run.request.get("physics", "d4rl") == "d4rl"]
    known = widest_first(filter(ordinary, known))
    found: dict[tuple[str, str], list[Group]] = {}
    for each in group(tell_apart(known)):
        found.setdefault((each.algorithm, paper_dataset(each.dataset) or ""), []).append(each)
    methods, datasets = list(METHODS), paper_datasets()

    def in_the_papers_order(key: tuple[str, str]) -> tuple[int, str, int]:
        in_paper = key[0] in methods
        return methods.index(key[0]) if in_paper else len(methods), "" if in_paper else key[0], datasets.index(key[1])

    return {key: sorted(found[key], key=_closeness, reverse=True) for key in sorted(found, key=in_the_papers_order)}


def widest_first(results: Iterable[RunResult]) -> list[RunResult]:
    """By folder: first those with most data sets of their method, so that its cells were trained alike where they can
    be; of equals the first in the alphabet."""
    runs = list(results)
    held: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        held.setdefault((str(run.folder), run.algorithm), set()).add(run.dataset)
    return sorted(runs, key=lambda run: (-len(held[str(run.folder), run.algorithm]), str(run.folder)))


def _closeness(found: Group) -> tuple[bool, int, int, int, int]:
    protocol = protocol_of(found)
    nearness = -_NEAREST.index(data_kind(found.dataset))
    return (protocol.seeds > 0, min(protocol.updates, PAPER_STEPS), protocol.seeds, nearness, -protocol.updates)


def closest(results: Iterable[RunResult]) -> list[Group]:
    """One group for each method and data set of the paper: never a mixture of protocols."""
    return [groups[0] for groups in candidates(results).values()]


def chosen(results: Iterable[RunResult]) -> list[Group]:
    """SCORE's runs with settings that other seeds chose from a grid, as their records say.

    On each data set those of the protocol closest to the paper's; in the paper's order.
    """
    picked = [run for run in results if was_chosen(run) and run.algorithm == "score" and paper_dataset(run.dataset)]
    found: dict[str, Group] = {}
    for each in sorted(group(tell_apart(widest_first(picked))), key=_closeness, reverse=True):
        if protocol_of(each).seeds:
            found.setdefault(paper_dataset(each.dataset) or "", dataclasses.replace(each, settings={}))
    return [found[dataset] for dataset in paper_datasets() if dataset in found]


def was_chosen(run: RunResult) -> bool:
    return bool(run.request.get("chosen_by_seeds"))


def labelled(groups: Sequence[Group]) -> list[Group]:
    """The same groups; a method that was measured more briefly than the paper's says so in its name."""
    measured: dict[str, list[Protocol]] = {}
    for each in groups:
        if (protocol := protocol_of(each)).seeds:
            measured.setdefault(each.method, []).append(protocol)
    remarks = {method: span(mine) for method, mine in measured.items() if any(p.shorter for p in mine)}
    return [dataclasses.replace(each, remark=remarks.get(each.method, "")) for each in groups]


def span(protocols: Sequence[Protocol]) -> str:
    """200k × 2, or 200k to 1M × 2 to 5 where data sets differ; episodes where they are few; MOReL's in iterations."""
    steps = _between([p.updates // p.each for p in protocols])
    unit = " iterations" if any(p.each > 1 for p in protocols) else ""
    said = [steps + unit + " × " + _between([p.seeds for p in protocols])]
    if any("episodes" in p.shortened() for p in protocols):
        said.append(f"{_between([p.episodes for p in protocols])} episodes")
    return ", ".join(said)


def _between(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return rounded(low) if low == high else f"{rounded(low)} to {rounded(high)}"


def as_rows(groups: Sequence[Group]) -> list[Group]:
    """Under the paper's names of the data sets, but for those that would give a method two groups in one row."""
    names = {each.dataset: paper_dataset(each.dataset) or each.dataset for each in groups}
    rows: dict[tuple[str, str], int] = {}
    for each in groups:
        rows[names[each.dataset], each.method] = rows.get((names[each.dataset], each.method), 0) + 1
    crowded = {name for (name, _), number in rows.items() if number > 1}
    return [
        each if names[each.dataset] in crowded else dataclasses.replace(each, dataset=names[each.dataset])
        for each in groups
    ]
