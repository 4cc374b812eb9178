"""Tasks as jobs of SLURM, by submitit. Nothing else in this package imports submitit.

submitit keeps its scripts, pickles and logs in a folder of its own, which all machines must see: `logs=FOLDER`, and
.score-rl-slurm where the driver was called. What it pickles is the name of `run_file` and the path of a JSON file.
Nothing of that lies in an experiment's folder, and no answer is unpickled: jobs answer in JSON files.
"""

import contextlib
import inspect
import json
import os
import re
import signal
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from score_rl.cluster.engines import Ended, Task
from score_rl.cluster.orders import DataEntry, Order, Outcome
from score_rl.disk import cache_folder, private_folder, write_file
from score_rl.errors import InputError, not_installed
from score_rl.run.messages import Announcer
from score_rl.store.parts import ORDER, OUTCOME, read_json

EXECUTORS = ("slurm", "local", "debug")
JOBS = "jobs"  # in the cache: which job trains an attempt
TOKEN, NUMBER = re.compile("[0-9a-f]{32}"), re.compile("[0-9]{1,18}")
OWN = ("at_once", "logs", "minutes")
LOGS = ".score-rl-slurm"
AT_ONCE = 16
MINUTES = 24 * 60
ANSWER = "answer.json"
SILENCE = 5.0  # seconds after a job's end until its files are there, on a slow disk


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise not_installed("--on slurm needs submitit", "slurm") from None
    return submitit


class SlurmEngine:
    """One job for each fleet. Jobs go on without the driver, and the next one takes them over."""

    title = "SLURM"

    def __init__(self, executor: str | None, task: Task, announcer: Announcer) -> None:
        self._submitit, self._announcer = _submitit(), announcer
        self._kind = executor or "slurm"
        if self._kind not in EXECUTORS:
            raise InputError(f"`on` is slurm:{executor}; it must be slurm, slurm:local or slurm:debug.")
        self._at_once = int(task.number("at_once", AT_ONCE) or AT_ONCE)
        self._logs = Path(task.values.get("logs", LOGS)).absolute()
        self._executor = self._made(task)
        self._running: dict[int, tuple[Order, Any]] = {}

    def _made(self, task: Task) -> Any:
        try:
            executor = self._submitit.AutoExecutor(self._logs, cluster=self._kind)
        except (RuntimeError, ValueError, OSError) as error:
            raise InputError(
                f"SLURM cannot be used from here ({error}); call this on a machine that has sbatch, or try "
                "--on slurm:local, which runs the same jobs on this machine."
            ) from error
        minutes = int(task.number("minutes", MINUTES) or MINUTES)
        executor.update_parameters(name="score-rl", timeout_min=minutes, **self._options(task))
        return executor

    def _options(self, task: Task) -> dict[str, Any]:
        """What was said, in submitit's words where it has one and in sbatch's otherwise."""
        from submitit.slurm.slurm import _make_sbatch_string

        named = set(inspect.signature(_make_sbatch_string).parameters) - {"command", "folder", "additional_parameters"}
        said = {name: _plain(value) for name, value in task.values.items() if name not in OWN}
        known = {f"slurm_{name}": value for name, value in said.items() if name in named}
        others = {name: value for name, value in said.items() if name not in named}
        return known | ({"slurm_additional_parameters": others} if others else {})

    # -- machines ------------------------------------------------------------------------------------------------

    def survey(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [self.ask(question, (), "")]

    def ask(self, question: Mapping[str, Any], needs: Sequence[DataEntry], device: str) -> dict[str, Any]:
        """By a job, which may have to wait in the queue."""
        folder = self._logs / f"question-{uuid.uuid4().hex[:12]}"
        file = folder / "question.json"
        write_file(file, json.dumps(_near(question, needs, folder)))
        self._announcer.say(
            f"A short job asks a machine about itself ({self._kind}); it waits in the queue like others."
        )
        job = self._submitted("survey", file)
        try:
            while not (folder / ANSWER).exists():
                if _is_over(job):
                    _wait_for(folder / ANSWER)
                    break
                time.sleep(0.2)
            answer = read_json(folder / ANSWER)
        except BaseException:
            job.cancel(check=False)
            raise
        if not answer:
            raise InputError(f"the job {job.job_id} ended without an answer; look at its output in {self._logs}.")
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return answer

    def places(self) -> int:
        return self._at_once

    # -- tasks ---------------------------------------------------------------------------------------------------

    def avoid(self, place: str) -> bool:
        return False  # SLURM takes bad nodes out itself

    def start(self, order: Order) -> None:
        job = self._submitted("work", order.path / ORDER)
        with contextlib.suppress(InputError):  # where there is no cache, the next driver begins another attempt
            private_folder(cache_folder() / JOBS)
            write_file(_note(order), json.dumps({"job": str(job.job_id), "kind": self._kind, "logs": str(self._logs)}))
        self._running[order.number] = order, job

    def _submitted(self, kind: str, file: Path) -> Any:
        try:
            return self._executor.submit(run_file, kind, str(file))
        except self._submitit.core.utils.FailedJobError as error:
            reason = " ".join(str(error.__cause__ or error).split())[-300:]
            raise InputError(f"SLURM refused a job ({reason}); look at what `task` asks for.") from error

    def adopt(self, order: Order) -> bool:
        """Only a job that this user's cache knows: a folder from a stranger could name any job, which is then ended."""
        said = read_json(_note(order)) if TOKEN.fullmatch(order.token) else {}
        known = said.get("kind") == self._kind and NUMBER.fullmatch(str(said.get("job"))) is not None
        if not known or (order.path / OUTCOME).exists():
            return False
        job: Any = None
        if self._kind == "slurm":
            job = self._submitit.SlurmJob(folder=said.get("logs", str(self._logs)), job_id=str(said["job"]))
        elif self._kind == "local":
            job = _Process(int(said["job"]))
        if job is None or _is_over(job, certain=True):
            return False
        self._running[order.number] = order, job
        return True

    def active(self) -> int:
        return len(self._running)

    def ended(self, seconds: float) -> list[Ended]:
        until = time.monotonic() + seconds
        while True:
            over = [number for number, (order, job) in self._running.items() if self._has_ended(order, job)]
            if over or time.monotonic() >= until:
                return [self._ended(number) for number in over]
            time.sleep(0.1)

    def _has_ended(self, order: Order, job: Any) -> bool:
        return (order.path / OUTCOME).exists() or _is_over(job)

    def _ended(self, number: int) -> Ended:
        order, job = self._running.pop(number)
        _note(order).unlink(missing_ok=True)
        outcome = Outcome.from_json(read_json(order.path / OUTCOME))
        if outcome is None:
            _wait_for(order.path / OUTCOME)
            outcome = Outcome.from_json(read_json(order.path / OUTCOME))
        if outcome is None or outcome.state != "finished":
            job.cancel(check=False)  # SLURM may have put it back into its queue
        return Ended(number, outcome, f"its job {job.job_id} ended ({job.state})")

    def stop(self) -> None:
        """The driver's file among the parts is enough; a job that has not begun is cancelled."""
        for _, job in self._running.values():
            if str(job.state).upper() == "PENDING":
                job.cancel(check=False)

    def close(self) -> None:
        for _, job in self._running.values():
            with contextlib.suppress(Exception):  # it may have ended just now
                job.cancel(check=False)
        self._running = {}

    def script(self) -> str:
        """The batch script that SLURM gets for a task."""
        made = self._executor._executor._make_submission_file_text("COMMAND", "ID")
        return str(made)


def _note(order: Order) -> Path:
    return cache_folder() / JOBS / f"{order.token}.json"


class _Process:
    """A job of submitit's local executor that an earlier driver started."""

    def __init__(self, process: int) -> None:
        self.job_id = str(process)

    def done(self) -> bool:
        try:
            os.kill(int(self.job_id), 0)
        except ProcessLookupError:
            return True
        return False

    @property
    def state(self) -> str:
        return "FINISHED" if self.done() else "RUNNING"

    def cancel(self, check: bool = True) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self.job_id), signal.SIGTERM)


