"""`score judge`."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.machines import machines_of
from score_rl.cli.terminal import OUT, parse
from score_rl.console import say

NARROW = 74  # columns of a terminal below which intervals take two lines
WIDE = 90  # columns of a terminal in which distances have room
COLOURS = {"better than the behaviour": "green", "not distinguishable": "yellow", "worse": "red"}


@dataclasses.dataclass(frozen=True)
class JudgeArguments:
    """Judge the policies of an experiment from recorded data alone, and the behaviour that recorded them.

    Fitted Q evaluation and a learned model say what each policy earns per step, beside what the behaviour earns.
    Distances say whether the data can tell that at all. Each policy gets one of four verdicts; docs/judging.md has the
    rules. What was found is stored in the folder, and `score report` shows it.

    Examples:
      score train --dataset logs.hdf5 --environment none --hold-out 0.1 --seeds 0 1 2 --out runs/logs
      score judge runs/logs
      score judge runs/logs --data newer_logs.hdf5
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder of the experiment."""
    data: Path | None = None
    """Judge by these data, which took no part in training. Without it: by what `--hold-out` kept aside."""
    run: tuple[str, ...] = ()
    """Only these runs."""
    effort: Literal["auto", "quick", "normal", "thorough"] = "auto"
    """How large the evaluators are. quick takes minutes on a CPU; auto is quick there and normal on a GPU."""
    discount: float | None = None
    """γ of all estimates. Unless given, the methods' own, but no horizon longer than the recorded trajectories."""
    on: str | None = None
    """Judge on one machine of a cluster that sees the folder: ray, ray:ADDRESS, slurm or processes:1."""
    task: tuple[str, ...] = ()
    """What it asks of the cluster, as KEY=VALUE; `score train --help` has more."""
    quiet: bool = False
    """Print only the table."""


def judge_command(arguments: Sequence[str]) -> int:
    asked = parse(JudgeArguments, arguments, "score judge")
    from score_rl.judge.judging import judge

    machines = machines_of(asked.on, asked.task, asked.quiet)
    if machines is not None:
        record = machines.judge(asked.folder, asked.data, runs=asked.run, effort=asked.effort, discount=asked.discount)
    else:
        record = judge(
            asked.folder, asked.data, runs=asked.run, effort=asked.effort, discount=asked.discount, quiet=asked.quiet
        )
    for data in record.data:
        OUT.print(verdict_table(data, OUT.width))
        for line in remarks(data, OUT.width):
            say(OUT, line)
    OUT.print(next_step(asked.folder, record), soft_wrap=True, markup=False)
    OUT.print(
        f"Stored in {asked.folder}/judgement.json; score report {shlex.quote(str(asked.folder))} --out page shows all "
        "of it.",
        soft_wrap=True,
        markup=False,
    )
    return 0


def next_step(folder: Path, record: Any) -> str:
    """What to type where a policy is better than the behaviour, and what is left to do where none is."""
    from score_rl.store.judgements import BETTER

    if any(run.verdict == BETTER for run in record.runs.values()):
        return f"Next: score export {folder} --run best --out policy.onnx, and try it small and watched first."
    return (
        "Next: keep the behaviour, for no policy is better by the judge's rules. Other settings (score select), longer "
        "training or more recordings may give a better one."
    )


def verdict_table(data: Any, width: int) -> Table:
    """The verdicts, best first; red where a policy is worse or not to be trusted. Distances stand where they fit."""
    from score_rl.cli.results import name_in_lines, new_table

    table = new_table(escape(f"{data.name}: reward per step, with 90 % intervals"))
    table.add_column("run", no_wrap=True)
    table.add_column("verdict", min_width=len("distinguishable"))
    distances = ("moved", "unknown") if width >= WIDE else ()
    for heading in ("fitted Q", "model", *distances):
        table.add_column(heading, justify="right", max_width=9 if width < NARROW else None)
    for name, run in _ranked(data.runs):
        colour, distance = COLOURS.get(run.verdict, "bold red"), run.distance
        cells = [_against(run.estimates.get(kind)) for kind in ("fitted Q", "model")]
        if distances and distance is not None:
            cells += [f"{sum(distance.moved) / len(distance.moved):.2f}", f"{distance.unknown:.0%}"]
        shown = name_in_lines(name.removeprefix(f"{data.name}_"), max(12, width - 58))
        table.add_row(shown, f"[{colour}]{run.verdict}[/]", *cells)
    mine = data.behaviour
    table.add_section()
    table.add_row("behaviour", f"recorded {data.recorded:.4g}", *(_alone(mine[kind]) for kind in ("fitted Q", "model")))
    return table


def _ranked(runs: Any) -> list[tuple[str, Any]]:
    from score_rl.store.judgements import rank_of

    return sorted(runs.items(), key=lambda item: -rank_of(item[1]))


def _against(estimate: Any) -> str:
    """How much more than the behaviour's it is."""
    if estimate is None:
        return ""
    return f"{estimate.difference:+.3g}\n{estimate.difference_low:+.3g} to {estimate.difference_high:+.3g}"


def _alone(estimate: Any) -> str:
    return f"{estimate.value:.4g}"


def remarks(data: Any, width: int) -> list[str]:
    """Why policies are doubted, how far the estimators agree, and what the figures mean."""
    from score_rl.store.judgements import DOUBTFUL

    lines = [f"{name}: {' '.join(run.reasons)}" for name, run in _ranked(data.runs) if run.verdict == DOUBTFUL]
    lines.append(data.agreement)
    lines += data.remarks
    where = f"{data.trajectories:,} trajectories ({data.rows:,} rows)"
    if data.held_out:
        lines.append(f"Judged on {where} that took no part in training, discount {data.discount:.3g}.")
    else:
        lines.append(
            f"Judged on the very {where} that were trained on, which flatters: train with --hold-out 0.1, or give "
            "--data."
        )
    lines.append("Differences are from the behaviour.")
    if width >= WIDE:
        lines[-1] += (
            " moved: how far actions are from the recorded ones, in half-ranges. unknown: states in which the data do "
            "not tell what the action does (1 % is normal)."
        )
    return lines
