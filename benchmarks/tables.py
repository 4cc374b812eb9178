"""Put the stored figures into the documents: every table of speeds is made here, from JSON, never by hand.

    python benchmarks/tables.py           rewrite the tables and plots
    python benchmarks/tables.py --check   exit code 1 where a document differs from what is stored

A table stands between `<!-- speed:NAME -->` and `<!-- /speed:NAME -->`; the rest of a document is left alone.
"""

import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent))

import floors
from documents import refresh, tell, with_tables
from stored import Machine, machines, measured_by, trainings

from score_rl.algorithms.algorithm import Shapes, network_parameters
from score_rl.algorithms.registry import MODULES, algorithm_names, get_algorithm

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("docs/algorithms.md", "docs/performance.md", "README.md")
FIGURES = ROOT / "docs" / "figures" / "speed"
NAMES = {
    "torch-loop": "PyTorch loop over critics",
    "torch-loop-tuned": "the same with fused Adam",
    "torch-batched": "PyTorch, critics batched",
}


def table(headings: list[str], rows: list[list[str]]) -> str:
    numbers = [all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    rule = ["---:" if number and rows else "---" for number in numbers]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, rule, *rows))


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-\d,.]+( ?[×%]| s| min)?|-?", cell) is not None


def rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


# -- the tables ------------------------------------------------------------------------------------------------------


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


def scale(found: list[Machine]) -> str:
    blocks = []
    for machine in found:
        part = machine.of("scale")
        if part is None:
            continue
        rows = [
            [
                *(str(point[name]) for name in ("runs", "critics", "batch", "width")),
                rate(point["run_steps_per_second"]),
                f"{1e6 * point['runs'] / point['run_steps_per_second']:,.0f}",
                f"{(point['bytes'] - point['data_bytes']) / 2**20:,.0f}",
            ]
            for point in part["points"]
        ]
        headings = [
            "runs",
            "critics",
            "batch",
            "width",
            "run-steps/s",
            "µs per update of all",
            "MiB without data",
        ]
        blocks.append(f"{machine.name}\n\n{table(headings, rows)}\n\n![scale]({_figure(machine, 'figures/speed/')})")
    return "\n\n".join([*blocks, measured_by(found, "scale")])


def evaluation(found: list[Machine]) -> str:
    rows = [
        [
            machine.name,
            part["task"],
            str(part["runs"]),
            f"{part['processes']} processes" if part.get("processes") else f"{part['groups']} threads",
            f"{part['environment_steps']:,.0f}",
            f"{part['seconds']:.2f}",
            rate(part["environment_steps_per_second"]),
            f"{part['cpu_seconds'] / part['environment_steps'] * 1e6:.0f}",
            f"{part['policy_cpu_seconds'] / part['environment_steps'] * 1e6:.1f}",
        ]
        for machine in found
        for part in (machine.of("evaluation") or {}).values()
    ]
    headings = [
        "machine",
        "task",
        "runs",
        "judged by",
        "steps",
        "seconds",
        "steps/s",
        "core-µs per step",
        "of it acting",
    ]
    return table(headings, rows) + f"\n\n{measured_by(found, 'evaluation')}"


def kept_to_the_end(part: dict[str, Any]) -> float:
    """The speed kept if what is judged after the last update counts as well."""
    pairs = zip(part["rounds"]["without"], part["rounds"]["with"], strict=True)
    return statistics.median(without["seconds"] / judged["seconds"] for without, judged in pairs)


def overlap(found: list[Machine]) -> str:
    rows = [
        [
            machine.name,
            task,
            str(part["runs"]),
            f"{part['updates']:,}",
            f"{part['eval_every']:,}",
            f"{part['share_of_speed_kept']:.1%}",
            f"{kept_to_the_end(part):.1%}",
        ]
        for machine in found
        for task, part in (machine.of("overlap") or {}).items()
    ]
    headings = ["machine", "task", "runs", "updates", "evaluated every", "speed kept", "until all are judged"]
    return table(headings, rows) + f"\n\n{measured_by(found, 'overlap')}"


def finished(found: list[Machine]) -> str:
    """SCORE's fifteen data sets; the others' trainings shared the device with each other."""
    done = trainings("score")
    rows = [
        [
            each.machine,
            f"[{each.folder}](../benchmarks/results/{each.folder}/summary.json)",
            str(len(each.datasets)),
            str(each.runs),
            f"{each.updates:,}",
            str(each.evaluations),
            rate(each.runs * each.pace),
            f"{each.minutes:.1f} min",
        ]
        for each in done
    ]
    if done:
        minutes, steps = sum(each.minutes for each in done), sum(each.runs * each.updates for each in done)
        totals = (sum(len(each.datasets) for each in done), sum(each.runs for each in done))
        rows.append(
            ["", "together", *map(str, totals), "", "", rate(steps / minutes / 60), f"{minutes:.1f} min"]
        )  # fmt: skip
    headings = ["machine", "fleet", "data sets", "runs", "updates", "evaluations", "run-steps/s", "took"]
    codes = ", ".join(sorted({each.code for each in done}))
    return table(headings, rows) + (f"\n\nMeasured: code {codes}." if done else "\n\nNot measured yet.")


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


