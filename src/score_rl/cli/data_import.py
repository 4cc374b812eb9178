"""`score data import`."""

import dataclasses
import math
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape

from score_rl.cli.terminal import OUT
from score_rl.console import say
from score_rl.errors import InputError, as_read

if TYPE_CHECKING:
    from score_rl.data.check import Finding
    from score_rl.data.tables.importing import Options, Summary
    from score_rl.data.tables.roles import Roles
    from score_rl.data.tables.table import Table

MINARI = "minari:"
ROLES = (
    "observations", "actions", "reward", "cost", "episode", "time", "terminal", "timeout", "next_observations",
    "action_bounds", "gap", "units",
)  # fmt: skip
CHECKED = 1_000_000  # rows at most are looked at for what is doubtful; each cell was looked at before


@dataclasses.dataclass(frozen=True)
class DataImport:
    """Make a data set of a table of logs: CSV, Parquet, npz, or a Minari data set.

    One row is one step: what was measured before acting, the action then taken, and the reward for what followed.
    Name the columns, or patterns such as 'temp*'. Without columns, a command is proposed.

    Examples:
      score data import logs.csv
      score data import logs.csv --episode trip --time t --observations 'temp*' flow \\
          --actions valve pump --reward r --action-bounds 0 250 600 2400 --preview
      score data import logs.csv --episode batch --time when --observations 'temp*' \\
          --actions power --cost energy --terminal outcome=failed --missing forward
      score data import minari:D4RL/pointmaze/umaze-v2 --out maze.hdf5
    """

    table: Annotated[str, tyro.conf.Positional]
    """A CSV (also .csv.gz), Parquet or npz file, minari:ID, or the folder of a Minari data set."""
    observations: tuple[str, ...] | None = None
    """Columns that a policy will see, by name or pattern."""
    actions: tuple[str, ...] | None = None
    """Columns that a policy will decide."""
    reward: str | None = None
    """Column of the reward: what the step brought."""
    cost: str | None = None
    """Column of a cost, instead of a reward."""
    episode: str | None = None
    """Column that tells which rows belong together, such as a batch or a trip."""
    time: str | None = None
    """Column by which the rows of an episode are sorted: numbers, or dates such as 2024-01-31 12:00:00."""
    terminal: str | None = None
    """Column that says after which rows nothing follows, such as a failure; or COLUMN=VALUE."""
    timeout: str | None = None
    """Column that says after which rows the recording stopped; or COLUMN=VALUE. Last rows that are not terminal are
    such anyway."""
    next_observations: tuple[str, ...] | None = None
    """Columns of the observations after the step, in the same order; taken from the next row unless given."""
    action_bounds: tuple[str, ...] | None = None
    """What a policy may use: LOW HIGH for all actions, or LOW HIGH of each; `data` takes the least and most that was
    recorded. ±1 unless given."""
    missing: Literal["error", "forward", "drop"] = "error"
    """Empty cells: refuse them, take the value before in the trajectory (observations and actions only), or leave such
    rows out, where a trajectory then ends."""
    gap: float | None = None
    """A trajectory ends where the next row comes later than this; in seconds if times are dates."""
    units: tuple[str, ...] | None = None
    """Units of columns, such as 'temp*=°C' flow=l/h; [°C] at the end of a column's name is one too."""
    environment: str | None = None
    """A Gymnasium id in which to judge policies, if there is one."""
    out: Path | None = None
    """The file to write; the name of the table with .hdf5 unless given."""
    preview: bool = False
    """Show what would become of the first rows, and write nothing."""
    quiet: bool = False
    """Print errors only."""


