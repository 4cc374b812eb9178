"""What every part of a training works with: the request, the folder and who is told."""

import dataclasses

from score_rl.run.messages import Announcer
from score_rl.run.signals import StopRequest
from score_rl.run.status import StatusKeeper
from score_rl.store.folder import Folder
from score_rl.store.metrics import MetricsWriter
from score_rl.store.request import ExperimentSpec


@dataclasses.dataclass(frozen=True)
class TrainingContext:
    """One for all fleets of an experiment."""

    spec: ExperimentSpec
    folder: Folder
    metrics: MetricsWriter
    status: StatusKeeper
    announcer: Announcer
    stop: StopRequest
