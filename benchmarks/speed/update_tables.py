"""Tables of updates per second: every method, SCORE beside PyTorch and d3rlpy, kernels, and what hardware allows."""

import textwrap
from collections.abc import Mapping
from typing import Any

from score_rl.algorithms.algorithm import Shapes, network_parameters
from score_rl.algorithms.registry import MODULES, algorithm_names, get_algorithm

from . import floors
from .cells import rate, table
from .machines import Machine, measured_by

NAMES = {
    "torch-loop": "PyTorch loop over critics",
    "torch-loop-tuned": "the same with fused Adam",
    "torch-batched": "PyTorch, critics batched",
}


def methods(found: list[Machine]) -> str:
    shapes = Shapes(floors.Sizes().observation, floors.Sizes().action)
    with_part = [machine for machine in found if machine.of("methods")]
    sizes = sorted({int(n) for m in with_part for entry in m.of("methods").values() for n in entry["rates"]})
    columns = [(machine, size) for machine in with_part for size in sizes]
    headings = ["name", "method", "characteristics", "parameters"]
    headings += [f"{machine.name}, {'one run' if size == 1 else f'{size} runs'}" for machine, size in columns]
    rows = []
    for name in algorithm_names():
        algorithm = get_algorithm(name)
        file = MODULES[name].partition(":")[0].rpartition(".")[2] + ".py"
        speeds = [
            m.of("methods").get(name, {"rates": {}})["rates"].get(str(size), {}).get("run_steps_per_second")
            for m, size in columns
        ]
        rows.append(
            [
                f"`{name}`",
                algorithm.title,
                ", ".join(algorithm.characteristics),
                f"{network_parameters(algorithm, shapes):,}",
                *(rate(speed) for speed in speeds),
                f"[{file}](../src/score_rl/algorithms/{file})",
            ]
        )
    return table([*headings, "file"], rows) + f"\n\n{measured_by(found, 'methods')}"


def score(found: list[Machine]) -> str:
    blocks = []
    for machine in found:
        part = machine.of("score")
        if part is None:
            continue
        names = [name for name in NAMES if name in part["baselines"]]
        rows = [
            [f"{NAMES[name]} (torch {part['torch']})", rate(part["baselines"][name]["updates_per_second"])]
            + [""] * len(names)
            for name in names
        ]
        for fleet in part["fleets"]:
            what = "score-rl, one run" if fleet["runs"] == 1 else f"score-rl, {fleet['runs']} runs"
            what += f" ({part['precision']} products)" if part.get("precision", "float32") != "float32" else ""
            times = [f"{fleet['times'][name]:,.1f}×" if name in fleet["times"] else "-" for name in names]
            rows.append([what, rate(fleet["run_steps_per_second"]), *times])
        headings = [machine.name, "run-steps/s", *(f"against {NAMES[name]}" for name in names)]
        blocks.append(table(headings, rows))
    return "\n\n".join([*blocks, measured_by(found, "score")])


def d3rlpy(found: list[Machine]) -> str:
    rows = []
    for machine in found:
        for method, part in (machine.of("d3rlpy") or {}).items():
            rates = part["rates"]
            rows.append(
                [
                    machine.name,
                    get_algorithm(method).title,
                    rate(rates["d3rlpy"]["updates_per_second"]),
                    rate(rates["score-rl"]["updates_per_second"]),
                    f"{part['times']:.1f}×",
                ]
            )
    headings = ["machine", "method", "d3rlpy, updates/s", "score-rl, updates/s", "times"]
    return table(headings, rows) + f"\n\n{measured_by(found, 'd3rlpy')}"


def floor(found: list[Machine]) -> str:
    sizes, runs = floors.Sizes(), 75
    flop, moved = floors.products(sizes), floors.traffic(sizes)
    total = sum(moved.values())
    rows = [[what, f"{size / 1e6:.2f}"] for what, size in moved.items()]
    rows.append(["together", f"{total / 1e6:.2f}"])
    lines = [table(["through memory, for each update of a run", "MB"], rows), ""]
    best = max(
        (
            fleet["run_steps_per_second"]
            for machine in found
            if "H200" in machine.name and machine.of("score")
            for fleet in machine.of("score")["fleets"]
            if fleet["runs"] == runs
        ),
        default=None,
    )
    rows = []
    for device in floors.H200:
        arithmetic = floors.rate_by_arithmetic(sizes, device)
        rows.append(
            [f"products in {device.what}, {device.flops / 1e12:,.0f} TFLOP/s", *_floor_cells(arithmetic, runs, best)]
        )
    device = floors.H200[0]
    rows.append(
        [
            f"memory, {device.bandwidth / 1e12:.1f} TB/s",
            *_floor_cells(floors.rate_by_traffic(sizes, device), runs, best),
        ]
    )
    lines.append(f"The products of one update are {flop / 1e9:.2f} GFLOP.")
    lines.append("")
    lines.append(table(["floor on an H200", f"µs for {runs} runs", "run-steps/s", "measured share"], rows))
    if best:
        lines += ["", f"Measured: {runs / best * 1e6:,.0f} µs, {best:,.0f} run-steps/s."]
    return "\n".join(lines)


def _floor_cells(limit: float, runs: int, best: float | None) -> list[str]:
    return [f"{runs / limit * 1e6:,.0f}", f"{limit:,.0f}", "-" if best is None else f"{best / limit:.0%}"]


# Kernels and what came after them, and how a table calls the ones whose names do not say it.
SUCCESSIONS = (("compiler", "passes"), ("layers:columns=0", "layers"), ("layers", "streamed"))
CALLED = {"compiler": "the compiler", "layers:columns=0": "`layers`, the first one stored"}


