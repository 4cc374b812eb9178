"""Measurements of an experiment: the long table `metrics.csv`, and the same numbers for TensorBoard."""

import contextlib
import csv
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from score_rl.disk import TOO_MANY_OPEN, read_own, too_many_open, write_file
from score_rl.errors import InputError, MachineError, count, not_installed, printable, unknown_name
from score_rl.notebook import html_table
from score_rl.store.checkpoints import FREE_AND_RESUME
from score_rl.store.fields import MOST
from score_rl.store.presence import Presence

Callback = Callable[[str, int, Mapping[str, float]], None]  # (run, update, what was measured there)

FILE = "metrics.csv"
COLUMNS = ("run", "step", "name", "value")
EVALUATED = tuple(f"evaluation/{name}{end}" for name in ("score", "return", "success") for end in ("", "_std"))
LOST = "restore it from a copy, or remove it: going on with `resume` restores what the checkpoints hold"


class Row(NamedTuple):
    """One measurement."""

    run: str
    step: int
    name: str
    value: float


class MetricsTable:
    """Measurements of an experiment: rows, and single metrics along training."""

    def __init__(self, rows: Iterable[Row], known: Iterable[str] = ()) -> None:
        """`known` are names of metrics beside those of the rows."""
        self._rows, self._known = list(rows), known

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return (
            f"<metrics: {count(len(self), 'value')} of {count(len(self.names), 'metric')} "
            f"in {count(len(self.runs), 'run')}>"
        )

    def _repr_html_(self) -> str:
        by_name: dict[str, list[Row]] = {}
        for row in self:
            by_name.setdefault(row.name, []).append(row)
        rows = [
            (name, len(mine), f"{mine[-1].step:,}", f"{mine[-1].value:.4g}", mine[-1].run)
            for name, mine in by_name.items()
        ]
        return html_table(repr(self)[1:-1], ("metric", "values", "newest step", "newest value", "of run"), rows)

    def to_pandas(self) -> Any:
        """A frame with the columns run, step, name and value."""
        try:
            import pandas as pd
        except ImportError:
            raise not_installed("metrics.to_pandas() needs pandas") from None
        return pd.DataFrame([tuple(row) for row in self], columns=list(COLUMNS))

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that measured something."""
        return list(dict.fromkeys(row.run for row in self._rows))

    @property
    def names(self) -> list[str]:
        """What was measured."""
        return list(dict.fromkeys(row.name for row in self._rows))

    def of(self, run: str) -> "MetricsTable":
        """The measurements of the `run` with this id."""
        return MetricsTable((row for row in self._rows if row.run == run), self.names)

    def curve(self, name: str, run: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one metric of one run. Both are empty where it was not measured in this run.

        Args:
            name: The metric. Its end is enough where only one ends so: `score` for `evaluation/score`.
            run: Id of the run; not needed where one alone measured it.
        """
        name = self._full_name(name)
        rows = [row for row in self._rows if row.name == name and run in (None, row.run)]
        if len({row.run for row in rows}) > 1:
            raise InputError(f"{name} was measured in several runs; say which: {', '.join(self.runs)}.")
        return np.array([row.step for row in rows]), np.array([row.value for row in rows])

    def _full_name(self, name: str) -> str:
        """A metric that was measured. Part of a name is enough where only one ends in it."""
        known = list(dict.fromkeys((*self.names, *self._known)))
        if name in known or not known:
            return name
        ending = [each for each in known if each.endswith(f"/{name}")]
        if len(ending) == 1:
            return ending[0]
        kind, _, rest = name.partition("/")
        begun = any(each.startswith(f"{kind}/") for each in known)
        if name in EVALUATED or (rest and kind in ("train", "evaluation", "speed") and not begun):
            return name  # such as the score of a training that has not been evaluated yet
        raise unknown_name("metric", name, known)

    def last(self, name: str, run: str | None = None) -> float | None:
        """The newest value of a metric of one run, as for `curve`; None where it was never measured.

        Args:
            name: The metric.
            run: Id of the run; not needed where one alone measured it.
        """
        _, values = self.curve(name, run)
        return float(values[-1]) if len(values) else None


def read_metrics(folder: Path) -> MetricsTable:
    """The table of an experiment's folder; empty before anything was measured."""
    path = folder / FILE
    if not path.exists() and not path.is_symlink():
        return MetricsTable([])
    text = read_own(path, LOST)
    whole = text[: text.rfind("\n") + 1]  # a kill may have cut the last line
    try:
        return MetricsTable(parse_rows(whole))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path} is damaged ({printable(str(error))}); {LOST}.") from error


