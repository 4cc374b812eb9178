"""`score algorithms`."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.options import parse
from score_rl.cli.terminal import OUT

WIDE = 110  # columns of a terminal in which everything has room

if TYPE_CHECKING:
    from score_rl.algorithms.algorithm import Algorithm


@dataclasses.dataclass(frozen=True)
class AlgorithmsArguments:
    """List the algorithms. With a name: its settings, their defaults with their sources and limits, and what its
    authors chose for single data sets."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """An algorithm's name, or package.module:ALGORITHM of one of your own."""


def algorithms_command(arguments: Sequence[str]) -> int:
    asked = parse(AlgorithmsArguments, arguments, "score algorithms")
    if asked.name is None:
        OUT.print(_list_of_algorithms())
        return 0
    from score_rl.algorithms.presets import presets_of
    from score_rl.algorithms.registry import import_algorithm

    algorithm = import_algorithm(asked.name)
    if algorithm.paper is not None:
        OUT.print(f"{algorithm.title}: {algorithm.paper}, {algorithm.paper.address}", soft_wrap=True, markup=False)
    for table in _settings_of(algorithm):
        OUT.print(table)
    chosen = presets_of(algorithm.name)
    if chosen:
        OUT.print(_presets_of(chosen))
    return 0


def _list_of_algorithms() -> Table:
    from score_rl.algorithms.algorithm import Shapes, network_parameters
    from score_rl.algorithms.registry import algorithm_names, get_algorithm, installed_plugins
    from score_rl.cli.results import new_table
    from score_rl.envs.tasks import TASKS

    task = TASKS["halfcheetah"]
    shapes = Shapes(task.observation_dim, task.action_dim)
    wide = OUT.width >= WIDE
    table = new_table("")
    for heading in ("name", "method"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it does")
    if wide:
        table.add_column("characteristics", no_wrap=True)
        table.add_column("parameters", justify="right")
        table.caption, table.caption_justify = f"parameters: of all networks, on {task.name}", "left"
    for name in [*algorithm_names(), *installed_plugins()]:
        algorithm = get_algorithm(name)
        cells = [",\n".join(algorithm.characteristics), f"{network_parameters(algorithm, shapes):,}"] if wide else []
        table.add_row(name, algorithm.title, algorithm.summary, *cells)
    return table


def _settings_of(algorithm: "Algorithm") -> Iterator[Table]:
    """One table for each group of settings, one row for each setting."""
    from score_rl.algorithms.settings import grouped, is_traced, limits_of

    for heading, fields in grouped(algorithm.Config).items():
        table = Table(title=f"{algorithm.title}: {heading}", title_justify="left")
        for column in ("setting", "default", "what it is", "a sweep is"):
            table.add_column(column, overflow="fold", no_wrap=column == "setting")
        for field in fields:
            choices = get_args(field.type) if get_origin(field.type) is Literal else ("True", "False")
            allowed = limits_of(field) or " or ".join(map(str, choices))
            text = f"{escape(field.metadata['help'])}\n[dim]allowed: {allowed}[/dim]"
            table.add_row(field.name, str(field.default), text, "one fleet" if is_traced(field) else "several")
        yield table


def _presets_of(chosen: Sequence[dict[str, Any]]) -> Table:
    title = "Set by itself on data of such a name, unless you set it; a later line goes over an earlier one"
    table = Table(title=title, title_justify="left")
    for heading in ("data set", "settings", "from"):
        table.add_column(heading, overflow="fold")
    for entry in chosen:
        settings = ", ".join(f"{name} {value}" for name, value in entry["settings"].items())
        table.add_row(escape(entry["match"]), escape(settings), escape(entry["source"]))
    return table
