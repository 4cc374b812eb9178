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
    """List the algorithms; with a name, its settings, their defaults and where the defaults come from."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """An algorithm's name."""


def algorithms_command(arguments: Sequence[str]) -> int:
    asked = parse(AlgorithmsArguments, arguments, "score algorithms")
    from score_rl.algorithms.algorithm import Shapes, is_traced, network_parameters
    from score_rl.algorithms.registry import algorithm_names, get_algorithm
    from score_rl.envs.tasks import TASKS

    if asked.name is None:
        task = TASKS["halfcheetah"]
        shapes = Shapes(task.observation_dim, task.action_dim)
        table = Table("name", "method", "what it does", "characteristics")
        table.add_column(f"parameters on {task.name}", justify="right")
        for name in algorithm_names():
            algorithm = get_algorithm(name)
            count = f"{network_parameters(algorithm, shapes):,}"
            table.add_row(name, algorithm.title, algorithm.summary, ", ".join(algorithm.characteristics), count)
        OUT.print(table)
        return 0
    algorithm = get_algorithm(asked.name)
    table = Table("setting", "default", "what it is", "a sweep trains as", title=algorithm.title, title_justify="left")
    for field in dataclasses.fields(algorithm.Config):
        kind = "one fleet" if is_traced(field) else "several fleets"
        table.add_row(field.name, str(field.default), escape(field.metadata["help"]), kind)
    OUT.print(table)
    return 0