def import_command(asked: DataImport) -> int:
    """Import, preview or propose. Exit code 2 if the file that was written cannot be used."""
    if asked.table.startswith(MINARI) or Path(asked.table).expanduser().is_dir():
        return _import_minari(asked)
    from score_rl.data.tables.frames import open_table

    table = open_table(Path(asked.table).expanduser())
    if not asked.observations and not asked.actions and asked.reward is None and asked.cost is None:
        return _propose(table, asked)
    from score_rl.data.tables.importing import import_table
    from score_rl.data.tables.preview import preview

    roles, options = _roles(asked), _options(asked)
    if asked.preview:
        OUT.print(preview(table, roles, options))
        return 0
    out = _out(asked)
    if out.exists() and Path(asked.table).exists() and out.samefile(asked.table):
        raise InputError(f"{out} is the table itself; give another `out`.")
    summary = import_table(table, roles, out, options)
    findings = _check(out, summary.rows, asked.quiet)
    if not asked.quiet:
        _report(summary, out)
    for finding in findings:
        if not asked.quiet or finding.level == "error":
            say(OUT, f"{finding.level}: {as_read(finding.message)}")
    if any(finding.level == "error" for finding in findings):
        return 2
    if not asked.quiet:
        _say_next(out, asked.environment, len(summary.lengths))
    return 0


def _say_next(out: Path, environment: str | None, trajectories: int) -> None:
    """What to type now: without a simulator, some trajectories are kept to judge by."""
    from score_rl.data.splitting import LEAST

    share = max(0.1, math.ceil(100 * LEAST / trajectories) / 100)
    few = trajectories < 2 * LEAST
    judged = "" if few or environment not in (None, "none") else f" --hold-out {share:g}"
    OUT.print(f"{out}: written. Next:\n  score train --dataset {shlex.quote(str(out))}{judged}", soft_wrap=True)
    if few and environment in (None, "none"):
        OUT.print("With so few trajectories none can be held out to judge policies by. Do some end at a pause (--gap)?")


def _import_minari(asked: DataImport) -> int:
    """Minari says itself what is what."""
    from score_rl.data.catalogue import load_dataset
    from score_rl.data.saving import save_dataset
    from score_rl.data.sources.minari import is_minari_folder
    from score_rl.data.summary import summary

    if not asked.table.startswith(MINARI) and not is_minari_folder(Path(asked.table).expanduser()):
        raise InputError(
            f"{asked.table} is a folder without Minari's data; give the path of a CSV, Parquet or npz file."
        )
    given = [name for name in ROLES if getattr(asked, name) is not None]
    if given:
        raise InputError(f"{asked.table} says itself which columns are what; leave `{given[0]}` out.")
    dataset = load_dataset(asked.table, environment=asked.environment, progress=not asked.quiet)
    if not asked.quiet:
        OUT.print(summary(dataset))
    if asked.preview:
        return 0
    name = asked.table.removeprefix(MINARI).strip("/").replace("/", "-")
    out = asked.out if asked.out is not None else Path(f"{Path(name).name}.hdf5")
    save_dataset(dataset, out)
    if not asked.quiet:
        _say_next(out, dataset.environment, len(dataset.trajectories))
    return 0


def _out(asked: DataImport) -> Path:
    name = Path(asked.table).name.removesuffix(".gz")
    return asked.out if asked.out is not None else Path(name).with_suffix(".hdf5")


def _roles(asked: DataImport) -> "Roles":
    from score_rl.data.tables.importing import roles_of

    units = dict(_unit(text) for text in asked.units or ())
    single = ("reward", "cost", "episode", "time", "terminal", "timeout")
    return roles_of(
        asked.observations or (),
        asked.actions or (),
        asked.next_observations,
        units,
        **{name: getattr(asked, name) for name in single},
    )


def _unit(text: str) -> tuple[str, str]:
    name, equals, unit = text.rpartition("=")
    if not equals or not name or not unit:
        raise InputError(f"`units` holds {text!r}; give COLUMN=UNIT, such as flow=l/h.")
    return name, unit


def _options(asked: DataImport) -> "Options":
    from score_rl.data.tables.importing import FROM_DATA, Options

    bounds: tuple[float, ...] | Literal["data"] | None = None
    if asked.action_bounds == (FROM_DATA,):
        bounds = "data"
    elif asked.action_bounds:
        try:
            bounds = tuple(map(float, asked.action_bounds))
        except ValueError:
            raise InputError(
                f"`action_bounds` is {' '.join(asked.action_bounds)}; give LOW HIGH, LOW HIGH of each action, or data."
            ) from None
    progress = not asked.quiet and not asked.preview
    return Options(asked.missing, asked.gap, bounds, asked.environment, progress)


