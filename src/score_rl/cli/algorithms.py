"""`score algorithms`."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.terminal import OUT, parse


@dataclasses.dataclass(frozen=True)
class AlgorithmsArguments:
    """List the algorithms; with a name, its settings, their defaults and where the defaults come from, and what its
    authors chose for single data sets."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """An algorithm's name."""


def algorithms_command(arguments: Sequence[str]) -> int:
    asked = parse(AlgorithmsArguments, arguments, "score algorithms")
    from score_rl.algorithms.algorithm import Shapes, is_traced, network_parameters
    from score_rl.algorithms.presets import presets
    from score_rl.algorithms.registry import algorithm_names, get_algorithm
    from score_rl.envs.tasks import TASKS

    if asked.name is None:
        task = TASKS["halfcheetah"]
        shapes = Shapes(task.observation_dim, task.action_dim)
        table = Table(caption=f"parameters: of all networks, on {task.name}", caption_justify="left")
        for heading in ("name", "method", "what it does", "characteristics"):
            table.add_column(heading, overflow="fold", no_wrap=heading in ("name", "characteristics"))
        table.add_column("parameters", justify="right")
        for name in algorithm_names():
            algorithm = get_algorithm(name)
            count = f"{network_parameters(algorithm, shapes):,}"
            table.add_row(name, algorithm.title, algorithm.summary, ",\n".join(algorithm.characteristics), count)
        OUT.print(table)
        return 0
    algorithm = get_algorithm(asked.name)
    table = Table(title=algorithm.title, title_justify="left")
    for heading in ("setting", "default", "what it is", "a sweep trains as"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "setting")
    for field in dataclasses.fields(algorithm.Config):
        kind = "one fleet" if is_traced(field) else "several fleets"
        table.add_row(field.name, str(field.default), escape(field.metadata["help"]), kind)
    OUT.print(table)
    chosen = presets(algorithm.name)
    if chosen:
        title = "Set by itself on data of such a name, unless you set it; a later line goes over an earlier one"
        table = Table(title=title, title_justify="left")
        for heading in ("data set", "settings", "from"):
            table.add_column(heading, overflow="fold")
        for entry in chosen:
            settings = ", ".join(f"{name} {value}" for name, value in entry["settings"].items())
            table.add_row(escape(entry["match"]), escape(settings), escape(entry["source"]))
        OUT.print(table)
    return 0