def _wait_for(file: Path) -> None:
    """Of a job that is over. A slow disk shows its files a little later."""
    until = time.monotonic() + SILENCE
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.1)


def _is_over(job: Any, *, certain: bool = False) -> bool:
    """As far as SLURM says; `certain` asks it now, where it would be asked now and then."""
    if certain and hasattr(job, "watcher"):
        return bool(job.watcher.is_done(str(job.job_id), mode="force"))
    return bool(job.done())


def _near(question: Mapping[str, Any], needs: Sequence[DataEntry], folder: Path) -> dict[str, Any]:
    """The question with its data sets beside it, where all machines see them."""
    near = dict(question)
    if not needs:
        return near
    order = dict(near["order"])
    entries = []
    for entry in needs:
        target = folder / Path(entry.file).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(entry.file).read_bytes())
        entries.append({**vars(entry), "file": str(target)})
    near["order"] = order | {"data": entries}
    return near


def _plain(value: str) -> str | int:
    return int(value) if value.isdecimal() else value


def run_file(kind: str, file: str) -> int:
    """What a job runs: this package's code for the JSON in a file. SLURM's warning before the end asks it to stop."""
    from score_rl.cluster import survey, work
    from score_rl.run.signals import StopRequest

    if kind == "survey":
        return survey.main([file])
    stop = StopRequest()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True

    warned = getattr(signal, "SIGUSR2", None)
    before = None
    with contextlib.suppress(ValueError):  # not in the main thread
        before = signal.signal(warned, ask) if warned is not None else None
    try:
        return work.main([file], stop)
    finally:
        if before is not None and warned is not None:
            signal.signal(warned, before)
