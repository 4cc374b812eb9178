"""What is sent to a machine, and what it answers: JSON, and the bytes of files."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from score_rl.store.fields import Fields
from score_rl.store.records import RunRecord
from score_rl.store.request import ExperimentSpec
from score_rl.versions import version_of

FINISHED, STOPPED, FAILED, BROKEN = "finished", "stopped", "failed", "broken"
SAME = ("score-rl", "jax", "jaxlib")  # other versions on a machine could give other results


def own_versions() -> dict[str, str]:
    """Of this machine."""
    return {package: version_of(package) for package in SAME}


def differing(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """The first package of another version."""
    return next((package for package in SAME if here.get(package) != there.get(package)), None)


@dataclasses.dataclass(frozen=True)
class DataEntry:
    """A data set that a machine needs. Its file goes to every machine once."""

    name: str
    checksum: str  # of the rows: the identity of the data set
    environment: str | None
    file: str  # on storage that machines share; they may not have it
    size: int  # bytes

    @classmethod
    def from_json(cls, stored: Fields) -> "DataEntry":
        return cls(
            name=stored.get("name", str),
            checksum=stored.get("checksum", str),
            environment=stored.optional("environment", str),
            file=stored.get("file", str),
            size=stored.whole("size"),
        )


@dataclasses.dataclass(frozen=True)
class Order:
    """Train one fleet, from where its attempt stands."""

    number: int  # of the fleet
    attempt: str  # its folder on the driver's machine
    token: str  # stands in the attempt's `order.json` too: who reads it there sees the same storage
    request: ExperimentSpec
    runs: tuple[RunRecord, ...]
    data: tuple[DataEntry, ...]
    versions: dict[str, str]  # of the driver's machine
    shared: bool  # whether the machine trains in the attempt's folder itself; else files go to and fro
    tensorboard: bool = False
    began_in: str | None = None  # the folder in which the driver was called

    @property
    def path(self) -> Path:
        return Path(self.attempt)

    def to_json(self) -> str:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["request"] = self.request.to_json()
        values["runs"] = [run.to_json() for run in self.runs]
        values["data"] = [dataclasses.asdict(entry) for entry in self.data]
        return json.dumps(values) + "\n"

    @classmethod
    def from_json(cls, text: str, file: Path | None = None) -> "Order":
        stored = Fields(json.loads(text), file or Path("the order"))
        return cls(
            number=stored.whole("number"),
            attempt=stored.get("attempt", str),
            token=stored.get("token", str),
            request=ExperimentSpec.from_json(stored.inner("request")),
            runs=tuple(RunRecord.from_json(each) for each in stored.inner_list("runs")),
            data=tuple(DataEntry.from_json(each) for each in stored.inner_list("data")),
            versions=stored.get("versions", dict),
            shared=stored.get("shared", bool),
            tensorboard=stored.get("tensorboard", bool),
            began_in=stored.optional("began_in", str),
        )


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a task ended.

    finished   all updates are done
    stopped    somebody asked for it; a checkpoint is there
    failed     what a user did wrong: another try would end alike
    broken     anything else, such as a device that failed or a full disk: another try may do better
    """

    state: str
    error: str | None = None
    machine: str = ""
    device: str = ""
    seconds: float = 0.0  # of the task, from its first line on the machine

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self)) + "\n"

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Outcome | None":
        """None of what is not whole, such as the file of a machine that died while it wrote."""
        if values.get("state") not in (FINISHED, STOPPED, FAILED, BROKEN):
            return None
        error, seconds = values.get("error"), values.get("seconds")
        return cls(
            state=values["state"],
            error=None if error is None else str(error),
            machine=str(values.get("machine", "")),
            device=str(values.get("device", "")),
            seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        )
