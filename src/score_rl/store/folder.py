"""The folder of an experiment: what it was, what happened, what came out. `report` reads nothing else.

experiment.json     the request, every run with its settings, data sets with checksums, versions, device
status.json         whether it goes on, and each run's step and state (training, finished, diverged)
metrics.csv         one long table: run, step, name, value
fleet-N/step-*.safetensors    the newest two checkpoints of each fleet, all runs stacked
fleet-N/stage-NAME/           the same of a stage before training, while it lasts
tensorboard/RUN/    the same metrics for TensorBoard
training.lock       held by the process that trains, see `holding`
"""

import contextlib
import csv
import io
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from score_rl.errors import InputError
from score_rl.store.checkpoints import write_whole
from score_rl.versions import version_of

FORMAT = 1
COLUMNS = ("run", "step", "name", "value")


class Row(NamedTuple):
    run: str
    step: int
    name: str
    value: float


class MetricsTable:
    """Measurements of an experiment, column by column."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Any:
        return iter(self._rows)

    @property
    def runs(self) -> list[str]:
        return list(dict.fromkeys(row.run for row in self._rows))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(row.name for row in self._rows))

    def of(self, run: str) -> "MetricsTable":
        return MetricsTable(row for row in self._rows if row.run == run)

    def curve(self, name: str, run: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one metric of one run."""
        rows = [row for row in self._rows if row.name == name and run in (None, row.run)]
        if len({row.run for row in rows}) > 1:
            raise InputError(f"{name} was measured in several runs; say which: {', '.join(self.runs)}.")
        return np.array([row.step for row in rows]), np.array([row.value for row in rows])

    def last(self, name: str, run: str | None = None) -> float | None:
        _, values = self.curve(name, run)
        return float(values[-1]) if len(values) else None


def provenance() -> dict[str, Any]:
    """What produced a result: code, libraries, machine."""
    import jax

    from score_rl.engine.compilation import processor

    packages = ("score-rl", "jax", "jaxlib", "equinox", "optax", "numpy", "mujoco", "gymnasium", "h5py", "safetensors")
    versions = {package: version_of(package) for package in packages}
    devices = jax.local_devices()
    return {
        "code": _code_version(),
        "versions": versions,
        "python": platform.python_version(),
        "device": {"platform": devices[0].platform, "kind": devices[0].device_kind, "count": len(devices)},
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


CODE_VERSION = "SCORE_RL_CODE_VERSION"  # what to store as the code's version, where a copy's git cannot say


def _code_version() -> str:
    """What SCORE_RL_CODE_VERSION says, else the commit when run from a checkout, else the installed version."""
    if os.environ.get(CODE_VERSION):
        return os.environ[CODE_VERSION]
    source = Path(__file__).resolve().parent
    try:
        git = ["git", "-C", str(source)]
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, timeout=10)
        if top.returncode == 0 and (Path(top.stdout.strip()) / "src" / "score_rl").is_dir():
            commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
            changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, timeout=10)
            if commit.returncode == 0:
                return commit.stdout.strip() + (" with uncommitted changes" if changed.stdout.strip() else "")
    except (OSError, subprocess.TimeoutExpired):
        pass  # no git on this machine
    return version_of("score-rl")


