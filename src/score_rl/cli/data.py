"""`score data`."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from score_rl.cli.data_import import DataImport, import_command
from score_rl.cli.terminal import OUT, subcommand
from score_rl.console import say
from score_rl.errors import as_read

if TYPE_CHECKING:
    from score_rl.data.dataset import Dataset


@dataclasses.dataclass(frozen=True)
class DataList:
    """List the data sets that can be named, and which of them are on this machine."""


@dataclasses.dataclass(frozen=True)
class DataInfo:
    """Show a data set: dimensions, trajectories, returns, coverage."""

    name: Annotated[str, tyro.conf.Positional]
    """replica:NAME, d4rl:NAME or a file."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    seed: int = 0
    """Seed of a replica's recording."""
    action_bounds: tuple[float, ...] | None = None
    """LOW HIGH of all actions, or LOW HIGH of each, where the data does not say and they are not ±1."""


@dataclasses.dataclass(frozen=True)
class DataBuild:
    """Record a replica, or download a D4RL file, into the cache."""

    name: Annotated[str, tyro.conf.Positional]
    """replica:NAME or d4rl:NAME."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    seed: int = 0
    """Seed of the recording."""


@dataclasses.dataclass(frozen=True)
class DataCheck:
    """Find everything that is wrong with a file. Exit code 0 where `score train` would begin with it, else 2."""

    file: Annotated[Path, tyro.conf.Positional]
    """An HDF5 file in D4RL's format."""
    environment: str | None = None
    """As for `score train`: a task, a Gymnasium id, or none."""
    action_bounds: tuple[float, ...] | None = None
    """As for `score train`: LOW HIGH of all actions, or LOW HIGH of each."""
    least_usable: float = 0.5
    """As for `score train`: the share of the rows that must have a next observation."""


@dataclasses.dataclass(frozen=True)
class DataRecollect:
    """Record afresh with the behaviour policy that a D4RL file stores."""

    file: Annotated[Path, tyro.conf.Positional]
    """A D4RL file with metadata/policy, such as hopper_medium-v2.hdf5."""
    out: Path
    """The file to write."""
    transitions: int = 1_000_000
    """Rows to record."""
    seed: int = 0
    """Seed of the recording."""
    physics: Literal["d4rl", "stock"] = "d4rl"
    """The MuJoCo that D4RL was recorded with, or today's."""


DATA_COMMANDS: dict[str, type] = {
    "list": DataList,
    "info": DataInfo,
    "build": DataBuild,
    "import": DataImport,
    "check": DataCheck,
    "recollect": DataRecollect,
}


def data_command(arguments: Sequence[str]) -> int:
    match subcommand("data", DATA_COMMANDS, arguments):
        case DataList():
            _list()
        case DataInfo() as asked:
            _info(asked)
        case DataBuild() as asked:
            _build(asked)
        case DataImport() as asked:
            return import_command(asked)
        case DataCheck() as asked:
            return _check(asked)
        case DataRecollect() as asked:
            _recollect(asked)
    return 0


def _list() -> None:
    from score_rl.cli.results import new_table
    from score_rl.data.catalogue import named_datasets

    table = new_table("")
    table.add_column("name", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    kinds = itertools.groupby(named_datasets(), key=lambda entry: (entry.name.partition(":")[0], entry.origin))
    for (prefix, origin), entries in kinds:
        table.add_section()
        table.add_row(f"[bold]{prefix}[/], {'from ' if '.' in origin else ''}{origin}")
        for entry in entries:
            table.add_row(entry.name, f"{entry.rows:,}", "yes" if entry.cached else "")
    OUT.print(table)


def _info(asked: DataInfo) -> None:
    from score_rl.data.catalogue import load_dataset
    from score_rl.data.summary import summary

    dataset = load_dataset(
        asked.name, transitions=asked.transitions, seed=asked.seed, action_bounds=asked.action_bounds
    )
    OUT.print(summary(dataset))


def _build(asked: DataBuild) -> None:
    from score_rl.data.catalogue import load_dataset

    dataset = load_dataset(asked.name, transitions=asked.transitions, seed=asked.seed)
    OUT.print(f"{dataset.name}: {_size(dataset)}, {dataset.source.get('path', '')}")


def _check(asked: DataCheck) -> int:
    from score_rl.data.check import check_file

    findings = check_file(
        asked.file,
        environment=asked.environment,
        action_bounds=asked.action_bounds,
        least_usable=asked.least_usable,
    )
    for finding in findings:
        say(OUT, f"{finding.level}: {as_read(finding.message)}")
    if any(finding.level == "error" for finding in findings):
        return 2
    warnings = sum(finding.level == "warning" for finding in findings)
    counted = "1 warning" if warnings == 1 else f"{warnings} warnings"
    verdict = f"can be used; {counted}" if warnings else "nothing wrong"
    OUT.print(f"{asked.file}: {verdict}", soft_wrap=True)
    return 0


def _recollect(asked: DataRecollect) -> None:
    from score_rl.data.recollect import recollect

    dataset = recollect(asked.file, asked.out, transitions=asked.transitions, seed=asked.seed, physics=asked.physics)
    OUT.print(f"{asked.out}: {_size(dataset)}", soft_wrap=True)


def _size(dataset: "Dataset") -> str:
    return f"{len(dataset):,} rows, {len(dataset.trajectories):,} trajectories"
