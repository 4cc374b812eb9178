"""The first screen of docs/performance.md: one line for each question, all of it from what is stored."""

from collections.abc import Mapping, Sequence
from typing import Any

from score_rl.algorithms.registry import get_algorithm

from . import floors
from .cells import rate, table
from .machines import Machine, trainings


def summary(found: Sequence[Machine], peers: Mapping[str, Any]) -> str:
    """A line for each question, with the section that has more, and SCORE on each machine."""
    timed = _with(found, "score")
    headings = [
        "SCORE, updates/s",
        "one run",
        "most, summed over runs",
        "one run beside PyTorch",
        "several beside PyTorch",
    ]
    rates = peers["jax"]["rates"]
    ours, theirs = rates["score-rl"], rates["Unifloral"]
    most = max(ours, key=int)
    lines = [
        f"Beside the fastest JAX code of others, TD3-BC on one {peers['device']}: "
        f"{ours[most] / theirs[most]:.1f}× its update "
        f"vmapped by hand over {most} runs, {ours[most] / theirs['1']:.0f}× as it ships, one run at a time "
        "([more](#beside-other-jax-code)).",
        f"Beside PyTorch, one run of SCORE: {_beside_pytorch(timed)}, by how it is written there "
        "([more](#score-beside-pytorch)).",
        f"Beside d3rlpy on two cores: {_beside_d3rlpy(found)} ([more](#td3-bc-and-cql-beside-d3rlpy)).",
        f"The paper's 75 runs of SCORE take {_whole_table()} ([more](#75-runs-to-the-end)).",
        f"{_share(found)} ([more](kernels.md)).",
        f"While policies are judged, {_judging(found)} ([more](#judging-while-training)).",
        f"The first update comes {_starting(found)} ([more](#starting)).",
    ]
    return "\n".join(f"- {line}" for line in lines) + "\n\n" + table(headings, [_speeds(each) for each in timed])


def _beside_pytorch(timed: Sequence[Machine]) -> str:
    """One run, over machines of a kind and ways to write it."""
    said = []
    for where, on_cpu in (("two CPU cores", True), ("a GPU", False)):
        alone = [
            fleet
            for machine in timed
            if ("CPU" in machine.name) == on_cpu
            for fleet in machine.of("score")["fleets"]
            if fleet["runs"] == 1
        ]
        said.append(f"{_span([float(times) for fleet in alone for times in fleet['times'].values()])} on {where}")
    return ", ".join(said)


def _with(found: Sequence[Machine], part: str) -> list[Machine]:
    return [machine for machine in found if machine.of(part)]


def _speeds(machine: Machine) -> list[str]:
    fleets = machine.of("score")["fleets"]
    alone = next(fleet for fleet in fleets if fleet["runs"] == 1)
    most = max(fleets, key=lambda fleet: float(fleet["run_steps_per_second"]))
    times = [
        [float(value) for fleet in fleets for value in fleet["times"].values() if (fleet["runs"] == 1) == single]
        for single in (True, False)
    ]
    fastest = f"{rate(most['run_steps_per_second'])} ({most['runs']} run{'s' if most['runs'] > 1 else ''})"
    return [
        machine.name,
        rate(alone["run_steps_per_second"]),
        fastest,
        *(_span(each) if each else "-" for each in times),
    ]


def _beside_d3rlpy(found: Sequence[Machine]) -> str:
    by_method: dict[str, list[float]] = {}
    for machine in _with(found, "d3rlpy"):
        for method, part in machine.of("d3rlpy").items():
            by_method.setdefault(method, []).append(part["times"])
    return ", ".join(f"{get_algorithm(method).title} {_span(times)}" for method, times in by_method.items())


def _whole_table() -> str:
    done = trainings("score")
    minutes = sum(training.minutes for training in done)
    machines = ", ".join(dict.fromkeys(training.machine for training in done))
    return f"{minutes:.1f} minutes on one {machines}, with 20 evaluations of each"


def _share(found: Sequence[Machine]) -> str:
    best = max(
        fleet["run_steps_per_second"]
        for machine in _with(found, "score")
        for fleet in machine.of("score")["fleets"]
        if "H200" in machine.name
    )
    limit = floors.rate_by_traffic(floors.Sizes(), floors.H200[0])
    return f"75 runs on an H200 reach {best / limit:.0%} of what its memory would allow"


def _judging(found: Sequence[Machine]) -> str:
    kept = [
        part["share_of_speed_kept"] for machine in _with(found, "overlap") for part in machine.of("overlap").values()
    ]
    return f"training keeps {min(kept):.0%} to {min(1, max(kept)):.0%} of its speed, by task and machine"


def _starting(found: Sequence[Machine]) -> str:
    cold, warm = (
        [machine.of("startup")[f"first_update_{name}_seconds"] for machine in _with(found, "startup")]
        for name in ("cold", "warm")
    )
    return f"after {_seconds(cold)}, and after {_seconds(warm)} where the program was compiled before"


def _seconds(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f} s"


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):,.1f}", f"{max(values):,.1f}"
    return f"{low}×" if low == high else f"{low} to {high}×"


def peers(stored: Mapping[str, Any]) -> str:
    """Other JAX code beside ours, fleets of equal size in a line."""
    rates = stored["jax"]["rates"]
    sizes = sorted({size for by_size in rates.values() for size in by_size if size.isdigit()}, key=int)
    headings = [stored["device"], "as published", *("one run" if size == "1" else f"{size} runs" for size in sizes)]
    rows = [
        [name, *(rate(by_size.get(column)) for column in ("as published", *sizes))] for name, by_size in rates.items()
    ]
    return f"{table(headings, rows)}\n\n{stored['jax']['what']}. {stored['how'].capitalize()}."
