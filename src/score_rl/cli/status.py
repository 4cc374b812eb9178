"""`score status`."""

import dataclasses
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Group as Lines
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from score_rl.cli.terminal import OUT, parse

MOST_FLEETS = 40  # that are listed; of more, only those that train
COLOURS = {"training": "green", "finished": "", "waiting": "dim", "silent": "yellow", "failed": "red"}


@dataclasses.dataclass(frozen=True)
class StatusArguments:
    """Say how far a training is: its runs, devices, updates per second, and the time left.

    It reads the folder alone, from any machine that sees it: on one machine, on Ray, on SLURM.

    Examples:
      score status runs/hopper
      score status runs/hopper --watch
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder of the experiment."""
    watch: bool = False
    """Show it again every few seconds, until Ctrl-C or the end."""


def status_command(arguments: Sequence[str]) -> int:
    asked = parse(StatusArguments, arguments, "score status")
    from score_rl.report.standing import read_standing

    standing = read_standing(asked.folder)
    if not asked.watch:
        OUT.print(shown(asked.folder, standing))
        return 0
    with Live(shown(asked.folder, standing), console=OUT, auto_refresh=False) as live:
        while standing.state == "training":
            time.sleep(2)
            standing = read_standing(asked.folder)
            live.update(shown(asked.folder, standing), refresh=True)
    return 0


def shown(folder: Path, standing: Any) -> Lines:
    """A line for the experiment and a table of its fleets."""
    parts: list[Any] = [Text(summary(folder, standing))]
    if standing.error is not None:
        parts.append(Text(f"Why: {standing.error}", style="red"))
    fleets = standing.fleets
    if len(fleets) > MOST_FLEETS:
        fleets = [fleet for fleet in fleets if fleet.state in ("training", "silent")][:MOST_FLEETS]
    if fleets:
        parts.append(_table(fleets, standing.steps))
    if len(fleets) < len(standing.fleets):
        parts.append(Text(f"{len(standing.fleets) - len(fleets)} more fleets are finished or wait."))
    if standing.state == "silent":
        parts.append(
            Text(f"Nobody trains there now. To go on: score train --resume {shlex.quote(str(folder))}", style="yellow")
        )
    return Lines(*parts)


def summary(folder: Path, standing: Any) -> str:
    """All that matters, in one line."""
    from score_rl.live_line import as_duration

    facts = [f"{folder}: {standing.state}", f"{standing.finished:,} of {standing.runs:,} runs done"]
    facts.append(f"{standing.share:.0%} of {standing.steps:,} updates each")
    if standing.training:
        number = len(standing.training)
        facts.append(f"{number} {'fleet trains' if number == 1 else 'fleets train'}")
    if standing.rate:
        facts.append(f"{standing.rate:,.0f} run-updates/s")
    if standing.seconds_left is not None and standing.state == "training":
        facts.append(f"{as_duration(standing.seconds_left)} left")
    facts += [f"{standing.diverged} diverged"] if standing.diverged else []
    facts += [f"{standing.doubtful} doubtful"] if standing.doubtful else []
    return ", ".join(facts)


def _table(fleets: Sequence[Any], steps: int) -> Any:
    from score_rl.cli.results import new_table

    apart = any(fleet.machine for fleet in fleets)
    table = new_table("")
    for heading in ("fleet", "runs", "updates", "updates/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state")
    for heading in ("machine", "device", "tries") if apart else ():
        table.add_column(heading, overflow="fold")
    for fleet in fleets:
        colour = COLOURS.get(fleet.state, "")
        state = f"[{colour}]{fleet.state}[/]" if colour else fleet.state
        rate = f"{fleet.rate:,.0f}" if fleet.rate >= 10 else f"{fleet.rate:.2g}" if fleet.rate else ""
        own = (escape(fleet.machine), escape(fleet.device), str(fleet.tries or "")) if apart else ()
        table.add_row(str(fleet.number), str(fleet.runs), f"{fleet.step:,} of {steps:,}", rate, state, *own)
    return table
