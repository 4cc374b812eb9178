"""How far an experiment is, wherever it trains: on this machine, on another, or on many. It reads files alone."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from score_rl.errors import InputError
from score_rl.store.folder import Folder
from score_rl.store.lock import is_held
from score_rl.store.metrics import newest_rows
from score_rl.store.parts import PROGRESS, Part, parts_of, read_json, read_status
from score_rl.store.records import ExperimentRecord, RunStatus

SPEED = "speed/updates_per_second"
SILENT = 120.0  # seconds without a word after which a machine is called silent


@dataclasses.dataclass(frozen=True)
class FleetStanding:
    """One fleet."""

    number: int
    runs: int
    step: int  # updates of each run that are done
    state: str  # waiting, training, silent, finished or diverged
    rate: float  # updates per second of each run; 0 where nothing is known
    machine: str = ""
    device: str = ""
    tries: int = 0  # tasks that a cluster has started for it


@dataclasses.dataclass(frozen=True)
class Standing:
    """An experiment."""

    state: str  # waiting, training, silent, finished, interrupted or failed
    error: str | None
    steps: int
    fleets: Sequence[FleetStanding]
    diverged: int  # runs
    doubtful: int  # runs whose values are impossible

    @property
    def runs(self) -> int:
        return sum(fleet.runs for fleet in self.fleets)

    @property
    def finished(self) -> int:
        """Runs of fleets that have all their updates."""
        return sum(fleet.runs for fleet in self.fleets if fleet.state in ("finished", "diverged"))

    @property
    def training(self) -> list[FleetStanding]:
        return [fleet for fleet in self.fleets if fleet.state == "training"]

    @property
    def rate(self) -> float:
        """Updates per second of all runs together."""
        return sum(fleet.runs * fleet.rate for fleet in self.training)

    @property
    def share(self) -> float:
        done = sum(fleet.runs * fleet.step for fleet in self.fleets)
        return done / (self.runs * self.steps)

    @property
    def seconds_left(self) -> float | None:
        """At the present pace; None where nothing trains or no pace is known yet."""
        left = sum(fleet.runs * (self.steps - fleet.step) for fleet in self.fleets if fleet.state != "diverged")
        return left / self.rate if self.rate else None


def read_standing(path: Path) -> Standing:
    """How far the experiment in a folder is."""
    folder = Folder.open(path)
    record, status = folder.experiment(), folder.status()
    apart = {part.number: part for part in parts_of(folder)}
    alive = _is_alive(folder, apart)
    fleets: dict[int, list[str]] = {}
    for run in record.runs:
        fleets.setdefault(run.fleet, []).append(run.id)
    rates = {row.run: row.value for row in newest_rows(path) if row.name == SPEED}
    standings, statuses = [], dict(status.runs)
    for number, runs in sorted(fleets.items()):
        if number in apart:
            statuses |= _own_status(apart[number])
            standings.append(_apart(apart[number], record, statuses, alive))
        else:
            standings.append(_here(number, runs, statuses, rates, alive))
    known = [statuses[run.id] for run in record.runs if run.id in statuses]
    return Standing(
        state=_state(status.state, alive),
        error=status.error if status.state == "failed" else None,
        steps=record.request.steps,
        fleets=standings,
        diverged=sum(run.state == "diverged" for run in known),
        doubtful=sum(run.warning is not None for run in known),
    )


def _is_alive(folder: Folder, apart: Mapping[int, Part]) -> bool:
    """Whether somebody trains there: by the lock, and from another machine by when something was written last."""
    held = is_held(folder.path)
    if held is not None:
        return held
    files = [folder.path / "status.json", folder.metrics_path]
    files += [part.newest / PROGRESS for part in apart.values() if part.newest is not None]
    written = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
    return time.time() - written < SILENT


def _state(stored: str, alive: bool) -> str:
    if stored in ("running", "started"):
        return "training" if alive else "silent"
    return stored


def _own_status(part: Part) -> dict[str, RunStatus]:
    """What the newest attempt says of its runs; nothing while it is being written."""
    try:
        return {} if part.newest is None else read_status(part.newest).runs
    except InputError:
        return {}


def _apart(part: Part, record: ExperimentRecord, statuses: Mapping[str, RunStatus], alive: bool) -> FleetStanding:
    """A fleet that a cluster trains."""
    newest = part.newest
    said = {} if newest is None else read_json(newest / PROGRESS)
    stored = max((statuses[run].step for run in part.runs if run in statuses), default=0)
    step = max(stored, _number(said, "step"))
    heard = time.time() - _number(said, "at") < SILENT
    state = "training" if said and alive and heard else "silent" if said else "waiting"
    return FleetStanding(
        number=part.number,
        runs=len(part.runs),
        step=int(min(step, record.request.steps)),
        state=state,
        rate=_number(said, "updates_per_second") if state == "training" else 0.0,
        machine=str(said.get("machine", "")),
        device=str(said.get("device", "")),
        tries=len(part.attempts()),
    )


def _here(
    number: int, runs: Sequence[str], statuses: Mapping[str, RunStatus], rates: Mapping[str, float], alive: bool
) -> FleetStanding:
    """A fleet in the experiment's own folder: finished, or trained by the process that holds it."""
    known = [statuses[run] for run in runs if run in statuses]
    states = {run.state for run in known}
    step = max((run.step for run in known), default=0)
    if "finished" in states:
        state = "finished"
    elif states == {"diverged"}:
        state = "diverged"
    elif not known:
        state = "waiting"
    else:
        state = "training" if alive else "silent"
    rate = max((rates[run] for run in runs if run in rates), default=0.0)
    return FleetStanding(number, len(runs), step, state, rate if state == "training" else 0.0)


def _number(said: Mapping[str, Any], name: str) -> float:
    value = said.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
