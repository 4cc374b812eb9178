"""What `experiment.json` and `status.json` hold. Everyone reads and writes them through these records.

Both files carry `format`, one number for the layout of both. A file of an older format is brought to the present
layout when it is read (`older_formats`), and is written in the present one when it changes.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from score_rl.data.labels import NO_LABELS, Labels
from score_rl.errors import InputError, printable
from score_rl.store.fields import Fields
from score_rl.store.older_formats import upgrade_experiment, upgrade_status
from score_rl.store.request import ExperimentSpec

FORMAT = 3
EXPERIMENT_STATES = ("started", "running", "finished", "interrupted", "failed")
WARNING = "Warning,"  # begins those notes before training that make results doubtful
RUN_STATES = ("not started", "training", "finished", "diverged")


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """One run: what it trains on, with which settings, and where its arrays lie."""

    id: str
    algorithm: str
    dataset: str  # its name among the data sets of the experiment
    checksum: str  # of the data
    environment: str | None  # that the data name; the request may override it
    observation_dim: int
    action_dim: int
    seed: int
    config: Mapping[str, Any]  # all settings, as JSON has them
    fleet: int
    position: int  # its row in the arrays of its fleet

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, stored: Fields) -> "RunRecord":
        return cls(
            id=stored.get("id", str),
            algorithm=stored.get("algorithm", str),
            dataset=stored.get("dataset", str),
            checksum=stored.get("checksum", str),
            environment=stored.optional("environment", str),
            observation_dim=stored.whole("observation_dim", 1),
            action_dim=stored.whole("action_dim", 1),
            seed=stored.whole("seed"),
            config=stored.get("config", dict),
            fleet=stored.whole("fleet"),
            position=stored.whole("position"),
        )


def config_json(config: Any) -> dict[str, Any]:
    """The settings of a run as its record holds them."""
    return {
        field.name: list(value) if isinstance(value := getattr(config, field.name), tuple) else value
        for field in dataclasses.fields(config)
    }


@dataclasses.dataclass(frozen=True)
class DatasetRecord:
    """One data set: which bytes it was, where it came from, and how good the behaviour policy is."""

    checksum: str
    rows: int | None
    trajectories: int | None
    environment: str | None
    source: Mapping[str, Any]
    behaviour_return: float | None = None  # None: no recorded trajectory is as long as an episode
    behaviour_return_std: float | None = None
    behaviour_score: float | None = None  # None: the environment has no reference scores
    behaviour_score_std: float | None = None
    behaviour_reward: float | None = None  # per step
    labels: Labels = NO_LABELS  # names and units of the columns

    def to_json(self) -> dict[str, Any]:
        """Without what is not known of the behaviour policy or of the names of columns."""
        fields = {name: value for name, value in vars(self).items() if name != "labels"}
        known = {name: value for name, value in fields.items() if value is not None or not name.startswith("behaviour")}
        return known | self.labels.to_json()

    @classmethod
    def from_json(cls, stored: Fields) -> "DatasetRecord":
        return cls(
            checksum=stored.get("checksum", str),
            rows=stored.optional("rows", int),
            trajectories=stored.optional("trajectories", int),
            environment=stored.optional("environment", str),
            source=stored.optional("source", dict) or {},
            behaviour_return=stored.optional("behaviour_return", float),
            behaviour_return_std=stored.optional("behaviour_return_std", float),
            behaviour_score=stored.optional("behaviour_score", float),
            behaviour_score_std=stored.optional("behaviour_score_std", float),
            behaviour_reward=stored.optional("behaviour_reward", float),
            labels=Labels(_names(stored, "observation_names"), _names(stored, "action_names"), _units(stored)),
        )


def _names(stored: Fields, key: str) -> tuple[str, ...] | None:
    return tuple(stored.list_of(key, str)) if stored.values.get(key) is not None else None


def _units(stored: Fields) -> dict[str, str]:
    units = stored.inner("units") if stored.values.get("units") is not None else None
    return {} if units is None else {name: units.get(name, str) for name in units.values}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclasses.dataclass(frozen=True)
class ExperimentRecord:
    """`experiment.json`: what was asked for, what it expands to, on which data and by which versions."""

    request: ExperimentSpec
    provenance: Mapping[str, Any]  # `store/provenance.py` says what is in it
    datasets: Mapping[str, DatasetRecord]
    runs: tuple[RunRecord, ...]
    began_in: str | None = None  # the folder relative to which the request names its files
    folder: Path | None = dataclasses.field(default=None, compare=False)  # where it was read from; not stored
    created: str = dataclasses.field(default_factory=_now)
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "created": self.created,
            "request": self.request.to_json(),
            "began_in": self.began_in,
            "provenance": dict(self.provenance),
            "datasets": {name: dataset.to_json() for name, dataset in self.datasets.items()},
            "runs": [run.to_json() for run in self.runs],
        }

    @classmethod
    def from_json(cls, stored: Any, file: Path) -> "ExperimentRecord":
        fields = Fields(stored, file)
        written_in = fields.optional("format", int)
        if written_in is None or not 1 <= written_in <= FORMAT:
            raise InputError(
                f"{file.parent} was written in format {written_in}, this version reads formats 1 to {FORMAT}; "
                "use the version that wrote it."
            )
        if written_in < FORMAT:
            fields = Fields(upgrade_experiment(fields.values, written_in), file)
        request = ExperimentSpec.from_json(fields.inner("request"))
        runs = tuple(RunRecord.from_json(each) for each in fields.inner_list("runs"))
        datasets = {name: DatasetRecord.from_json(each) for name, each in fields.inner_by_name("datasets")}
        problem = _disagreement(request, runs, datasets)
        if problem is not None:
            raise InputError(f"{file} cannot be read: {printable(problem)}; restore the file from a copy.")
        return cls(
            request=request,
            provenance=fields.optional("provenance", dict) or {},
            datasets=datasets,
            runs=runs,
            began_in=fields.optional("began_in", str),
            folder=file.parent,
            created=fields.get("created", str),
        )


def _disagreement(
    request: ExperimentSpec, runs: Sequence[RunRecord], datasets: Mapping[str, DatasetRecord]
) -> str | None:
    """What does not fit together in a record; None in one that training wrote."""
    asked = [algorithm.name for algorithm in request.algorithms]
    if not asked or not runs:
        return f"it names {len(asked)} algorithms and {len(runs)} runs"
    if len({run.id for run in runs}) < len(runs) or len({(run.fleet, run.position) for run in runs}) < len(runs):
        return "two runs have the same name or the same place"
    for run in runs:
        if run.algorithm not in asked:
            return f"{run.id} trains {run.algorithm}, and the request names {', '.join(asked)}"
        if run.dataset not in datasets:
            return f"{run.id} learns from {run.dataset}, of which nothing is stored"
        if not run.id.isprintable() or {"/", os.sep} & {*run.id} or run.id in ("", ".", ".."):
            return f"{run.id!r} is no name of a run, since files are called by it"
    names = [*datasets, *asked, *(setting for run in runs for setting in run.config)]
    return next((f"{name!r} is no name that can be shown" for name in names if not name.isprintable()), None)


@dataclasses.dataclass
class RunStatus:
    """How far one run is."""

    state: str = "not started"
    step: int = 0
    diverged_at: int | None = None  # the update by which its metrics were no longer finite
    warning: str | None = None  # why its policy should not be trusted, for as long as that is so

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Fields) -> "RunStatus":
        return cls(
            state=stored.choice("state", RUN_STATES),
            step=stored.whole("step"),
            diverged_at=stored.optional("diverged_at", int),
            warning=stored.optional("warning", str),
        )


@dataclasses.dataclass
class StatusRecord:
    """`status.json`: how far the experiment is. Training changes it as it goes on."""

    state: str = "started"
    error: str | None = None  # why it failed
    runs: dict[str, RunStatus] = dataclasses.field(default_factory=dict)  # those that training has reached
    notes: tuple[str, ...] = ()  # what was told before training: of data, settings and schedules

    def of(self, run: str) -> RunStatus:
        """A copy of a run's status; of one that training has not reached, that it has not started."""
        return dataclasses.replace(self.runs.get(run, RunStatus()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the notes that make results doubtful."""
        return tuple(note for note in self.notes if note.startswith(WARNING))

    def to_json(self) -> dict[str, Any]:
        error = {} if self.error is None else {"error": self.error}
        notes = {"notes": list(self.notes)} if self.notes else {}
        runs = {name: run.to_json() for name, run in self.runs.items()}
        return {"format": FORMAT, "state": self.state, **error, **notes, "runs": runs}

    @classmethod
    def from_json(cls, stored: Any, file: Path) -> "StatusRecord":
        fields = Fields(stored, file)
        if "format" not in fields.values:  # format 1 did not say it here
            fields = Fields(upgrade_status(fields.values), file)
        return cls(
            state=fields.choice("state", EXPERIMENT_STATES),
            error=fields.optional("error", str),
            notes=tuple(fields.list_of("notes", str)) if "notes" in fields.values else (),
            runs={name: RunStatus.from_json(each) for name, each in fields.inner_by_name("runs")},
        )


def as_json(record: ExperimentRecord | StatusRecord) -> bytes:
    """The content of a record's file."""
    return (json.dumps(record.to_json(), indent=1, default=_plain) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
