"""Fleets that train in folders of their own, on several machines, and how they become one experiment again.

parts/fleet-N/attempt-K/    a folder like that of an experiment, with one fleet in it
    fleet-N/, metrics.csv, status.json, tensorboard/, training.lock    as in an experiment
    begun.json              how the driver began it; a folder without it is no attempt
    order.json              what the machine was asked to do
    progress.json           how far it is, written every few seconds
    outcome.json            how it ended
    log.txt                 what it said
parts/gathering.json        while a fleet is taken into the experiment

Every try of a fleet has an attempt of its own, which begins as a copy of the newest one. A machine that is thought to
be lost may still write: it writes into its own attempt, which nobody reads any more. So no run is trained twice into
one folder, and `gather` takes each fleet once. A machine that wakes up after that makes its folder anew when it writes.
Nobody began that folder, so it is no attempt.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from score_rl.disk import disk_errors, write_file
from score_rl.errors import InputError
from score_rl.store import metrics
from score_rl.store.checkpoints import FREE_AND_RESUME, KEEP, checkpoints
from score_rl.store.folder import STATUS, Folder
from score_rl.store.metrics import read_metrics, write_rows
from score_rl.store.records import StatusRecord, as_json

PARTS = "parts"
ORDER, PROGRESS, OUTCOME, LOG = "order.json", "progress.json", "outcome.json", "log.txt"
JOURNAL = "gathering.json"
ATTEMPT = re.compile("attempt-[0-9]{1,9}")
BEGUN = "begun.json"  # {"in_experiment": whether the experiment's table has measurements of these runs}
TRIES = 5  # to copy files that another machine may be replacing


class Part:
    """One fleet of an experiment, where it trains apart."""

    def __init__(self, experiment: Folder, number: int, runs: Sequence[str]) -> None:
        self.experiment, self.number, self.runs = experiment, number, tuple(runs)
        self.path = experiment.path / PARTS / f"fleet-{number}"

    def attempts(self) -> list[Path]:
        """The oldest first."""
        return sorted(filter(was_begun, self.path.glob("attempt-*")), key=_number_of)

    @property
    def newest(self) -> Path | None:
        return next(reversed(self.attempts()), None)

    def begin(self) -> Path:
        """A new attempt. It goes on where the newest one stands, or the fleet in the experiment's own folder."""
        before = self.newest
        temporary = self.path / f".{uuid.uuid4().hex}.part"
        fleet = f"fleet-{self.number}"
        try:
            temporary.mkdir(parents=True)
            if before is None:
                in_experiment = self._copy_from_experiment(temporary)
            else:
                in_experiment = _began_in_experiment(before)
                _copy_fleet(before / fleet, temporary / fleet)
                for name in (metrics.FILE, STATUS):  # after the checkpoints, whose measurements they then have
                    with contextlib.suppress(FileNotFoundError):
                        shutil.copyfile(before / name, temporary / name)
            if not (temporary / STATUS).exists():
                write_file(temporary / STATUS, as_json(StatusRecord()))
            write_file(temporary / BEGUN, json.dumps({"in_experiment": in_experiment}))
            return self._claimed(temporary)
        except OSError as error:
            raise InputError(f"cannot write into {self.path} ({error.strerror}); {FREE_AND_RESUME}.") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _claimed(self, temporary: Path) -> Path:
        """The folder under the first number that nobody has."""
        newest = self.newest
        number = 1 if newest is None else _number_of(newest) + 1
        while True:
            place = self.path / f"attempt-{number}"
            try:
                return temporary.rename(place)
            except OSError:
                if not place.exists():
                    raise
                number += 1

    def _copy_from_experiment(self, into: Path) -> bool:
        """What the experiment's own folder holds of this fleet, and whether that has measurements."""
        mine = set(self.runs)
        rows = [row for row in read_metrics(self.experiment.path) if row.run in mine]
        if rows:
            write_rows(into, rows)
        record = self.experiment.status()
        own = StatusRecord(runs={name: record.runs[name] for name in self.runs if name in record.runs})
        write_file(into / STATUS, as_json(own))
        _copy_fleet(self.experiment.fleet(self.number), into / f"fleet-{self.number}")
        return bool(rows)


def parts_of(experiment: Folder) -> list[Part]:
    """The fleets that train apart, or did until a driver died."""
    folder = experiment.path / PARTS
    if not folder.is_dir():
        return []
    runs: dict[int, list[tuple[int, str]]] = {}
    for run in experiment.experiment().runs:
        runs.setdefault(run.fleet, []).append((run.position, run.id))
    parts = [Part(experiment, number, [run for _, run in sorted(runs[number])]) for number in sorted(runs)]
    return [part for part in parts if part.attempts()]


def gather(part: Part, status: StatusRecord | None = None) -> None:
    """Take the newest attempt of a fleet into the experiment's folder, and remove what is apart.

    `status` is that of the experiment, where the caller has it; it is changed and written.

    A kill in the middle leaves a journal, by which the next call begins this again. So does a full disk.
    """
    settle(part.experiment)
    newest = part.newest
    if newest is None:
        shutil.rmtree(part.path, ignore_errors=True)
        return
    with disk_errors(part.experiment.path, if_full=FREE_AND_RESUME):
        _take(part, newest, status)


