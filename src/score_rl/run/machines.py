"""Who trains the fleets of an experiment: this machine (`launch.ThisMachine`), or several (`score_rl.cluster`)."""

from collections.abc import Sequence
from typing import Any, Protocol

from score_rl.algorithms.algorithm import Algorithm
from score_rl.engine.runs import Run
from score_rl.nets.precision import Precision
from score_rl.run.messages import Announcer
from score_rl.store.folder import Folder
from score_rl.store.request import ExperimentSpec


class Machines(Protocol):
    """What depends on where an experiment is trained."""

    def precision(self, algorithm: Algorithm, asked: str) -> Precision:
        """What goes into matrix products there; `asked` may be auto."""
        ...

    def fleets(
        self, runs: Sequence[Run], spec: ExperimentSpec, gibibytes: float | None, announcer: Announcer
    ) -> list[list[Run]]:
        """Which runs train together. A fleet may use `gibibytes` of a device, or what is free."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Code, libraries and devices, for the experiment's record."""
        ...

    def train(
        self,
        spec: ExperimentSpec,
        fleets: Sequence[Sequence[Run]],
        folder: Folder,
        announcer: Announcer,
        *,
        tensorboard: bool,
    ) -> None:
        """Train all fleets to their end in this folder, from wherever each of them stands."""
        ...
