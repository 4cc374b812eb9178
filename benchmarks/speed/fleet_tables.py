"""Tables of whole fleets: how they scale, what judging costs, how long trainings took, how soon they start."""

import statistics
from typing import Any

from .cells import rate, table
from .machines import Machine, measured_by, trainings
from .scale_figure import figure_path


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
        blocks.append(f"{machine.name}\n\n{table(headings, rows)}\n\n![scale]({figure_path(machine)})")
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


FORMS = {  # of `worker_processes.py`, and how a table calls them
    "numpy": "NumPy instructions, as here",
    "numpy by hand": "NumPy, written by hand",
    "jax": "JAX, a policy at a time",
    "jax stacked": "JAX, policies stacked",
    "jax exported": "JAX, exported",
}
PLAYED = (("hopper", 1), ("hopper", 5), ("halfcheetah", 1), ("halfcheetah", 5))  # task, policies


def workers(found: list[Machine]) -> str:
    """Processes that play episodes, by what they import: how soon they answer, what they hold, how fast they play."""
    rows = []
    for machine in found:
        entries = machine.of("workers") or {}
        played = [entry for entry in entries.values() if "core_microseconds_per_step" in entry]
        for form, called in FORMS.items():
            if (start := entries.get(f"start, {form}")) is None:
                continue
            mine = [entry for entry in played if entry["form"] == form]
            rows.append(
                [
                    machine.name,
                    called,
                    f"{start['core_seconds']:.1f}",
                    f"{start['own']:,.0f}",
                    *(_core_microseconds(mine, task, number) for task, number in PLAYED),
                ]
            )
    headings = ["machine", "a worker acts by", "first answer, core-s", "own memory, MiB"]
    headings += [f"{task}, {'one policy' if number == 1 else f'{number} policies'}" for task, number in PLAYED]
    return table(headings, rows) + f"\n\n{measured_by(found, 'workers')}"


def _core_microseconds(entries: list[dict[str, Any]], task: str, policies: int) -> str:
    """Of a step, with as many processes as were measured."""
    mine = [entry for entry in entries if entry["task"] == task and entry["policies"] == policies]
    return f"{max(mine, key=lambda entry: int(entry['processes']))['core_microseconds_per_step']:,.0f}" if mine else "-"


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


def recording(found: list[Machine]) -> str:
    """How fast OGBench's data are recorded, and what the published number of rows would take of one core."""
    rows = []
    for machine in found:
        for name, part in (machine.of("recording") or {}).items():
            core_seconds = part["cpu_seconds"] / part["rows"]
            rows.append(
                [
                    machine.name,
                    name,
                    f"{part['rows']:,}",
                    f"{part['seconds']:.0f}",
                    rate(part["rows"] / part["seconds"]),
                    f"{1e6 * core_seconds:,.0f}",
                    f"{part['published_rows'] * core_seconds / 60:.0f}",
                ]
            )
    headings = ["machine", "recording", "rows", "seconds", "rows/s", "core-µs per row", "core-minutes as published"]
    return "\n\n".join([table(headings, rows), measured_by(found, "recording")])