def _propose(table: "Table", asked: DataImport) -> int:
    from score_rl.data.tables.proposal import beyond_one, command, propose

    found = propose(table, {role: getattr(asked, role) for role in ("episode", "time", "terminal", "timeout")})
    bounds = beyond_one(table, found.roles.actions or found.roles.observations)
    OUT.print(
        "Judged by its names and first rows, this could be the command. Read it before you use it:\n", soft_wrap=True
    )
    OUT.print(escape(command(asked.table, found, out=str(_out(asked)), bounds=bounds)) + "\n", soft_wrap=True)
    for what in found.unclear:
        OUT.print(f"Not clear: {escape(what)}.", soft_wrap=True)
    if found.left_out:
        OUT.print(f"Left out, since they hold no numbers: {escape(', '.join(found.left_out))}.", soft_wrap=True)
    if bounds and found.roles.actions:
        OUT.print(
            "data takes the least and the most that was recorded as bounds of the actions. Better give LOW HIGH of "
            "each: what the device can do, or less.",
            soft_wrap=True,
        )
    OUT.print("With --preview it shows what would become of the first rows.")
    return 0


def _check(path: Path, rows: int, quiet: bool) -> "list[Finding]":
    """What `score data check` finds; in a part of a file that is too large."""
    from score_rl.data.check import check_file
    from score_rl.data.tables.sampling import write_sample

    if rows <= CHECKED:
        findings = check_file(path)
    else:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            sample = Path(folder) / path.name
            count = write_sample(path, sample, CHECKED)
            if not quiet:
                OUT.print(f"What is doubtful is looked for in {count:,} rows, whole trajectories from all over it.")
            findings = check_file(sample)
    known = ("the environment is not known", "next_observations is not stored")
    return [finding for finding in findings if not finding.message.startswith(known)]


def _report(summary: "Summary", path: Path) -> None:
    lengths, columns, arranged = summary.lengths, summary.columns, summary.arranged
    span = f"{lengths.min():,}" if lengths.min() == lengths.max() else f"{lengths.min():,} to {lengths.max():,}"
    trajectories = "1 trajectory" if len(lengths) == 1 else f"{len(lengths):,} trajectories"
    lines = [f"{summary.table}: {summary.rows:,} rows in {trajectories} of {span} rows."]
    if not summary.was_sorted:
        keys = " and ".join(key for key in (columns.episode, columns.time) if key is not None)
        lines.append(f"The rows were not sorted by {keys}; they are now.")
    if arranged.filled:
        cells = ", ".join(f"{name} {count:,}" for name, count in arranged.filled.items())
        lines.append(f"Missing values were filled with the value before: {cells}.")
    if arranged.left_out:
        lines.append(f"{arranged.left_out:,} of {summary.rows_read:,} rows were left out, since something was missing.")
    if arranged.gaps is not None:
        gaps, unit = arranged.gaps, summary.seconds or 1.0
        lines.append(
            f"warning: {gaps.number:,} times the next row of a trajectory comes later than the usual "
            f"{gaps.usual * unit:g}, up to {gaps.longest * unit:g} later; such as at {'; '.join(gaps.places)}. To end "
            f"trajectories there: --gap {1.5 * gaps.usual * unit:g}"
        )
    low, high = summary.action_bounds
    spans = (f"{name} {low[i]:g} to {high[i]:g}" for i, name in enumerate(columns.actions))
    whence = ", the least and the most that was recorded" if summary.bounds_from_data else ""
    lines += [
        f"observations: {', '.join(_with_unit(name, columns.units) for name in columns.observations)}",
        f"actions: {', '.join(_with_unit(name, columns.units) for name in columns.actions)}",
        f"bounds of the actions{whence}: {', '.join(spans)}",
        f"rewards: {summary.rewards[0]:g} to {summary.rewards[1]:g}",
        f"marks: {summary.terminals:,} terminals, {summary.timeouts:,} timeouts",
    ]
    for line in lines:
        OUT.print(escape(line), soft_wrap=True)


def _with_unit(name: str, units: "dict[str, str] | object") -> str:
    unit = units.get(name) if isinstance(units, dict) else None
    return name if unit is None or f"[{unit}]" in name else f"{name} [{unit}]"
