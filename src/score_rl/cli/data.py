"""`score data`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from score_rl.cli.terminal import OUT, subcommand
from score_rl.errors import as_read


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
    """Seed of a replica's collection."""
    action_bounds: tuple[float, ...] | None = None
    """LOW HIGH of all actions, or LOW HIGH of each, where the data does not say and they are not ±1."""


@dataclasses.dataclass(frozen=True)
class DataBuild:
    """Collect a replica, or download a D4RL file, into the cache."""

    name: Annotated[str, tyro.conf.Positional]
    """replica:NAME or d4rl:NAME."""
    transitions: int | None = None
    """Rows of a replica; D4RL's own size unless given."""
    seed: int = 0
    """Seed of the collection."""


@dataclasses.dataclass(frozen=True)
class DataCheck:
    """Find everything that is wrong with a file. Exit code 2 if anything is."""

    file: Annotated[Path, tyro.conf.Positional]
    """An HDF5 file in D4RL's format."""


@dataclasses.dataclass(frozen=True)
class DataRecollect:
    """Collect afresh with the behaviour policy that a D4RL file stores."""

    file: Annotated[Path, tyro.conf.Positional]
    """A D4RL file with metadata/policy, such as hopper_medium-v2.hdf5."""
    out: Path
    """The file to write."""
    transitions: int = 1_000_000
    """Rows to collect."""
    seed: int = 0
    """Seed of the collection."""
    physics: Literal["d4rl", "stock"] = "d4rl"
    """MuJoCo as D4RL was recorded with, or as it is today."""


DATA_COMMANDS: dict[str, type] = {
    "list": DataList,
    "info": DataInfo,
    "build": DataBuild,
    "check": DataCheck,
    "recollect": DataRecollect,
}


def data_command(arguments: Sequence[str]) -> int:
    asked = subcommand("data", DATA_COMMANDS, arguments)
    from score_rl.data.catalogue import load_dataset, named_datasets

    match asked:
        case DataList():
            table = Table()
            table.add_column("name", no_wrap=True)
            table.add_column("rows", justify="right", no_wrap=True)
            table.add_column("where it comes from", overflow="fold")
            table.add_column("here")
            for entry in named_datasets():
                table.add_row(entry.name, f"{entry.rows:,}", entry.origin, "yes" if entry.cached else "")
            OUT.print(table)
        case DataInfo():
            from score_rl.data.summary import summary

            dataset = load_dataset(
                asked.name, transitions=asked.transitions, seed=asked.seed, action_bounds=asked.action_bounds
            )
            OUT.print(summary(dataset))
        case DataBuild():
            dataset = load_dataset(asked.name, transitions=asked.transitions, seed=asked.seed)
            OUT.print(
                f"{dataset.name}: {len(dataset):,} rows, {len(dataset.trajectories):,} trajectories, {_place(dataset)}"
            )
        case DataCheck():
            from score_rl.data.check import check_file

            findings = check_file(asked.file)
            for finding in findings:
                OUT.print(f"{finding.level}: {escape(as_read(finding.message))}", soft_wrap=True)
            wrong = [f for f in findings if f.level == "error"]
            if not wrong:
                doubtful = sum(finding.level == "warning" for finding in findings)
                verdict = "nothing wrong" if not doubtful else f"can be used; {doubtful} warnings"
                OUT.print(f"{asked.file}: {verdict}", soft_wrap=True)
            return 2 if wrong else 0
        case DataRecollect():
            from score_rl.data.recollect import recollect

            dataset = recollect(
                asked.file, asked.out, transitions=asked.transitions, seed=asked.seed, physics=asked.physics
            )
            OUT.print(f"{asked.out}: {len(dataset):,} rows, {len(dataset.trajectories):,} trajectories", soft_wrap=True)
    return 0


def _place(dataset: Any) -> str:
    return str(dataset.source.get("path", ""))