def critics(found: list[Machine]) -> str:
    """Newer kernels and what they took the place of, as they are by default; what else was tried is in the file."""
    rows = []
    for machine in found:
        for what, part in (machine.of("critics") or {}).items():
            before, now = next(pair for pair in SUCCESSIONS if all(way in part for way in pair))
            older, newer = part[before], part[now]
            rows.append(
                [
                    machine.name,
                    _spelled_out(what),
                    CALLED.get(before, f"`{before}`"),
                    f"{older['microseconds']:,.0f}",
                    f"`{now}`",
                    f"{newer['microseconds']:,.0f}",
                    f"{newer['ratio']:.2f} ×",
                    f"{newer['distance']:.1%}" if "distance" in newer else "-",
                ]
            )
    headings = ["machine", "what", "before", "µs", "newer", "µs", "as fast", "distance"]
    return table(headings, rows) + f"\n\n{measured_by(found, 'critics')}"


def _spelled_out(what: str) -> str:
    """`9/2/7936 grad` is a gradient of 9 runs with 2 critics on 7,936 rows, `cql:9 update` an update of 9 runs."""
    subject, mode = what.split()
    if mode == "update":
        method, _, number = subject.rpartition(":")
        name, _, settings = method.partition(",")
        return ", ".join(filter(None, [f"an update of {get_algorithm(name).title}", settings, f"{number} runs"]))
    runs, members, height = map(int, subject.split("/"))
    names = {"grad": "gradient by the parameters", "input": "gradient by the input", "value": "values"}
    return f"{names[mode]}, {runs} runs, {members} critics, {height:,} rows"


def readme(found: list[Machine], peers: Mapping[str, Any] | None = None) -> str:
    """A line for each comparison: the best JAX peer first, PyTorch after it, then processors without a GPU."""
    said = [] if peers is None else [_beside_peers(peers)]
    rates: dict[bool, list[tuple[float, float, str]]] = {True: [], False: []}
    for machine in found:
        if machine.of("score") is None:
            continue
        fleet = max(machine.of("score")["fleets"], key=lambda fleet: float(fleet["run_steps_per_second"]))
        loop = next(n for n in ("torch-loop-tuned", "torch-loop") if n in fleet["times"])
        runs = "one run" if fleet["runs"] == 1 else f"{fleet['runs']} runs"
        kind = "CPU" in machine.name
        rates[kind].append((float(fleet["run_steps_per_second"]), float(fleet["times"][loop]), runs))
    for kind, where in ((False, "SCORE, same GPU"), (True, "SCORE, 2 CPU cores")):
        if rates[kind]:
            times = [times for _, times, _ in rates[kind]]
            if not kind and peers is not None:
                times += map(float, peers["torch"]["times"])
            spread = _range(times, "{:.1f}" if kind else "{:,.0f}")
            updates = f"{_range([rate for rate, _, _ in rates[kind]], '{:,.0f}')} ({max(rates[kind])[2]})"
            peer = "such a loop" if kind and rates[False] else "a loop over the critics in PyTorch, bound by its host"
            said.append(f"{where}: {updates}, {spread} times {peer}.")
    lines = [textwrap.fill(f"- {each}", 120, subsequent_indent="  ", break_on_hyphens=False) for each in said]
    head = "**Speed**, in updates a second, summed over runs ([how it was measured](docs/performance.md)):"
    return "\n".join([head, "", *lines])


def _beside_peers(peers: Mapping[str, Any]) -> str:
    """The fastest JAX code of others that was measured: its arithmetic, and what it does as it ships."""
    rates = peers["jax"]["rates"]
    ours, theirs = rates["score-rl"], rates["Unifloral"]
    most = max(ours, key=int)
    return (
        f"TD3-BC, one {peers['device']}, batch 256: {ours[most]:,} ({most} runs). "
        f"That is {ours[most] / theirs[most]:.1f} times Unifloral, the fastest other "
        "JAX code measured, with its update vmapped by hand over as many runs, and "
        f"{ours[most] / theirs['1']:.0f} times Unifloral as it ships, one run at a time."
    )


def _range(values: list[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def _spread(noise: list[float]) -> str:
    """The middle half of the ratios, or the only one."""
    if len(noise) == 1:
        return f"{noise[0]:.2f}, one round"
    return f"{noise[len(noise) // 4]:.2f} to {noise[-1 - len(noise) // 4]:.2f}"


def versions(found: list[Machine]) -> str:
    """This code beside an earlier version, and the earlier version beside itself, which shows the noise."""
    rows = []
    earlier = sorted({machine.of("versions")["before"] for machine in found if machine.of("versions")})
    for machine in found:
        for fleet in (machine.of("versions") or {"fleets": []})["fleets"]:
            method, _, runs = fleet["fleet"].partition(":")
            before, now = (fleet["run_steps_per_second"][name] for name in ("before", "now"))
            noise = sorted(fleet["noise_by_round"])
            rows.append(
                [
                    machine.name,
                    f"{get_algorithm(method).title}, {'one run' if runs == '1' else f'{runs} runs'}",
                    rate(before),
                    rate(now),
                    f"{fleet['times']:.2f} ×",
                    _spread(noise),
                ]
            )
    headings = ["machine", "fleet", f"{', '.join(earlier)}, run-steps/s", "this code", "as fast", "the same code twice"]
    return table(headings, rows) + f"\n\n{measured_by(found, 'versions')}"
