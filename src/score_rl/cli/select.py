"""`score select`."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.judge import COLOURS
from score_rl.cli.machines import machines_of
from score_rl.cli.terminal import OUT, parse
from score_rl.console import say
from score_rl.errors import InputError

SHOWN = 12  # rows of the table: the recommendation below it stays on the screen


@dataclasses.dataclass(frozen=True)
class SelectArguments:
    """Choose a method and its settings for your data without a simulator, within a budget of time.

    A grid of methods and settings is trained on most trajectories and judged by the others, as `score judge` does. The
    machine is measured first, and what fits into the budget is planned. Where all to the end would be too much, all
    train for a while, and the best go on. The choice follows a written rule (docs/selecting.md). Where no policy is
    better than the behaviour that recorded the data, it says so.

    Examples:
      score select logs.hdf5
      score select logs.hdf5 --budget 2h --out runs/choice
      score select logs.hdf5 --methods score bc --seeds 5
      score select --resume runs/choice
    """

    data: Annotated[str | None, tyro.conf.Positional] = None
    """The data: an HDF5 file, or a name as `score data list` shows; `score data import` makes such a file of tables."""
    methods: tuple[str, ...] = ("score", "iql", "rebrac", "td3-bc", "bc")
    """What to choose from; `score algorithms` lists them. A method without a grid has its defaults."""
    budget: str = "10m"
    """Time for all of it: 90s, 10m or 2h."""
    seeds: int = 3
    """Runs of each variant; it counts as its worst."""
    hold_out: float = 0.1
    """The share of the trajectories that is kept from training, to judge by."""
    out: Path | None = None
    """Folder of the selection; runs/select-DATA-TIME unless given."""
    resume: Path | None = None
    """Go on with the selection in this folder, or show it again where it is finished."""
    transitions: int | None = None
    """Rows to use: of a replica so many are recorded, of a file so many are taken, whole episodes spread over it."""
    action_bounds: tuple[float, ...] | None = None
    """LOW HIGH of all actions, or LOW HIGH of each, where the data does not say and they are not ±1."""
    on: str | None = None
    """Train on a cluster: ray, ray:ADDRESS, slurm, or processes:N on this machine. This machine plans and judges."""
    task: tuple[str, ...] = ()
    """What each task asks of the cluster, as KEY=VALUE; `score train --help` has more."""
    quiet: bool = False
    """Print only the choice."""


def select_command(arguments: Sequence[str]) -> int:
    asked = parse(SelectArguments, arguments, "score select")
    if asked.resume is not None and asked.data is not None:
        raise InputError("`resume` takes everything from its folder; leave the data out.")
    from score_rl.judge.selection.selecting import select

    options = {name: value for name, value in vars(asked).items() if name not in ("data", "task")}
    options["on"] = machines_of(asked.on, asked.task, asked.quiet)
    show(select(asked.data, **options))
    return 0


def show(selection: Any) -> None:
    """The table, the choice, why, how sure that is, and what to type next."""
    record, choice = selection.record, selection.choice
    OUT.print(choice_table(choice))
    if choice.run is not None:
        chosen = next(one.variant for one in choice.table if choice.run in one.runs)
        colour = "bold green" if choice.better else "bold yellow"
        OUT.print(f"[{colour}]Recommended: {escape(chosen.label)}[/] ({escape(choice.run)})", soft_wrap=True)
    else:
        OUT.print("[bold red]No policy is recommended.[/]")
    say(OUT, f"Why: {choice.why}")
    say(OUT, f"How sure: {choice.sure}")
    if choice.run is not None:
        folder, run = shlex.quote(str(selection.path / choice.folder)), shlex.quote(choice.run)
        OUT.print(f"Next: score export {folder} --run {run} --out policy.onnx", soft_wrap=True, markup=False)
        OUT.print(f"All of it: score report {folder} --out page", soft_wrap=True, markup=False)
    OUT.print(
        f"It took {record.spent / 60:.1f} min; {selection.path}/selection.json has all of it.",
        soft_wrap=True,
        markup=False,
    )


def choice_table(choice: Any) -> Table:
    """What it was chosen from, the best first."""
    from score_rl.cli.results import new_table

    table = new_table("Chosen from, by what the worst seed gains per step over the behaviour at least")
    table.add_column("  variant", overflow="fold")
    table.add_column("verdict", overflow="fold")
    table.add_column("gains", justify="right")
    some_left = len({one.steps for one in choice.table}) > 1
    if some_left:
        table.add_column("updates", justify="right")
    chosen = [one for one in choice.table[SHOWN:] if choice.run in one.runs]
    shown = [*choice.table[: SHOWN - len(chosen)], *chosen]
    for one in shown:
        colour = COLOURS.get(one.verdict, "bold red")
        mark = "* " if choice.run in one.runs else "  "
        value = "" if one.value is None else f"{one.value:+.3g}"
        updates = [f"{one.steps or 0:,}"] if some_left else []
        table.add_row(mark + escape(one.variant.label), f"[{colour}]{one.verdict}[/]", value, *updates)
    left_out = [one.verdict for one in choice.table if one not in shown]
    if left_out:
        counts = ", ".join(f"{left_out.count(words)} {words}" for words in dict.fromkeys(left_out))
        table.caption = f"* recommended. And {len(left_out)} more: {counts}"
        table.caption_justify = "left"
    return table