def startup(found: list[Machine]) -> str:
    rows = [
        [
            machine.name,
            f"{part['help_seconds']:.2f} s",
            f"{part['first_update_cold_seconds']:.1f} s",
            f"{part['first_update_warm_seconds']:.1f} s",
        ]
        for machine in found
        if (part := machine.of("startup"))
    ]
    headings = ["machine", "`score --help`", "first update", "first update, compiled before"]
    return table(headings, rows) + f"\n\n{measured_by(found, 'startup')}"


def readme(found: list[Machine]) -> str:
    """One line: the fastest fleet on a CPU and elsewhere, each against PyTorch, one run of it, on the same machine."""
    fastest: dict[bool, tuple[float, str]] = {}
    for machine in found:
        part = machine.of("score")
        if part is None:
            continue
        fleet = max(part["fleets"], key=lambda fleet: float(fleet["run_steps_per_second"]))
        loop = next(n for n in ("torch-loop-tuned", "torch-loop") if n in fleet["times"])
        called = {
            "torch-loop": "a PyTorch loop over critics",
            "torch-loop-tuned": "a PyTorch loop over critics with fused Adam",
            "torch-batched": "PyTorch with batched critics",
        }
        times = {name: fleet["times"][name] for name in (loop, "torch-batched") if name in fleet["times"]}
        against = ", ".join(f"{number:,.1f} times {called[name]}" for name, number in times.items())
        runs = "one run" if fleet["runs"] == 1 else f"{fleet['runs']} runs at once"
        runs += f", {part['precision']} products" if part.get("precision", "float32") != "float32" else ""
        rate, kind = float(fleet["run_steps_per_second"]), "CPU" in machine.name
        said = f"{rate:,.0f} updates a second on {machine.name} ({runs}), {against}"
        fastest[kind] = max(fastest.get(kind, (0.0, "")), (rate, said))
    both = "; ".join(said for _, said in fastest.values())
    beside = "beside one run of PyTorch on the same machine"
    return f"- **Speed** of SCORE, batch 256, {beside}: {both} ([more](docs/performance.md))."


TABLES: dict[str, Callable[[list[Machine]], str]] = {
    "methods": methods,
    "score": score,
    "d3rlpy": d3rlpy,
    "floor": floor,
    "scale": scale,
    "evaluation": evaluation,
    "overlap": overlap,
    "finished": finished,
    "critics": critics,
    "startup": startup,
    "readme": readme,
}


# -- documents and plots ---------------------------------------------------------------------------------------------


def rewritten(text: str, found: list[Machine]) -> str:
    """The document with its tables as they are stored."""
    return with_tables(
        text, "speed", {name: partial(make, found) for name, make in TABLES.items()}, in_lists=["readme"]
    )


def _figure(machine: Machine, folder: str) -> str:
    return f"{folder}scale-{machine.name.lower().replace(' ', '-')}.svg"


def draw_scale(machine: Machine, path: Path) -> None:
    """Time and memory of an update as one thing grows, everything else at its base."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "score-rl"  # the same figures give the same file
    part = machine.of("scale")
    base = {"runs": part["base_runs"], "critics": 5, "batch": 256, "width": 256}
    figure = Figure(figsize=(12, 5), layout="constrained")
    grid = figure.subplots(2, 4, squeeze=False)
    for column, name in enumerate(base):
        points = sorted(
            (p for p in part["points"] if all(p[other] == base[other] for other in base if other != name)),
            key=lambda p: p[name],
        )
        x = [p[name] for p in points]
        micros = [1e6 * p["runs"] / p["run_steps_per_second"] for p in points]
        mebibytes = [(p["bytes"] - p["data_bytes"]) / 2**20 for p in points]
        for axes, y, label in ((grid[0, column], micros, "µs per update"), (grid[1, column], mebibytes, "MiB")):
            axes.plot(x, y, marker="o", color="#0072b2")
            axes.set(xlabel=name, ylabel=label if column == 0 else "", ylim=(0, None), xlim=(0, None))
            axes.spines[["top", "right"]].set_visible(False)
    rest = f"{part['base_runs']} run{'s' if part['base_runs'] > 1 else ''}, 5 critics, batch 256, width 256"
    figure.suptitle(f"SCORE on {machine.name}: one thing grows from {rest}", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


@dataclass(frozen=True)
class Arguments:
    check: bool = False
    """Change nothing; exit code 1 if a document differs from what is stored."""


def main(asked: Arguments) -> int:
    found = machines()
    documents = [ROOT / name for name in DOCUMENTS]
    stale = refresh(documents, lambda text, folder: rewritten(text, found), change=not asked.check)
    if not asked.check:
        for machine in found:
            if machine.of("scale"):
                draw_scale(machine, ROOT / "docs" / _figure(machine, "figures/speed/"))
    return tell(stale, ROOT, "benchmarks/tables.py" if asked.check else None)


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Arguments, description=__doc__)))