class Folder:
    """Reads and writes an experiment's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def refuse_if_taken(path: Path) -> None:
        if (path / "experiment.json").exists():
            raise InputError(
                f"{path} holds another experiment; go on with it by `score train --resume {path}`, "
                "or give another --out."
            )
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path} exists and is not an empty folder; give another --out.")

    @classmethod
    def create(cls, path: Path, experiment: Mapping[str, Any]) -> "Folder":
        cls.refuse_if_taken(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot create {path} ({error.strerror}); give another --out.") from error
        folder = cls(path)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        folder.write_experiment({"format": FORMAT, "created": created, **experiment})
        return folder

    @classmethod
    def open(cls, path: Path) -> "Folder":
        if not (path / "experiment.json").is_file():
            raise InputError(f"{path} holds no experiment (no experiment.json); give the folder that training wrote.")
        return cls(path)

    def experiment(self) -> dict[str, Any]:
        try:
            stored = json.loads((self.path / "experiment.json").read_text())
        except json.JSONDecodeError as error:
            raise InputError(f"{self.path / 'experiment.json'} is not valid JSON ({error}).") from error
        if stored.get("format") != FORMAT:
            raise InputError(
                f"{self.path} was written in format {stored.get('format')}, this version reads format {FORMAT}; "
                "use the version that wrote it."
            )
        return stored

    def write_experiment(self, experiment: Mapping[str, Any]) -> None:
        write_whole(self.path / "experiment.json", _json(experiment))

    def fleet(self, number: int) -> Path:
        return self.path / f"fleet-{number}"

    def write_status(self, status: Mapping[str, Any]) -> None:
        write_whole(self.path / "status.json", _json(status))

    def status(self) -> dict[str, Any]:
        path = self.path / "status.json"
        try:
            return json.loads(path.read_text()) if path.exists() else {"state": "started", "runs": {}}
        except json.JSONDecodeError as error:
            raise InputError(f"{path} is not valid JSON ({error}); remove it, and training writes another.") from error

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.csv"

    def metrics(self) -> MetricsTable:
        return MetricsTable(self._read_metrics())

    def _read_metrics(self) -> list[Row]:
        if not self.metrics_path.exists():
            return []
        text = self.metrics_path.read_text()
        whole = text[: text.rfind("\n") + 1]  # a kill may have cut the last line
        rows = csv.reader(io.StringIO(whole))
        next(rows, None)
        return [Row(run, int(step), name, float(value)) for run, step, name, value in rows]

    def rewind_metrics(
        self, runs: Iterable[str], step: int, counted: Callable[[str], bool] = lambda name: True
    ) -> MetricsTable:
        """Forget what these runs measured after `step`: it will be measured again.

        Only metrics that are `counted` in these steps: a stage before training counts epochs of its own.
        """
        chosen = set(runs)
        rows = [
            row for row in self._read_metrics() if row.run not in chosen or row.step <= step or not counted(row.name)
        ]
        write_whole(self.metrics_path, _csv([COLUMNS, *rows]))
        return MetricsTable(rows)


class Board:
    """TensorBoard's file of one run, written in step with training: no thread that could fail on its own."""

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
            if self._start is not None:  # tells TensorBoard to forget what a killed process wrote after this step
                self._file.write_event(self._event(wall_time=time.time(), step=row.step, session_log=self._start))
                self._start = None
            summary = scalar(row.name, row.value)
            self._file.write_event(self._event(wall_time=time.time(), step=row.step, summary=summary))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class MetricsWriter:
    """Appends to the long table and to TensorBoard."""

    def __init__(self, folder: Folder, tensorboard: bool = True) -> None:
        self._folder = folder
        self._tensorboard = tensorboard
        self._boards: dict[str, Board] = {}
        self._file: BinaryIO | None = None
        self.reopen()

    def reopen(self) -> None:
        """After the table was rewritten: append to the new file."""
        if self._file is not None:
            self._file.close()
        if not self._folder.metrics_path.exists():
            write_whole(self._folder.metrics_path, _csv([COLUMNS]))
        self._file = self._folder.metrics_path.open("ab", buffering=0)

    def write(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        assert self._file is not None
        try:
            self._file.write(_csv(rows))
            if self._tensorboard:
                by_run: dict[str, list[Row]] = {}
                for row in rows:
                    by_run.setdefault(row.run, []).append(row)
                for run, mine in by_run.items():
                    if run not in self._boards:
                        self._boards[run] = Board(self._folder.path / "tensorboard" / run)
                    self._boards[run].write(mine)
        except OSError as error:
            raise InputError(
                f"cannot write measurements to {self._folder.path} ({error.strerror}); free some space, then go on "
                "with --resume."
            ) from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        for board in self._boards.values():
            with contextlib.suppress(OSError):  # a full disk was reported when it was met
                board.close()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, default=_plain) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
