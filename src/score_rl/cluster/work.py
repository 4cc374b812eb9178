"""What a machine does: train one fleet in its attempt, and say how far it is.

`python -m score_rl.cluster.work ORDER.json` does the same as a process of its own.
"""

import contextlib
import json
import os
import platform
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from score_rl.algorithms.registry import import_algorithm
from score_rl.algorithms.settings import make_config
from score_rl.cluster.data import Fetch, copy_shared, obtain
from score_rl.cluster.orders import BROKEN, FAILED, FINISHED, STOPPED, Order, Outcome, differing, own_versions
from score_rl.disk import write_file
from score_rl.engine.runs import Run
from score_rl.errors import InputError, MachineError, Stopped
from score_rl.run.compiled_programs import keep_compiled_programs
from score_rl.run.context import TrainingContext
from score_rl.run.messages import Announcer
from score_rl.run.signals import StopRequest
from score_rl.run.status import StatusKeeper
from score_rl.run.training import FleetTrainer
from score_rl.store.folder import Folder
from score_rl.store.lock import held
from score_rl.store.metrics import MetricsWriter
from score_rl.store.parts import LOG, ORDER, OUTCOME, PROGRESS, read_json, was_begun

BEAT = 2.0  # seconds between two looks at how far training is
STOP = "stop"  # a file among the parts: all machines end with a checkpoint


def perform(order: Order, folder: Path, stop: StopRequest, fetch: Fetch = copy_shared) -> Outcome:
    """Train the fleet of an order in a folder: the attempt itself, or a copy of it on this machine."""
    began = time.monotonic()
    state, error, device = FINISHED, None, ""
    with (folder / LOG).open("a") as log:
        announcer = Announcer(Console(file=log, width=120))
        announcer.say(f"{machine_name()}, process {os.getpid()}: fleet {order.number}, {len(order.runs)} runs.")
        try:
            device = _device()
            _train(order, folder, stop, fetch, announcer, device)
        except Stopped as stopped:
            state, error = STOPPED, str(stopped)
        except MachineError as wrong:
            state, error = BROKEN, str(wrong)
        except InputError as wrong:
            state, error = FAILED, str(wrong)
        except Exception as broken:
            state, error = BROKEN, f"{type(broken).__name__}: {broken}"
            traceback.print_exc(file=log)
    outcome = Outcome(state, error, machine_name(), device, time.monotonic() - began)
    if order.shared and not was_begun(order.path):
        _clear_away(order.path)
    else:
        with contextlib.suppress(InputError):  # a full disk: some engines hear of the outcome without the file
            write_file(folder / OUTCOME, outcome.to_json())
    return outcome


def _clear_away(attempt: Path) -> None:
    """What was written after somebody else had finished the fleet and gathered it."""
    shutil.rmtree(attempt, ignore_errors=True)
    with contextlib.suppress(OSError):  # another fleet trains beside it
        attempt.parent.rmdir()
        attempt.parent.parent.rmdir()


def runs_of(order: Order, fetch: Fetch) -> list[Run]:
    """The runs of an order with their data, as the driver has them.

    A module that an algorithm is in was named by whoever called the driver: importing it is their act.
    """
    if order.began_in is not None and Path(order.began_in).is_dir():
        os.chdir(order.began_in)  # an algorithm or an environment may be in a module there
    datasets = {entry.checksum: obtain(entry, fetch) for entry in order.data}
    made = []
    for record in order.runs:
        algorithm = import_algorithm(record.algorithm)
        config = make_config(algorithm, record.config)
        made.append(Run(record.id, algorithm, datasets[record.checksum], record.seed, config))
    return made


def _train(order: Order, path: Path, stop: StopRequest, fetch: Fetch, announcer: Announcer, device: str) -> None:
    _refuse_other_versions(order)
    keep_compiled_programs()
    runs = runs_of(order, fetch)
    folder = Folder(path)
    with held(path):
        status = StatusKeeper(folder)
        with (
            status.training(),
            contextlib.closing(MetricsWriter(path, order.tensorboard)) as metrics,
            stop.listening(announcer),
            Heart(order, path, status, stop, device),
        ):
            context = TrainingContext(order.request, folder, metrics, status, announcer, stop)
            FleetTrainer(order.number, runs, context).train()


