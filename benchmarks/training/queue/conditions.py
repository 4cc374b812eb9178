"""What all jobs of a queue have in common: folders, and how runs are evaluated."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.training.jobs import DataFolder
from score_rl.disk import write_file

CONDITIONS = "conditions.json"
MEASURED = Path(__file__).resolve().parents[2] / "results"  # of this checkout
RESULTS = MEASURED / "six-sets"
WORK = Path("runs", "queue")


@dataclass(frozen=True)
class Conditions:
    sources: Path  # with D4RL's *_medium-v2.hdf5
    work: Path  # unfinished jobs, data and logs
    results: Path  # a folder for each job that is done
    transitions: int | None = None  # rows of each data set; None is D4RL's number
    evaluate_every: int = 25_000  # updates
    evaluation_episodes: int = 10
    fresh_episodes: int = 100  # that last policies are judged in

    @property
    def jobs(self) -> Path:
        return self.work / "jobs"

    @property
    def logs(self) -> Path:
        return self.work / "logs"

    @property
    def unfinished(self) -> Path:
        """What jobs have reached that were interrupted."""
        return self.results / "unfinished"

    @property
    def data(self) -> DataFolder:
        return DataFolder(self.sources, self.work / "data", self.transitions)

    def write(self) -> None:
        """For the processes of the jobs."""
        for folder in (self.jobs, self.logs, self.data.out, self.results):
            folder.mkdir(parents=True, exist_ok=True)
        values = {key: str(value) if isinstance(value, Path) else value for key, value in vars(self).items()}
        write_file(self.work / CONDITIONS, json.dumps(values, indent=1) + "\n")

    @classmethod
    def read(cls, work: Path) -> "Conditions":
        stored: dict[str, Any] = json.loads((work / CONDITIONS).read_text())
        paths = {field.name for field in dataclasses.fields(cls) if field.type is Path}
        values: dict[str, Any] = {key: Path(value) if key in paths else value for key, value in stored.items()}
        return cls(**values)
