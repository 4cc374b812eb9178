"""Jobs side by side on one GPU, each a process of its own, until all are done or time is up."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console

from benchmarks.training.sharing import end_of, gpu_for_many, told_to_share, trainings_beside
from score_rl.disk import write_file
from score_rl.errors import InputError
from score_rl.store.folder import EXPERIMENT, Folder

from .account import ACCOUNT, Entry, add_to_account
from .conditions import Conditions
from .data import Collecting, file_of
from .fleets import JOB_FILE, Job
from .one import INTERRUPTED, RUN
from .plan import Planned

CORES_TO_EACH = 4  # at least: from four on, processes judge policies
SLOWER_BESIDE_EACH = 0.25  # a job takes so much longer for every other at its side, until it was measured
LOW_PRIORITY_FROM = 120.0  # seconds; NVIDIA's service then lets shorter jobs go first
SECONDS_TO_STOP = 30.0  # a window, a checkpoint and what is stored
SECONDS_BETWEEN_LINES = 60.0
KILLED = (-signal.SIGTERM, -signal.SIGKILL)  # exit codes of jobs that had to end before they had begun, or at once


@dataclass(frozen=True)
class Room:
    """What jobs may use together."""

    seconds: float
    slots: int  # jobs side by side
    memory_share: float  # of the GPU's memory, for each at most; more than 1 / slots, since few need much
    cores: tuple[int, ...]
    only_what_ends: bool = False  # begin no job that will be interrupted
    beside: Path | None = None  # a file with the number of other trainings on the GPU

    def cores_of(self, slot: int) -> list[int]:
        """A part of the cores for each slot. Parts overlap: a job needs many while it is judged, else few."""
        number = min(len(self.cores), max(CORES_TO_EACH, 2 * len(self.cores) // self.slots))
        first = slot * len(self.cores) // self.slots
        return [self.cores[(first + n) % len(self.cores)] for n in range(number)]


@dataclass
class Running:
    """A job that is being trained."""

    planned: Planned
    slot: int
    process: "subprocess.Popen[bytes]"
    updates_before: int
    began: float = field(default_factory=time.monotonic)
    stamp: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    gpu_seconds: float = 0.0
    has_data_since: float | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def pace(self) -> float:
        """How long it takes, beside others, over what it would take alone. Waiting for data does not count."""
        return (time.monotonic() - (self.has_data_since or self.began)) / self.planned.seconds


class Packing:
    """Starts jobs in their order, as many as there are slots, and keeps the account."""

    def __init__(self, plan: Sequence[Planned], conditions: Conditions, room: Room, console: Console) -> None:
        self._waiting, self._conditions, self._room, self._console = list(plan), conditions, room, console
        self._running: list[Running] = []
        self._paces: list[float] = []  # seconds a job took, over what it would take alone
        self._began = self._told = time.monotonic()
        self._is_stopping = False
        self.finished: list[str] = []
        self.failed: list[str] = []

    @property
    def seconds_left(self) -> float:
        return self._room.seconds - SECONDS_TO_STOP - (time.monotonic() - self._began)

    def work(self) -> None:
        """Until nothing is left, or time is."""
        names = [name for planned in self._waiting for name in planned.job.datasets]
        collecting = Collecting(self._conditions.data, names, self._conditions.logs)
        try:
            with gpu_for_many():
                while self.seconds_left > 0:
                    for name, why in collecting.go_on().items():
                        self._drop_without_data(name, why)
                    self._start_jobs()
                    if not self._running:
                        break
                    self._tick(0.25)
                self._stop_all()
        except BaseException:
            self._stop_all()
            raise
        finally:
            collecting.end()

    # -- starting ------------------------------------------------------------------------------------------------

    def _drop_without_data(self, name: str, why: str) -> None:
        """Jobs on a data set that could not be collected."""
        self._console.print(f"{name} could not be collected:\n{why}", markup=False)
        for running in [running for running in self._running if name in running.planned.job.datasets]:
            running.process.terminate()  # it waits for these data
        self.failed += [planned.job.name for planned in self._waiting if name in planned.job.datasets]
        self._waiting = [planned for planned in self._waiting if name not in planned.job.datasets]

    def _start_jobs(self) -> None:
        while len(self._running) < self._room.slots and self.seconds_left > 0:
            planned = self._next()
            if planned is None:
                return
            self._start(planned)

    def _next(self) -> Planned | None:
        """The first that can end in time, or some data sets of it; if nothing can, the first: it goes on next time."""
        for number, planned in enumerate(self._waiting):
            if self._expected(planned) <= self.seconds_left:
                return self._waiting.pop(number)
            part = None if planned.begun else self._part_in_time(planned)
            if part is not None:
                rest = tuple(name for name in planned.job.datasets if name not in part.job.datasets)
                self._waiting[number] = _with_datasets(planned, rest)
                return part
        return self._waiting.pop(0) if self._waiting and not self._room.only_what_ends else None

    def _part_in_time(self, planned: Planned) -> Planned | None:
        for number in range(len(planned.job.datasets) - 1, 0, -1):
            part = _with_datasets(planned, planned.job.datasets[:number])
            if self._expected(part) <= self.seconds_left:
                return part
        return None

    def _expected(self, planned: Planned) -> float:
        """Seconds, beside so many others as now."""
        pace = median(self._paces) if self._paces else 1 + SLOWER_BESIDE_EACH * (self._room.slots - 1)
        return planned.seconds * pace

    def _start(self, planned: Planned) -> None:
        job, taken = planned.job, {running.slot for running in self._running}
        folder = self._conditions.jobs / job.name
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / JOB_FILE, json.dumps(job.to_json(), indent=1) + "\n")
        slot = next(number for number in range(self._room.slots) if number not in taken)
        environment = told_to_share(self._room.memory_share) | {
            "CUDA_MPS_CLIENT_PRIORITY": "1" if planned.seconds > LOW_PRIORITY_FROM else "0",
            "QUEUE_CORES": ",".join(map(str, self._room.cores_of(slot))),
        }
        with (self._conditions.logs / f"{job.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.training.queue.one", str(folder)],
                env=os.environ | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the queue, which stops its jobs in good order
            )
        self._running.append(Running(planned, slot, process, reached(self._conditions, job)))
        self._tell(f"begins   {job.name}")

    # -- while they run ------------------------------------------------------------------------------------------

    def _tick(self, seconds: float) -> None:
        time.sleep(seconds)
        training = [running for running in self._running if self._has_data(running)]
        sharers = len(training) + trainings_beside(self._room.beside)
        for running in training:
            running.gpu_seconds += seconds / sharers
        for running in [running for running in self._running if running.process.poll() is not None]:
            self._end(running)
        if time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self._tell(", ".join(f"{r.planned.job.name} for {r.seconds:.0f} s" for r in self._running))

    def _has_data(self, running: Running) -> bool:
        data, names = self._conditions.data, running.planned.job.datasets
        if running.has_data_since is None and all(file_of(data, name).exists() for name in names):
            running.has_data_since = time.monotonic()
        return running.has_data_since is not None

    def _end(self, running: Running) -> None:
        job, code = running.planned.job, running.process.returncode
        stopped = code == INTERRUPTED or (self._is_stopping and code in KILLED)
        outcome = "finished" if code == 0 else "interrupted" if stopped else "failed"
        self._running.remove(running)
        folder = self._conditions.jobs / job.name
        updates = reached(self._conditions, job)
        device = _device(self._conditions, job)
        entry = Entry(
            job.name, job.line.method, job.line.settings, job.runs, running.updates_before, updates,
            running.seconds, running.gpu_seconds, outcome, device, running.stamp,
        )  # fmt: skip
        add_to_account(self._conditions.results / ACCOUNT, [entry])
        self._tell(f"{outcome:8} {job.name} after {running.seconds:.0f} s, at update {updates:,}")
        if outcome == "finished":
            self.finished.append(job.name)
            self._paces.append(running.pace)
            shutil.rmtree(folder)  # results are stored
        elif outcome == "failed":
            self.failed.append(job.name)
            if not (folder / RUN / EXPERIMENT).exists():
                shutil.rmtree(folder)  # nothing has begun
            self._console.print(end_of(self._conditions.logs / f"{job.name}.log"), markup=False)

    def _stop_all(self) -> None:
        """Ask all for an orderly end, and kill what takes too long."""
        self._is_stopping = True
        for running in self._running:
            running.process.terminate()
        limit = time.monotonic() + SECONDS_TO_STOP - 5
        while self._running and time.monotonic() < limit:
            self._tick(0.1)
        for running in list(self._running):
            running.process.kill()
            running.process.wait()
            self._end(running)

    def _tell(self, what: str) -> None:
        self._told = time.monotonic()
        line = f"{self._told - self._began:6.0f} s  {what}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _with_datasets(planned: Planned, datasets: tuple[str, ...]) -> Planned:
    """The same for some of its data sets."""
    job = Job(planned.job.line, datasets, planned.job.seeds)
    return Planned(job, planned.seconds * len(datasets) / len(planned.job.datasets))


def reached(conditions: Conditions, job: Job) -> int:
    """Updates of the run that has come furthest, or 0."""
    path = conditions.jobs / job.name / RUN
    try:
        runs = Folder(path).status().runs.values() if (path / EXPERIMENT).exists() else ()
    except InputError:
        return 0
    return max((run.step for run in runs), default=0) * job.line.algorithm.counts_as


def _device(conditions: Conditions, job: Job) -> str:
    path = conditions.jobs / job.name / RUN
    if not (path / EXPERIMENT).exists():
        return "none"
    device = Folder.open(path).experiment().provenance.get("device", {})
    return "cpu" if device.get("platform") == "cpu" else str(device.get("kind", "unknown"))