def _refuse_other_versions(order: Order) -> None:
    """Of a machine that came later than the driver's survey."""
    here = own_versions()
    other = differing(here, order.versions)
    if other is not None:
        raise MachineError(
            f"{machine_name()} has {other} {here[other]} and the driver {order.versions.get(other)}, which may give "
            "other results; install the same version on all machines."
        )


class Heart:
    """Says every few seconds how far training is, and hears that it should stop. Use it as a context."""

    def __init__(self, order: Order, folder: Path, status: StatusKeeper, stop: StopRequest, device: str) -> None:
        self._order, self._folder, self._status, self._stop, self._device = order, folder, status, stop, device
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)
        self._first: tuple[int, float] | None = None  # a step, and when it was first seen
        self._told: dict[str, Any] = {}

    def __enter__(self) -> "Heart":
        self._tell()
        self._thread.start()
        return self

    def __exit__(self, *of_the_error: object) -> None:
        self._end.set()
        self._thread.join()
        self._tell()

    def _beat(self) -> None:
        while not self._end.wait(BEAT):
            if self._order.shared and is_over(self._order.path):
                self._stop.asked = True
            self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        step = max((run.step for run in list(self._status.record.runs.values())), default=0)
        if self._first is None or step < self._first[0]:
            self._first = step, now
        elif self._told and step > self._first[0] and self._told["step"] == self._first[0]:
            self._first = step, now  # what came before was compiling
        seconds = now - self._first[1]
        said = {
            "step": step,
            "steps": self._order.request.steps,
            "runs": len(self._order.runs),
            "updates_per_second": (step - self._first[0]) / seconds if seconds > 0 else 0.0,
            "machine": machine_name(),
            "process": os.getpid(),
            "device": self._device,
            "at": time.time(),
        }
        self._told = said
        with contextlib.suppress(InputError):  # a full disk is for training to notice
            write_file(self._folder / PROGRESS, json.dumps(said) + "\n")


def is_over(attempt: Path) -> bool:
    """Whether all machines should stop, or somebody took this one for lost: the attempt has a successor or is gone."""
    parts = attempt.parent.parent
    mine = int(attempt.name.removeprefix("attempt-"))
    successor = attempt.with_name(f"attempt-{mine + 1}")
    return (parts / STOP).exists() or successor.exists() or not was_begun(attempt)


def sees(order: Order) -> bool:
    """Whether this machine has the attempt's folder on storage that it shares with the driver."""
    return read_json(order.path / ORDER).get("token") == order.token


def machine_name() -> str:
    """What this machine is called; a cluster of several nodes on one machine tells them apart."""
    return os.environ.get("SCORE_RL_NODE") or platform.node()


def _device() -> str:
    import jax

    devices = jax.local_devices()
    kind = devices[0].device_kind
    return kind if len(devices) == 1 else f"{len(devices)} × {kind}"


@contextlib.contextmanager
def _watching_the_driver(stop: StopRequest) -> Iterator[None]:
    """A process whose driver has died ends with a checkpoint."""
    parent, end = os.getppid(), threading.Event()

    def watch() -> None:
        while not end.wait(BEAT):
            if os.getppid() != parent:
                stop.asked = True

    threading.Thread(target=watch, name="driver watch", daemon=True).start()
    try:
        yield
    finally:
        end.set()


def main(arguments: list[str], stop: StopRequest | None = None) -> int:
    """The order in a file on shared storage; what came out lies beside it."""
    file = Path(arguments[0])
    order, stop = Order.from_json(file.read_text(), file), stop or StopRequest()
    with _watching_the_driver(stop):
        outcome = perform(order, order.path, stop)
    return 0 if outcome.state in (FINISHED, STOPPED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