def _take(part: Part, newest: Path, status: StatusRecord | None) -> None:
    experiment, theirs = part.experiment, read_status(newest)
    journal = experiment.path / PARTS / JOURNAL
    began_there = _began_in_experiment(newest)
    read_metrics(newest)  # what is damaged is refused before anything is taken
    if began_there:
        _forget_measurements(experiment, part.runs)
    table = experiment.metrics_path
    write_file(journal, json.dumps({"fleet": part.number, "metrics": table.stat().st_size if table.exists() else 0}))
    _append_measurements(newest, table)
    _replace_fleet(newest / f"fleet-{part.number}", experiment.fleet(part.number))
    _move_boards(part, experiment.path / "tensorboard")
    _merge_status(experiment, status or experiment.status(), theirs)
    gone = part.path.with_name(f".gathered-{part.path.name}")
    shutil.rmtree(gone, ignore_errors=True)
    part.path.rename(gone)
    journal.unlink()
    shutil.rmtree(gone, ignore_errors=True)


def gather_all(experiment: Folder, status: StatusRecord | None = None) -> None:
    """Every fleet that is apart, finished or not; one folder is left, as of an experiment on one machine."""
    settle(experiment)
    for part in parts_of(experiment):
        gather(part, status)
    shutil.rmtree(experiment.path / PARTS, ignore_errors=True)


def settle(experiment: Folder) -> None:
    """Undo a gathering that was killed before it was complete."""
    journal = experiment.path / PARTS / JOURNAL
    if not journal.exists():
        return
    said, table = read_json(journal), experiment.metrics_path
    fleet, size = said.get("fleet"), said.get("metrics")
    most = table.stat().st_size if table.exists() else 0
    if type(fleet) is not int or type(size) is not int or not 0 <= size <= most:
        raise InputError(
            f"{journal} is damaged: it should say how long {metrics.FILE} was before a fleet was taken in; restore it "
            "from a copy, or remove it: what was measured twice then stays twice."
        )
    if any(map(was_begun, (experiment.path / PARTS / f"fleet-{fleet}").glob("attempt-*"))):
        if size:
            os.truncate(table, size)
        else:
            table.unlink(missing_ok=True)
    journal.unlink()


def read_json(path: Path) -> dict[str, Any]:
    """An object that a machine wrote; empty where it is missing or not whole."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_status(attempt: Path) -> StatusRecord:
    return Folder(attempt).status()


def was_begun(attempt: Path) -> bool:
    """Whether this is an attempt: the driver made the folder, and nobody has gathered or removed it."""
    return ATTEMPT.fullmatch(attempt.name) is not None and (attempt / BEGUN).is_file()


def _began_in_experiment(attempt: Path) -> bool:
    said = read_json(attempt / BEGUN).get("in_experiment")
    if not isinstance(said, bool):
        raise InputError(
            f"{attempt / BEGUN} is damaged: it should say whether {metrics.FILE} of the experiment has measurements of "
            "this fleet; restore it from a copy, or remove this attempt, and its fleet begins anew."
        )
    return said


def _number_of(attempt: Path) -> int:
    return int(attempt.name.removeprefix("attempt-"))


def _copy_fleet(source: Path, target: Path) -> None:
    """The checkpoints of a fleet and of its stages. They are replaced, never changed: a second name is enough."""
    folders = [source, *(stage for stage in source.glob("stage-*") if stage.is_dir())] if source.is_dir() else []
    for folder in folders:
        for _ in range(TRIES):
            found = checkpoints(folder)[:KEEP]
            into = target / folder.relative_to(source)
            into.mkdir(parents=True, exist_ok=True)
            if all(_linked(path, into / path.name) for path in found):
                break


def _linked(path: Path, target: Path) -> bool:
    """False if the file has gone meanwhile."""
    if target.exists():
        return True
    try:
        target.hardlink_to(path)
    except FileNotFoundError:
        return False
    except OSError:  # a disk without links
        try:
            shutil.copyfile(path, target)
        except FileNotFoundError:
            return False
    return True


def _replace_fleet(source: Path, target: Path) -> None:
    """What is in the experiment's folder becomes what the attempt has."""
    _copy_fleet(source, target)
    for path in checkpoints(target):
        if not (source / path.name).exists():
            path.unlink()
    for stage in target.glob("stage-*"):
        if not (source / stage.name).is_dir():
            shutil.rmtree(stage, ignore_errors=True)


def _forget_measurements(experiment: Folder, runs: Sequence[str]) -> None:
    """What the table has of these runs from before they trained apart."""
    mine = set(runs)
    rows = list(read_metrics(experiment.path))
    kept = [row for row in rows if row.run not in mine]
    if len(kept) < len(rows):
        write_rows(experiment.path, kept)


def _append_measurements(attempt: Path, table: Path) -> None:
    source = attempt / metrics.FILE
    content = source.read_bytes() if source.exists() else b""
    head, _, rows = content[: content.rfind(b"\n") + 1].partition(b"\n")
    new = not table.exists() or not table.stat().st_size
    with table.open("ab") as file:
        file.write((head + b"\n" if new and head else b"") + rows)
        file.flush()
        os.fsync(file.fileno())


def _move_boards(part: Part, into: Path) -> None:
    """TensorBoard reads all files of a run, and forgets what a later one says again."""
    for number, attempt in enumerate(part.attempts(), 1):
        for file in (attempt / "tensorboard").glob("*/events*"):
            (into / file.parent.name).mkdir(parents=True, exist_ok=True)
            file.replace(into / file.parent.name / f"{file.name}.{number}")


def _merge_status(experiment: Folder, record: StatusRecord, mine: StatusRecord) -> None:
    record.runs |= {name: dataclasses.replace(run) for name, run in mine.runs.items()}
    experiment.write_status(record)
