"""`score act`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from score_rl.cli.terminal import OUT, parse


@dataclasses.dataclass(frozen=True)
class ActArguments:
    """Act with an exported policy on the rows of a table, and mark the rows that its data do not know.

    Columns are found by their names. The answer has a row for every row: the actions, the uncertainty where there is
    one, how far the observation lies outside the data (above 1 is far), and a flag: far, unknown, missing or nothing.

    Examples:
      score act policy.onnx today.csv --out actions.csv
      score act policy.npz today.parquet --keep trip t --ignore '*' --out actions.parquet
    """

    policy: Annotated[Path, tyro.conf.Positional]
    """A file that `score export` wrote."""
    table: Annotated[Path, tyro.conf.Positional]
    """A CSV (also .csv.gz), Parquet or npz file."""
    out: Path = Path("actions.csv")
    """The table to write: .csv or .parquet."""
    keep: tuple[str, ...] = ()
    """Columns to copy, by name or pattern."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out; others that the policy does not observe are refused."""
    missing: Literal["error", "mark"] = "error"
    """Empty cells: refuse them, or answer such rows without an action and with the flag missing."""
    quiet: bool = False
    """Print errors only."""


def act_command(arguments: Sequence[str]) -> int:
    asked = parse(ActArguments, arguments, "score act")
    from score_rl.deploy.opening import open_policy
    from score_rl.deploy.table_acting import act_on_table

    policy = open_policy(asked.policy)
    acted = act_on_table(
        policy, asked.table, asked.out, keep=asked.keep, ignore=asked.ignore, missing=asked.missing,
        progress=not asked.quiet,
    )  # fmt: skip
    if not asked.quiet:
        flagged = "outputs" in policy.about and "far" in policy.about["outputs"]
        marks = f"{acted.far:,} observations far outside the data, {acted.unknown:,} unknown actions"
        said = marks if flagged else "this policy was exported without flags"
        said += f", {acted.missing:,} with an empty cell and no action" * (acted.missing > 0)
        OUT.print(f"{asked.out}: {acted.rows:,} rows, {said}", soft_wrap=True, markup=False)
    return 0
