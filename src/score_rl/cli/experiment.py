"""`score experiment`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.machines import machines_of
from score_rl.cli.terminal import OUT, subcommand
from score_rl.console import open_console
from score_rl.errors import InputError

STORED = Path("benchmarks/results")  # of a checkout of this project


@dataclasses.dataclass(frozen=True)
class ExperimentList:
    """List the paper's tables and figures, each with its cost as runs × updates at every scale."""


@dataclasses.dataclass(frozen=True)
class ExperimentRun:
    """Make tables and figures of the paper: train what they need, draw, tabulate, store.

    Several names share their runs: what more than one needs is trained once, and settings that allow it train as
    one compiled program. Call it again to go on after an interruption; what is finished is not trained again.

    Examples:
      score experiment run sweep-beta
      score experiment run ablation-bc ablation-pessimism sweep-beta --scale day
      score experiment run main-table --methods score td3-bc --datasets hopper-medium --scale paper --source d4rl
      score experiment run ablation-constraint --source my_hopper_log.hdf5
      score experiment run main-table aggregates profiles --from-stored benchmarks/results
      score experiment run all --scale day --plan
      score experiment run sweep-beta --scale day --on ray
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Names from `score experiment list`, or all."""
    scale: str = "trial"
    """trial: minutes on two cores, proves nothing. day: hours on a GPU. paper: the full protocol."""
    source: tuple[str, ...] = ("replica",)
    """replica (recorded on this machine), d4rl (downloaded), or HDF5 files of your own."""
    out: Path = Path("experiments")
    """Folder for results, with the trained fleets in fleets/ below it."""
    from_stored: Path | None = None
    """Rebuild from stored results below this folder, without training; benchmarks/results where none is named."""
    methods: tuple[str, ...] = ()
    """Only these, for the experiments that compare methods."""
    datasets: tuple[str, ...] = ()
    """Other data sets than the experiment's own, such as walker2d-medium."""
    seeds: tuple[int, ...] = ()
    """Other seeds than the scale's."""
    steps: int | None = None
    """Another number of updates than the scale's."""
    on: str | None = None
    """Train on a cluster: ray, ray:ADDRESS, slurm, or processes:N on this machine. Here unless given."""
    task: tuple[str, ...] = ()
    """What each task asks of the cluster, as KEY=VALUE; `score train --help` has more."""
    plan: bool = False
    """Only say which fleets would be trained."""
    quiet: bool = False
    """Print only the results."""


EXPERIMENT_COMMANDS: dict[str, type] = {"list": ExperimentList, "run": ExperimentRun}


def experiment_command(arguments: Sequence[str]) -> int:
    asked = subcommand("experiment", EXPERIMENT_COMMANDS, with_default_folder(arguments))
    if isinstance(asked, ExperimentList):
        _list_experiments()
    else:
        _run_experiments(asked)
    return 0


def _list_experiments() -> None:
    from score_rl.paper.experiments.execution import cost
    from score_rl.paper.experiments.plan import Request
    from score_rl.paper.experiments.registry import EXPERIMENTS
    from score_rl.paper.experiments.scales import SHOWN, get_scale

    table = Table(
        title="runs × updates at each scale; runs shared by several are trained once",
        title_justify="left",
        show_edge=False,
        pad_edge=False,
    )
    table.add_column("name", no_wrap=True)
    table.add_column("in the paper", overflow="fold")
    for scale in SHOWN:
        table.add_column(scale, justify="right", max_width=11)
    for experiment in EXPERIMENTS.values():
        costs = [cost(experiment, Request(get_scale(scale))) for scale in SHOWN]
        table.add_row(experiment.name, escape(experiment.paper), *costs)
    OUT.print(table)
    OUT.print(
        "Run one: score experiment run NAME \\[--scale trial|day|paper] \\[--source replica|d4rl|FILES]",
        soft_wrap=True,
    )


def _run_experiments(asked: ExperimentRun) -> None:
    from score_rl.paper.experiments.execution import overview, rebuild, run

    chosen = _chosen_experiments(asked)
    request = _checked_request(asked)
    console = open_console(stderr=True)

    def say(message: str) -> None:
        if not asked.quiet:
            console.print(escape(message), soft_wrap=True)

    if asked.plan:
        OUT.print(_as_table(overview(chosen, request)))
        return
    made = rebuild(chosen, request, asked.from_stored, say) if asked.from_stored else run(chosen, request, say)
    for experiment in chosen:
        folder, result = made[experiment.name]
        for found in result.tables.values():
            if found.printed:
                OUT.print(_as_table(found, f"{experiment.name}: "))
        for remark in result.remarks:
            OUT.print(escape(remark), soft_wrap=True)
        if asked.from_stored is None and request.scale.small:
            OUT.print(request.proves, soft_wrap=True)
        OUT.print(f"Result folder: {folder}", soft_wrap=True)


def _chosen_experiments(asked: ExperimentRun) -> list[Any]:
    """The experiments named; options that would have no effect on them are refused."""
    from score_rl.paper.experiments.registry import EXPERIMENTS, get_experiment

    if not asked.names:
        raise InputError("say which experiment; `score experiment list` shows the names.")
    names = list(EXPERIMENTS) if "all" in asked.names else list(dict.fromkeys(asked.names))
    chosen = [get_experiment(name) for name in names]
    if asked.methods and not any(experiment.compares for experiment in chosen):
        raise InputError(f"--methods is for experiments that compare methods, and {', '.join(names)} compares none.")
    if (asked.datasets or asked.source != ("replica",)) and not any(experiment.on_data for experiment in chosen):
        raise InputError(
            f"--source and --datasets are for experiments on the paper's data, and {', '.join(names)} draws its own."
        )
    return chosen


def _checked_request(asked: ExperimentRun) -> Any:
    from score_rl.paper.experiments.plan import Request
    from score_rl.paper.experiments.scales import get_scale

    if asked.steps is not None and asked.steps < 2:
        raise InputError(f"--steps is {asked.steps}; it must be 2 or more.")
    request = Request(
        get_scale(asked.scale), asked.source, asked.out, asked.methods, asked.datasets, asked.seeds, asked.steps,
        asked.quiet, machines_of(asked.on, asked.task, asked.quiet),
    )  # fmt: skip
    request.check()
    if asked.from_stored == STORED and not STORED.is_dir():
        raise InputError(
            f"--from-stored without a folder reads {STORED}, which is not here; run it in a checkout of this project, "
            "or name a folder with stored results."
        )
    return request


def _as_table(found: Any, before: str = "") -> Table:
    """Names that are too long are folded, never cut; one that is repeated from row to row is said once."""
    title = escape(before + found.title)
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for column in found.columns:
        table.add_column(escape(column), overflow="fold")
    above = None
    for first, *others in found.rows:
        table.add_row("" if first == above else escape(str(first)), *(escape(str(cell)) for cell in others))
        above = first
    return table


def with_default_folder(arguments: Sequence[str]) -> list[str]:
    """`--from-stored` without a folder means the results that a checkout of this project holds."""
    given = list(arguments)
    if "--from-stored" in given:
        place = given.index("--from-stored") + 1
        if place == len(given) or given[place].startswith("--"):
            given.insert(place, str(STORED))
    return given
