"""What starts tasks on machines. An engine knows how; which, when and again is the driver's business."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from score_rl.cluster.orders import Order, Outcome
from score_rl.errors import InputError


class Ended(NamedTuple):
    """A task that is over. Without an outcome its machine was lost, or its process killed."""

    number: int  # of the fleet
    outcome: Outcome | None
    reason: str = ""  # why there is no outcome
    place: str = ""  # the machine, as the engine calls it; empty where it cannot be avoided


class Engine(Protocol):
    """Ray, SLURM, or processes of this machine."""

    title: str

    def survey(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answers of the machines, one of each at least of every kind."""
        ...

    def ask(self, question: Mapping[str, Any], needs: Sequence[Any], device: str) -> dict[str, Any]:
        """The answer of one machine that has such a device. `needs` are the data sets that the question is about."""
        ...

    def places(self) -> int:
        """How many tasks can run at once now."""
        ...

    def avoid(self, place: str) -> bool:
        """Start nothing more on this machine. False if no other one is left."""
        ...

    def start(self, order: Order) -> None:
        """Start a task, or put it in the engine's queue. The order lies in its attempt already."""
        ...

    def adopt(self, order: Order) -> bool:
        """Take over a task that an earlier driver started, if it still goes on."""
        ...

    def active(self) -> int:
        """Tasks that were started and are not over."""
        ...

    def ended(self, seconds: float) -> list[Ended]:
        """The tasks that are over since the last call. Waits so long for the first of them."""
        ...

    def stop(self) -> None:
        """Tell every task to end with a checkpoint."""
        ...

    def close(self) -> None:
        """Let go of everything. Tasks that still run are ended."""
        ...


def shared_by_all(engine: Engine, file: Path) -> bool:
    """Whether every machine sees this file of the driver's."""
    return all(said.get("sees") for said in engine.survey({"kind": "sees", "file": str(file.absolute())}))


class Task(NamedTuple):
    """What a task asks of a cluster: KEY=VALUE on the command line."""

    values: Mapping[str, str]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "Task":
        values = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or not name or not value:
                raise InputError(f"`task` holds {text!r}; it must be KEY=VALUE, such as gpus=1.")
            values[name.replace("-", "_")] = value
        return cls(values)

    def number(self, name: str, default: float | None = None) -> float | None:
        """A number that is 0 or more."""
        text = self.values.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise InputError(f"`task` holds {name}={text}; it must be a number, 0 or more.")
        return value

    def refuse_others(self, known: Sequence[str], engine: str) -> None:
        for name in self.values:
            if name not in known:
                raise InputError(f"`task` holds {name}, which {engine} does not know; it knows {', '.join(known)}.")
