"""The figures of docs/performance.md: SCORE beside PyTorch, and what a fleet is. `make tables` draws them.

Each file says which numbers it was drawn from, so that a test can compare them with what is stored.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from score_rl.report.drawing import BLUE, GREEN, GREY, new_figure
from score_rl.report.figure_style import FAINT, INK, styled

from .machines import Machine
from .update_tables import NAMES

FOLDER = "figures/speed"  # below docs/
UPDATES = 1_000_000  # of every run in the figure of a fleet
RUNS = 15  # of that fleet
Bars = list[tuple[str, float]]


def compared(machine: Machine) -> Bars:
    """What the machine's bars are: PyTorch's updates a second, and ours, summed over the runs."""
    part = machine.of("score")
    bars = [
        (name, part["baselines"][key]["updates_per_second"]) for key, name in NAMES.items() if key in part["baselines"]
    ]
    for fleet in part["fleets"]:
        what = "one run" if fleet["runs"] == 1 else f"{fleet['runs']} runs at once"
        bars.append((f"score-rl, {what}", fleet["run_steps_per_second"]))
    return bars


def fleet_minutes(machine: Machine) -> dict[str, Any]:
    """Minutes for all updates of one run alone, and of so many runs as one fleet."""
    alone, together = (
        next(
            point["run_steps_per_second"]
            for point in machine.of("scale")["points"]
            if (point["runs"], point["critics"], point["batch"], point["width"]) == (runs, 5, 256, 256)
        )
        for runs in (1, RUNS)
    )
    return {"machine": machine.name, "alone": UPDATES / alone / 60, "fleet": UPDATES * RUNS / together / 60}


@styled
def comparison_figure(numbers: dict[str, Bars]) -> Any:
    """Updates a second, summed over runs, on one logarithmic axis; a panel for each machine."""
    figure, axes = new_figure(len(numbers), 1, 7.2, 1.75)
    figure.set_facecolor("white")
    for axis, (machine, bars) in zip(axes[:, 0], numbers.items(), strict=True):
        for place, (name, rate) in enumerate(bars):
            colour, marker = (BLUE, "o") if name.startswith("score-rl") else (GREY, "s")
            axis.plot(rate, place, marker, color=colour, markersize=6)
            axis.annotate(f"{rate:,.0f}", (rate, place), (7, 0), textcoords="offset points", va="center", fontsize=8)
        axis.set_yticks(range(len(bars)), [name for name, _ in bars])
        axis.set_ylim(len(bars) - 0.5, -0.5)
        axis.set_xscale("log")
        axis.set_xlim(40, 400_000)
        axis.tick_params(axis="y", length=0)
        axis.set_title(machine, loc="left", color=INK)
    axes[-1, 0].set_xlabel("updates of SCORE a second, summed over runs; logarithmic")
    return figure


@styled
def fleet_figure(numbers: dict[str, Any]) -> Any:
    """The same runs one after the other, and side by side in one program."""
    figure, ((axis,),) = new_figure(1, 1, 7.2, 3.4)
    figure.set_facecolor("white")
    machine, alone, fleet = numbers["machine"], numbers["alone"], numbers["fleet"]
    axis.set_title(f"SCORE on one {machine}", loc="left", color=INK)
    for run in range(RUNS):
        axis.barh(run, alone, left=run * alone, color=GREY, height=0.75)
        axis.barh(run + RUNS + 1.5, fleet, color=BLUE, height=0.75)
    axis.text(RUNS * alone, RUNS - 1, f"  {RUNS * alone:.1f} minutes", va="center", color=INK, fontsize=9)
    axis.text(fleet, RUNS * 1.5 + 1, f"  {fleet:.1f} minutes", va="center", color=INK, fontsize=9)
    axis.axvline(fleet, color=GREEN, linewidth=0.8, linestyle=(0, (4, 3)))
    axis.set_yticks(
        [RUNS / 2 - 0.5, RUNS * 1.5 + 1], [f"{RUNS} runs,\none after the other", f"{RUNS} runs,\none fleet"]
    )
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.set_xlim(0, RUNS * alone * 1.2)
    axis.set_xlabel(f"minutes for {UPDATES:,} updates of each run")
    axis.spines["left"].set_color(FAINT)
    return figure


def drawn(found: Sequence[Machine]) -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """By file name: what draws it, and from which numbers."""
    timed = {machine.name: compared(machine) for machine in found if machine.of("score")}
    grown = [machine for machine in found if machine.of("scale") and "CPU" not in machine.name]
    figures: dict[str, tuple[Callable[[Any], Any], Any]] = {"comparison.svg": (comparison_figure, timed)}
    if grown:
        figures["fleet.svg"] = (fleet_figure, fleet_minutes(grown[0]))
    return figures


def as_stored(numbers: Any) -> str:
    """Numbers as a figure's file holds them."""
    return json.dumps(numbers)


def draw_figures(found: Sequence[Machine], folder: Path) -> None:
    """Write all figures; the same numbers give the same files."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    for name, (draw, numbers) in drawn(found).items():
        with matplotlib.rc_context({"svg.hashsalt": "score-rl"}):
            draw(numbers).savefig(folder / name, metadata={"Date": None, "Description": as_stored(numbers)})
