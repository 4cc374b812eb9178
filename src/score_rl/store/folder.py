"""The folder of an experiment: what it was, what happened, what came out. `report` reads nothing else.

experiment.json     the request, every run with its settings, data sets with checksums, versions, device
status.json         whether it goes on, and each run's step and state (training, finished, diverged)
metrics.csv         one long table: run, step, name, value
fleet-N/step-*.safetensors    the newest two checkpoints of each fleet, all runs stacked
fleet-N/stage-NAME/           the same of a stage before training, while it lasts
tensorboard/RUN/    the same metrics for TensorBoard
training.lock       held by the process that trains, see `lock`
"""

import json
import os
import stat
from pathlib import Path
from typing import Any

from score_rl.disk import read_own, write_file
from score_rl.errors import InputError, printable
from score_rl.store import metrics
from score_rl.store.checkpoints import FREE_AND_RESUME
from score_rl.store.metrics import MetricsTable
from score_rl.store.presence import Presence
from score_rl.store.records import ExperimentRecord, StatusRecord, as_json

EXPERIMENT, STATUS = "experiment.json", "status.json"


class Folder:
    """Reads and writes an experiment's folder."""

    def __init__(self, path: Path) -> None:
        self.path, self.presence = path, Presence(path)

    @staticmethod
    def refuse_if_taken(path: Path) -> None:
        if (path / EXPERIMENT).exists():
            raise InputError(
                f"{path} holds another experiment; go on with it by `score train --resume {path}`, "
                "or give another --out."
            )
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(f"{path} exists and is not an empty folder; give another --out.")

    @classmethod
    def create(cls, path: Path, experiment: ExperimentRecord) -> "Folder":
        cls.refuse_if_taken(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot create {path} ({error.strerror}); give another --out.") from error
        folder = cls(path)
        folder.write_experiment(experiment)
        return folder

    @classmethod
    def open(cls, path: Path) -> "Folder":
        if not (path / EXPERIMENT).exists():
            raise InputError(f"{path} holds no experiment (no experiment.json); give the folder that training wrote.")
        refuse_links(path)
        return cls(path)

    def experiment(self) -> ExperimentRecord:
        path = self.path / EXPERIMENT
        return ExperimentRecord.from_json(_read_json(path, "restore the file from a copy"), path)

    def write_experiment(self, experiment: ExperimentRecord) -> None:
        write_file(self.path / EXPERIMENT, as_json(experiment), if_full=FREE_AND_RESUME)

    def status(self) -> StatusRecord:
        """How far it is; "started" where nothing was written yet."""
        path = self.path / STATUS
        if not path.exists():
            return StatusRecord()
        return StatusRecord.from_json(_read_json(path, "remove it, and training writes another"), path)

    def write_status(self, status: StatusRecord) -> None:
        content = as_json(status)
        self.presence.write(lambda: write_file(self.path / STATUS, content, if_full=FREE_AND_RESUME))

    def fleet(self, number: int) -> Path:
        return self.path / f"fleet-{number}"

    @property
    def metrics_path(self) -> Path:
        return self.path / metrics.FILE

    def metrics(self) -> MetricsTable:
        return metrics.read_metrics(self.path)


def refuse_links(path: Path) -> None:
    """Before anything is read or written in a folder. A stranger may have packed it, and a link leads out of it."""
    for above, folders, files in os.walk(path):
        for place in (Path(above) / name for name in (*folders, *files)):
            try:
                kind = place.lstat().st_mode
            except FileNotFoundError:  # whoever trains there has just replaced it
                continue
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise InputError(
                    f"{place} is a link or no ordinary file, and none is followed here: remove it, or put the file "
                    "itself there."
                )


def _read_json(path: Path, advice: str) -> Any:
    try:
        return json.loads(read_own(path, advice))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON ({printable(str(error))}); {advice}.") from error