def newest_rows(folder: Path, most: int = 1 << 20) -> list[Row]:
    """The last rows of the table, as far as they stand in so many bytes; none where it is damaged there."""
    path = folder / FILE
    if path.is_symlink() or not path.is_file():
        return []
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        content = file.read()
    whole = content[content.find(b"\n") + 1 : content.rfind(b"\n") + 1]  # the first line is cut, or names the columns
    try:
        return list(parse_rows(",".join(COLUMNS) + "\n" + whole.decode()))
    except (ValueError, csv.Error):
        return []


def parse_rows(text: str) -> Iterator[Row]:
    """The rows of a table as it lies on the disk."""
    lines = csv.reader(io.StringIO(text, newline=""))
    head = next(lines, list(COLUMNS))
    if head != list(COLUMNS):
        raise ValueError(f"line 1 is {','.join(head)[:60]!r}, expected {','.join(COLUMNS)}")
    for line in lines:
        try:
            run, step, name, value = line
            row = Row(run, int(step), name, float(value))
        except ValueError:
            row = None
        if row is None or not 0 <= row.step <= MOST:
            raise ValueError(f"line {lines.line_num} is {','.join(line)[:60]!r}, expected {','.join(COLUMNS)}")
        yield row


def write_rows(folder: Path, rows: Iterable[Row]) -> None:
    """Replace the table of a folder."""
    write_file(folder / FILE, _csv([COLUMNS, *rows]), if_full=FREE_AND_RESUME)


class Board:
    """TensorBoard's file of one run. It is written in training's own thread: another could fail unnoticed."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._event = Event
        folder.mkdir(parents=True, exist_ok=True)
        self._file = EventsWriter(str(folder / "events"), filename_suffix=f".{os.getpid()}")
        self._start = SessionLog(status=SessionLog.START)

    def write(self, rows: Iterable[Row]) -> None:
        from tensorboardX.summary import scalar

        for row in rows:
            if self._start is not None:  # TensorBoard then forgets what a killed process wrote after this step
                self._file.write_event(self._event(wall_time=time.time(), step=row.step, session_log=self._start))
                self._start = None
            summary = scalar(row.name, row.value)
            self._file.write_event(self._event(wall_time=time.time(), step=row.step, summary=summary))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class MetricsWriter:
    """Appends to the table of a folder and to TensorBoard, and tells a user's function."""

    def __init__(
        self,
        folder: Path,
        tensorboard: bool = True,
        callback: Callback | None = None,
        presence: Presence | None = None,
    ) -> None:
        self._folder, self._path = folder, folder / FILE
        self._presence = presence or Presence(folder)
        self._whole = 0  # bytes of the table that are whole rows
        self._tensorboard, self._callback = tensorboard, callback
        self._boards: dict[str, Board] = {}
        self._file: BinaryIO | None = None
        self.reopen()

    def reopen(self) -> None:
        """Open the table to append to it; again after it was rewritten."""
        self._shut()
        if not self._path.exists():
            write_file(self._path, _csv([COLUMNS]), if_full=FREE_AND_RESUME)
        self._file = self._path.open("r+b", buffering=0)
        self._whole = self._file.seek(0, os.SEEK_END)

    def write(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        try:
            content = _csv(rows)
            self._presence.write(lambda: self._append(content))
            if self._tensorboard:
                self._presence.write(lambda: self._write_boards(rows))
        except OSError as error:
            if error.errno in TOO_MANY_OPEN:
                raise MachineError(too_many_open(self._folder)) from error
            raise MachineError(
                f"cannot write measurements to {self._folder} ({error.strerror}); free some space, then go on "
                "with `resume`."
            ) from error
        if self._callback is not None:
            _tell(self._callback, rows)

    def _append(self, content: bytes) -> None:
        """All of it. The next attempt writes over what a failure leaves of a row."""
        try:
            if self._file is None:
                self._file = self._path.open("r+b", buffering=0)
                self._file.seek(self._whole)
            written = 0
            while written < len(content):  # a disk may take a part
                written += self._file.write(content[written:]) or 0
            self._whole += written
        except OSError:
            self._shut()
            raise

    def _shut(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # its disk is away
                self._file.close()
            self._file = None

    def _write_boards(self, rows: Sequence[Row]) -> None:
        by_run: dict[str, list[Row]] = {}
        for row in rows:
            by_run.setdefault(row.run, []).append(row)
        for run, mine in by_run.items():
            try:
                if run not in self._boards:
                    self._boards[run] = Board(self._folder / "tensorboard" / run)
                self._boards[run].write(mine)
            except OSError:
                if run in self._boards:
                    with contextlib.suppress(OSError):
                        self._boards.pop(run).close()
                raise

    def close(self) -> None:
        self._shut()
        for board in self._boards.values():
            with contextlib.suppress(OSError):  # a full disk was reported when it was met
                board.close()


def _tell(callback: Callback, rows: Iterable[Row]) -> None:
    """What each run measured at each update, together."""
    measured: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        measured.setdefault((row.run, row.step), {})[row.name] = row.value
    for (run, step), values in measured.items():
        callback(run, step, values)


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
