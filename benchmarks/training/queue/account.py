"""Who used the GPU for how long: a line for every job that a call of the queue ran, in `account.csv`.

Jobs side by side share the GPU. A second in which five of them run counts a fifth of a second for each.
"""

import csv
import dataclasses
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from score_rl.disk import write_file

ACCOUNT = "account.csv"


@dataclass(frozen=True)
class Entry:
    """What one job did in one call of the queue."""

    job: str
    method: str
    settings: str
    runs: int
    updates_before: int  # of each run, in updates of other methods
    updates_after: int
    seconds: float  # from its start to its end, data and judging included
    gpu_seconds: float  # its share of the GPU meanwhile
    outcome: str  # finished, interrupted, failed
    device: str
    began: str

    @property
    def updates_done(self) -> int:
        return self.updates_after - self.updates_before


def read_account(path: Path) -> list[Entry]:
    """All lines; none where there is no account yet."""
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in dataclasses.fields(Entry)}
    with path.open(newline="") as file:
        return [
            Entry(**{name: kinds[name](value) for name, value in row.items()})  # type: ignore[operator]
            for row in csv.DictReader(file)
        ]


def add_to_account(path: Path, entries: Iterable[Entry]) -> None:
    """The account with these lines after it."""
    lines = [*read_account(path), *entries]
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Entry)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {**dataclasses.asdict(line), "seconds": f"{line.seconds:.1f}", "gpu_seconds": f"{line.gpu_seconds:.1f}"}
        for line in lines
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.getvalue())
